"""What went well stands in the conversation once: a message, an answer, a tool's result."""

from collections import Counter
from collections.abc import Iterator, Sequence

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import compacts, main_calls_of, refused_as_too_long_before, requests, undisturbed
from wedgehog.harness.record.error_words import plain
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, Turn

LEAST_CHARS = 12
"""Letters and digits of a reply that stand in no other message of the model by chance."""


@invariant("stored_once")
def stored_once(history: History) -> Iterator[Verdict]:
    """No request has a message, a reply or a tool's result twice from a turn in which nothing failed.

    Each copy is paid with each later request, and a model that reads one request twice may do the work twice. The
    usual cause is that the message is stored, and then added to what was loaded. Judged on exact copies: two equal
    messages of the user or of the model, or two results of one call and one length. A message that quotes another one
    is no copy. The message of the open turn is a copy only right behind the first one, because an agent may repeat a
    question behind its documents, or behind the results of its tools, on purpose; and it may store that. Not judged
    where a call of the turn failed or a fault struck it, with a second message in the turn, and after a summary or a
    full window.

    Fix: Add what is said to the conversation in one place. Where it is stored before the request, do not add it once
    more to what was loaded. Let each message have an id, and store none twice.
    """
    for turn in history.turns:
        calls = [call for call in main_calls_of(turn) if not (_is_unpaired(call) or _was_shortened(history, call))]
        copies = ((call, what) for call in calls if (what := _copied(history, turn, call)))
        found = next(copies, None)
        if found is not None:
            call, what = found
            yield fail(f"{turn}: request {call.number} carries {what} twice, though nothing failed", requests([call]))
        elif calls:
            yield passed(because=f"{turn}: no request carries twice what was said once")


def _is_unpaired(call: Call) -> bool:
    """Whether its copies are told already: the provider refused two results of one call."""
    return call.refused is not None and call.refused.pairing


def _was_shortened(history: History, call: Call) -> bool:
    """Whether the agent may have built the conversation anew: a summary keeps some messages beside what it quotes."""
    earlier = (it for it in history.calls if it.arrived.id < call.arrived.id)
    return any(map(compacts, earlier)) or refused_as_too_long_before(history, call)


def _copied(history: History, turn: Turn, call: Call) -> str:
    """What of an undisturbed turn a request carries twice, in words; else empty."""
    sent = call.arrived
    healthy = [it for it in history.turns if it.number <= turn.number and undisturbed(history, it, sent.id)]
    for said in healthy:
        copied = said.number in (sent.turns_doubled if said.number < turn.number else sent.turns_repeated)
        if (
            copied
            and not (said.number < turn.number and _was_repeated(said))
            and said.stimulus is not None
            and said.stimulus.stimulus != "wake_up"
        ):
            return f"the message of {said}"
    answers = [it for said in healthy for it in said.main_calls if it.number in sent.replies_doubled]
    reply = next((it for it in answers if _is_one_message(it)), None)
    if reply is not None:
        return f"the model's reply to call {reply.number}"
    return _result_again(call, [it for said in healthy for it in said.main_calls])


def _was_repeated(said: Turn) -> bool:
    """Whether its own requests repeated its message behind others: such a reminder may be stored."""
    sent = [call.arrived for call in main_calls_of(said)]
    return any(said.number in it.turns_doubled for it in sent) and not any(
        said.number in it.turns_repeated for it in sent
    )


def _is_one_message(reply: Call) -> bool:
    """Whether its words belong into one message: an agent may send each of several calls with the words before them."""
    return (
        reply.ended is not None
        and len(reply.ended.tool_calls) < 2
        and len(plain(reply.ended.text_delivered)) >= LEAST_CHARS
    )


def _result_again(call: Call, replies: Sequence[Call]) -> str:
    """The only tool call of a reply whose result stands in a request twice, in words; else empty."""
    offered = [said.ended.tool_calls for said in replies if said.ended is not None]
    alone = {calls[0].token for calls in offered if len(calls) == 1}
    results = Counter((it.token, it.id, it.chars) for it in call.arrived.results if it.id and not it.in_text)
    again = (token for (token, _, chars), count in results.items() if count > 1 and chars and token in alone)
    return next((f"the result of tool call {token}" for token in again), "")
