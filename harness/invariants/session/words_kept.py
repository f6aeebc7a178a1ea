"""What the model said stays in the conversation: words before a tool call, and its answers."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import (
    called_beside,
    disk_was_full,
    main_calls_of,
    over,
    refused_as_too_long,
    refused_as_too_long_before,
    requests,
)
from wedgehog.harness.record.error_words import FIRST_WORDS, plain
from wedgehog.harness.record.events.turn import TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, Turn

LEAST_CHARS = 5
"""So few letters and digits stand in a request by chance."""


@invariant("words_kept", level="strict")
def words_kept(history: History) -> Iterator[Verdict]:
    """What the model said before a tool call is in the request with the result, and an answer is in the next turn's.

    A model that does not see its own words says them again, or contradicts them. Judged on replies that arrived whole.
    A reply with calls must be in the turn's first accepted request with a result of these calls. An answer must be in
    the first request of the next turn, if this carries the message that was answered. A background call in between may
    have made a summary, and on a full disk an answer may not be stored. After a refusal for its length a request may
    leave out what it likes.

    Where a reply broke off and the turn ended in an error, the words that its user has read must be there too: the user
    goes on from them. Judged where the agent showed them, and the next turn carries the message of the turn. After a
    stop, agents differ.

    Fix: Store each reply of the model as it came, with the text beside its tool calls, and send it with each later
    request. Store what your user has read of a broken reply, with a mark that it broke off.
    """
    for turn in history.turns:
        calls = main_calls_of(turn)
        for said in filter(_judged, calls):
            yield from _in(history, said, _with_result(said, calls), "the request with the result of its tool call")
        if disk_was_full(history, turn):
            continue
        ended_well = over(turn) is None and outcome_of(turn, history).kind == "answered"
        if ended_well and (last := _last_words(calls)):
            yield from _in(history, last, _next(history, turn), f"the next turn that carries the message of {turn}")
        if turn.end is not None and over(turn) is None and outcome_of(turn, history).kind == "surfaced":
            yield from _read(history, [call for call in calls if _was_read(call, turn.end)], _next(history, turn))


def _was_read(said: Call, end: TurnEnded) -> bool:
    """Whether its reply broke off, and the agent has shown the words that had come."""
    words = plain(said.ended.text_delivered) if said.ended and not said.intact else ""
    return len(words) >= FIRST_WORDS and words[:FIRST_WORDS] in plain(f"{end.answer}\n{end.stdout}")


def _read(history: History, broken: Sequence[Call], later: Call | None) -> Iterator[Verdict]:
    """Whether a later request that carries the turn's message carries the words of one of its broken replies too."""
    if not broken or later is None or later.arrived.replies_begun is None or later.arrived.turn in _shortened(history):
        return
    said = broken[-1]
    if said.arrived.turn not in later.arrived.turns_seen or called_beside(history, said.arrived.id, later.arrived.id):
        return
    if {call.number for call in broken} & set(later.arrived.replies_begun):
        yield passed(because=f"request {later.number} carries the words that its user has read of call {said.number}")
    else:
        read = f"the user has read words of call {said.number}, whose reply broke off"
        says = f"{read}; request {later.number} carries the message of the turn without them"
        yield fail(says, requests([said, later]))


def _shortened(history: History) -> set[int]:
    """Turns in which the provider refused a request for its length: then an agent may drop what it likes."""
    return {it.arrived.turn for it in history.calls if it.refused is not None and refused_as_too_long(it.refused)}


def _judged(said: Call) -> bool:
    """Whether its reply has words and tool calls, and came as the script has it."""
    return bool(_came_well(said) and said.ended and said.ended.tool_calls)


def _came_well(said: Call) -> bool:
    words = plain(said.ended.text_delivered) if said.ended else ""
    return said.ok and not said.damaged and len(words) >= LEAST_CHARS


def _with_result(said: Call, calls: Sequence[Call]) -> Call | None:
    tokens = {it.token for it in said.ended.tool_calls} if said.ended else set()
    later = (call for call in calls if call.arrived.id > said.arrived.id and call.paid)
    return next((it for it in later if tokens & {result.token for result in it.arrived.results}), None)


def _last_words(calls: Sequence[Call]) -> Call | None:
    last = calls[-1] if calls else None
    return last if last is not None and last.final and _came_well(last) else None


def _next(history: History, turn: Turn) -> Call | None:
    """The first accepted request of the turn after this one."""
    after = (other for other in history.turns if other.number == turn.number + 1)
    began = turn.end.id if turn.end is not None else 0
    calls = (call for other in after for call in main_calls_of(other))
    return next((call for call in calls if call.paid and call.arrived.id > began), None)


def _in(history: History, said: Call, later: Call | None, where: str) -> Iterator[Verdict]:
    """Whether a later request that carries the turn's message carries these words too.

    After a refusal for the length an agent may drop what it likes.
    """
    if later is None or later.arrived.replies_seen is None or said.arrived.turn not in later.arrived.turns_seen:
        return
    if refused_as_too_long_before(history, later):
        return
    if said.number in later.arrived.replies_seen:
        yield passed(because=f"request {later.number} carries the words of request {said.number}")
    elif not called_beside(history, said.arrived.id, later.arrived.id):
        words = " ".join(said.ended.text_delivered.split())[:60] if said.ended else ""
        yield fail(f"the model's words in call {said.number} ({words}) are not in {where}", requests([said, later]))
