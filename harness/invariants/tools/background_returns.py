"""A command in the background does not hold the agent."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.invariants.overload import too_late
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import blocked, name_of_call, over, tool_uses_of
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import RequestArrived, ToolResult
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, inconclusive, nothing, passed
from wedgehog.harness.record.views import ToolUse, Turn

AT_ONCE_S = 0.5
"""A result that is sent so shortly before its job's end was waiting for it."""


@invariant("background_returns", unscaled=("least_s",))
def background_returns(history: History, *, least_s: float = 2) -> Iterator[Verdict]:
    """The result of a command that ends in `&` is sent while its job still runs.

    A tool that waits for the job, or for another process that holds the output of its shell, is stuck until that ends
    (incident lost-tool-result). Judged by the beacon of the job, where the agent was idle for `least_s` before the
    job's end: a shorter job proves nothing. A late error, or a late result that says that the command was stopped, is
    the tool's own time-out.

    Fix: End the tool when its shell exits, not when the shell's output closes. Give the job a file for its output,
    or stop reading a moment after the exit.
    """
    least_s = history.stretched(least_s)
    for turn in history.turns:
        uses = tool_uses_of(turn)
        for use in uses:
            start = next((beacon for beacon in use.started if beacon.background), None)
            if start is not None:
                siblings = [other for other in uses if other.step == use.step and other is not use]
                yield _judge(history, turn, use, start, siblings, least_s)


def _judge(
    history: History, turn: Turn, use: ToolUse, start: BeaconSeen, siblings: Sequence[ToolUse], least_s: float
) -> Verdict:
    until = _until(history, turn, use, start)
    name = name_of_call(use)
    last = until.id if until is not None else float("inf")
    sent = next((request for request in use.results if start.id < request.id < last), None)
    if sent is not None and _comes_with(until, sent) and sent.at_s - start.at_s > least_s:
        sent = None
    if sent is not None and not _says_too_late(use, start, sent, least_s):
        return passed(f"{name} came back after {sent.at_s - start.at_s:.1f} s, while its job ran")
    end = sent or until
    if end is None or any(_may_run(sibling, end) for sibling in siblings):
        return nothing()
    since_s = _last_sign(start, siblings, end).at_s
    idle_s = end.at_s - since_s
    if idle_s <= least_s:
        return nothing(f"no background job ran long enough to judge ({name}: {idle_s:.1f} s)")
    says = f"{name} did not come back in {idle_s:.1f} s, though its command ends in `&` and {_why(end, use)}"
    if blocked(history, use, end):
        return inconclusive(f"{says}, but a fault blocked the next request", (start, end))
    return too_late(history, says, (start, end), over_s=idle_s - least_s, since_s=since_s, until_s=end.at_s)


def _comes_with(until: Event | None, sent: RequestArrived) -> bool:
    """Whether the job's end follows at once: its output closes some milliseconds before its beacon is written."""
    return isinstance(until, BeaconSeen) and until.at_s - sent.at_s < AT_ONCE_S


def _until(history: History, turn: Turn, use: ToolUse, start: BeaconSeen) -> Event | None:
    """The end of the time in which the result could show that the agent did not wait."""
    done = next((beacon for beacon in use.done if beacon.id > start.id), None)
    faults = [fault for fault in history.of(FaultFired) if fault.link == "agent"]
    ends = [event for event in (done, over(turn), turn.end, *faults) if event is not None and event.id > start.id]
    return min(ends, key=lambda event: event.id, default=None)


def _says_too_late(use: ToolUse, start: BeaconSeen, sent: RequestArrived, least_s: float) -> bool:
    """A late error, or a late result of a tool that stopped its command, is the tool's own time-out: it waited."""
    own = [result for result in sent.results if result.token == use.token]
    return sent.at_s - start.at_s > least_s and any(result.is_error or _was_stopped(result) for result in own)


def _was_stopped(result: ToolResult) -> bool:
    """Whether it says that the command was stopped: behind the last line of its shell, or as a failure.

    Not every wire can mark an error. An agent that lets the job run on says so.
    """
    signs = set(result.signs or ())
    stopped = "stopped" in signs and (result.printed or "failed" in signs)
    return stopped and signs.isdisjoint(("elsewhere", "foreign"))


def _may_run(sibling: ToolUse, end: Event) -> bool:
    """Whether another call of the same reply may have delayed the request; one without a beacon always may."""
    if not sibling.started:
        return True
    began = sibling.started[0].id < end.id
    return began and not any(done.id < end.id for done in sibling.done)


def _last_sign(start: BeaconSeen, siblings: Sequence[ToolUse], end: Event) -> Event:
    signs = [start, *(beacon for sibling in siblings for beacon in (*sibling.started, *sibling.done))]
    return max((sign for sign in signs if sign.id < end.id), key=lambda sign: sign.id)


def _why(end: Event, use: ToolUse) -> str:
    if isinstance(end, BeaconSeen):
        return "its job has ended"
    return "its result tells of a time-out" if end in use.results else "its job still ran"
