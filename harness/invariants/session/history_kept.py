"""The conversation goes on: later requests carry an earlier answered turn, or a summary of it."""

from collections.abc import Iterator, Sequence
from functools import partial

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import (
    REFUSES_THE_REQUEST,
    compacts,
    disk_was_full,
    main_calls_of,
    over,
    refused_as_too_long_before,
    requests,
    tool_uses_of,
)
from wedgehog.harness.record.events.turn import SessionSaved
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed
from wedgehog.harness.record.views import Call, ToolUse, Turn


@invariant("history_kept", level="strict")
def history_kept(history: History) -> Iterator[Verdict]:
    """The next turns still carry an earlier answered turn, or a summary of it, also after a failure or a restart.

    An agent that starts a new conversation after an error answers, but its user must explain everything again. Judged
    on accepted requests of turns that follow an answered one. The agent must have carried a turn before, in this run or
    in its control run, or its spec must promise a session: a `resume` of its own, `acp`, or `{session}` in `command` or
    `http`. Then its requests must show the messages as they are. A background call in between may have made a summary;
    where the model gave one, the request must have words of such calls. An agent may drop earlier turns after the
    provider refused a request for its length.

    After an error or a kill, the next turn carries something of the failed turn in which a tool's result was sent: its
    message, its result, or a reply. A model that does not know that the tool ran runs it again. Not judged where the
    provider did not accept what the turn said (400, 413, 422), where the kill tore a session file, or where the disk
    was full.

    After a stop by the user, the next turn carries something of the stopped turn in which words of the model had come,
    or a tool had begun: the user goes on from what they have read.

    An answered turn sent its own message to the model: a summary that is made at its start must not lose it.

    Fix: After an error, a stop or a restart load the stored session, and send its turns or a summary of them. Do not
    begin a new conversation silently. Keep the message of a turn that failed or was stopped, and its tool calls with
    their results.
    """
    answered: list[Turn] = []
    for turn in history.turns:
        if answered and carries(history, until=turn):
            yield from _judge(history, turn, answered)
        if carries(history, until=turn):
            yield from _after_an_error(history, turn)
            yield from _after_an_abort(history, turn)
        if outcome_of(turn, history).kind == "answered":
            yield from _of_its_message(history, turn)
            answered.append(turn)


def carries(history: History, until: Turn) -> bool:
    """Whether the agent keeps a conversation: its spec or control run says so, or a request before carried a turn."""
    if history.run.resumes:
        return True
    earlier = [turn for turn in history.turns if turn.number < until.number]
    return any(
        min(call.arrived.turns_seen, default=turn.number) < turn.number for turn in earlier for call in turn.calls
    )


def _judge(history: History, turn: Turn, answered: Sequence[Turn]) -> Iterator[Verdict]:
    calls = [call for call in main_calls_of(turn) if call.paid]
    answered = [it for it in answered if it.end is not None and calls and it.end.id < calls[0].arrived.id]
    if not answered:
        return
    if not any(_has(turn, call) for call in calls):
        yield nothing(f"{turn}: its requests do not carry its own message as it is")
        return
    expected = {it.number for it in answered}
    lost = [call for call in calls if not expected & set(call.arrived.turns_seen)]
    if not lost:
        yield passed(because=f"{turn}: its requests carry an earlier turn")
    elif refused_as_too_long_before(history, lost[0]):
        yield nothing(f"{turn}: earlier turns may be gone because the provider refused a request as too long")
    elif not summarized(history, answered[-1], lost[0]):
        one = "nothing of the turn that was answered before"
        none = one if len(expected) == 1 else f"none of the {len(expected)} turns that were answered before"
        says = f"{turn}: request {lost[0].number} carries {none}"
        made = [call.number for call in _beside(history, answered[-1], lost[0])]
        yield fail(f"{says}{f', nor the summary of request {made[-1]}' if made else ''}", requests(lost))


def _of_its_message(history: History, turn: Turn) -> Iterator[Verdict]:
    """Some request of the turn has the user's message, where the agent sends messages as they are."""
    asks = turn.stimulus is not None and turn.stimulus.stimulus in ("user", "recovery")
    others = [it for it in history.turns if it is not turn and any(map(partial(_has, it), it.calls))]
    if not asks or not others or not main_calls_of(turn) or history.beside(turn):
        return
    first, last = turn.stimulus.id if turn.stimulus else 0, turn.end.id if turn.end else 0
    if not any(_has(turn, call) for call in history.calls if first < call.arrived.id < last):
        yield fail(f"{turn}: it was answered, and no request has its message", requests(main_calls_of(turn)))


def _has(turn: Turn, call: Call) -> bool:
    return turn.number in call.arrived.turns_seen


def summarized(history: History, since: Turn, until: Call) -> bool:
    """Whether a background call since a turn's message may have made a summary that this request has."""
    beside, seen = _beside(history, since, until), until.arrived.replies_seen
    if seen is None or not any(map(gave_a_summary, beside)):
        return bool(beside)
    return not {call.number for call in beside}.isdisjoint(seen)


def _beside(history: History, since: Turn, until: Call) -> list[Call]:
    """The background calls between a turn's message and this request; a subagent's only if the request quotes it."""
    first, seen = since.stimulus.id if since.stimulus is not None else 0, until.arrived.replies_seen or ()
    calls = [call for call in history.calls if not call.main and first < call.arrived.id < until.arrived.id]
    return [call for call in calls if not call.arrived.side or call.number in seen]


def gave_a_summary(call: Call) -> bool:
    """Whether a request for a summary got words; what fills a schema is not recognized later."""
    words = call.ended.text_delivered.strip() if call.ended is not None and call.ok else ""
    return compacts(call) and bool(words) and not words.startswith("{")


# ---- after an error


def _after_an_error(history: History, turn: Turn) -> Iterator[Verdict]:
    """The first accepted request after a turn that failed, or was killed, after a tool had run in it."""
    failed = next((it for it in history.turns if it.number == turn.number - 1), None)
    later = next((call for call in main_calls_of(turn) if call.paid), None)
    ran = _ran(history, failed) if failed is not None else []
    if failed is None or later is None or not ran:
        return
    if _knows(later, failed):
        yield passed(because=f"{turn}: its first request carries {failed}, which had failed")
    elif not summarized(history, failed, later):
        tools = ", ".join(it.token for it in ran)
        says = f"{failed} ended after tool call {tools} had run, and request {later.number} carries nothing of it"
        yield fail(says, (*ran[0].done[:1], *requests([later])))


def _after_an_abort(history: History, turn: Turn) -> Iterator[Verdict]:
    """The first accepted request after a turn that its user stopped when something of it had come."""
    stopped = next((it for it in history.turns if it.number == turn.number - 1), None)
    later = next((call for call in main_calls_of(turn) if call.paid), None)
    if stopped is None or stopped.aborted is None or later is None:
        return
    if over(stopped) is not stopped.aborted or not is_owed(history, stopped):
        return
    read = [call for call in main_calls_of(stopped) if _came_before(call, stopped.aborted.at_s)]
    began = [use for use in tool_uses_of(stopped) if use.started]
    if not read and not began:
        return
    if _knows(later, stopped):
        yield passed(because=f"{turn}: its first request carries {stopped}, which was stopped")
    elif not summarized(history, stopped, later):
        what = f"words of request {read[-1].number} had come" if read else f"tool call {began[0].token} had begun"
        says = f"{stopped} was stopped when {what}, and request {later.number} carries nothing of it"
        yield fail(says, requests([*read[-1:], later]))


def _came_before(call: Call, stop_s: float) -> bool:
    """Whether words of a reply came that had begun to arrive before the stop."""
    if call.ended is None or not call.ended.text_delivered.strip():
        return False
    return call.at_s + (call.ended.first_byte_s or 0.0) < stop_s


def is_owed(history: History, turn: Turn) -> bool:
    """Whether nothing gave the agent a reason to leave the turn out, as a refusal or broken content does."""
    refused = any(it.refused is not None and it.refused.status in REFUSES_THE_REQUEST for it in turn.calls)
    broken = any(it.damaged or (it.ended is not None and it.ended.stop == "error") for it in turn.calls)
    return not (refused or broken or history.beside(turn) or disk_was_full(history, turn))


def _ran(history: History, turn: Turn) -> list[ToolUse]:
    """Tools whose results were sent in a turn that ended in an error by itself, or with its process."""
    if over(turn) not in (None, turn.killed) or not is_owed(history, turn):
        return []
    torn = any(it.turn == turn.number and it.torn for it in history.of(SessionSaved))
    if torn or (turn.killed is None and outcome_of(turn, history).kind != "surfaced"):
        return []
    return [use for use in tool_uses_of(turn) if use.done and any(sent.turn == turn.number for sent in use.results)]


def _knows(later: Call, turn: Turn) -> bool:
    """Whether a request has anything of a turn: its message, a result of its tools, or the words of a reply."""
    sent = later.arrived
    results = any(not it.token or it.token.startswith(f"{turn.number}.") for it in sent.results)
    replies = {call.number for call in turn.calls} & set(sent.replies_seen or ())
    return turn.number in sent.turns_seen or results or bool(replies)
