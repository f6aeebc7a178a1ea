"""The conversation goes on: later requests carry an earlier answered turn, or a summary of it."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import main_calls_of, refused_as_too_long, requests
from wedgehog.harness.record.events.call import RequestRefused
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed
from wedgehog.harness.record.views import Call, Turn


@invariant("history_kept", level="strict")
def history_kept(history: History) -> Iterator[Verdict]:
    """The next turns still carry an earlier answered turn, or a summary of it, also after a failure or a restart.

    An agent that starts a new conversation after an error answers, but its user explains everything again. Judged on
    accepted requests of turns that follow an answered one, where the agent has carried a turn before, in this run or in
    its control run, or where its spec has a `resume` of its own. A background call in between may have made a summary,
    whose words are unknown. An agent may drop earlier turns after the provider refused a request for its length.

    Fix: After an error or a restart load the stored session, and send its turns or a summary of them. Do not begin
    a new conversation silently.
    """
    answered: list[Turn] = []
    for turn in history.turns:
        if answered and _carries(history, until=turn):
            yield from _judge(history, turn, answered)
        if outcome_of(turn, history).kind == "answered":
            answered.append(turn)


def _carries(history: History, until: Turn) -> bool:
    """Whether the agent keeps a conversation: its spec or control run says so, or a request before carried a turn."""
    if history.run.resumes:
        return True
    earlier = [turn for turn in history.turns if turn.number < until.number]
    return any(
        min(call.arrived.turns_seen, default=turn.number) < turn.number for turn in earlier for call in turn.calls
    )


def _judge(history: History, turn: Turn, answered: Sequence[Turn]) -> Iterator[Verdict]:
    calls = [call for call in main_calls_of(turn) if call.paid]
    if not calls:
        return
    expected = {it.number for it in answered}
    lost = [call for call in calls if not expected & set(call.arrived.turns_seen)]
    if not lost:
        yield passed()
    elif any(refused_as_too_long(it) for it in history.of(RequestRefused) if it.id < lost[0].arrived.id):
        yield nothing(f"{turn}: earlier turns may be gone because the provider refused a request as too long")
    elif not _summarized(history, answered[-1], lost[0]):
        says = f"{turn}: request {lost[0].number} carries none of the {len(expected)} turns that were answered before"
        yield fail(says, requests(lost))


def _summarized(history: History, since: Turn, until: Call) -> bool:
    """Whether a background call was made between the last answered turn's message and this request."""
    first = since.stimulus.id if since.stimulus is not None else 0
    return any(not call.main and first < call.arrived.id < until.arrived.id for call in history.calls)
