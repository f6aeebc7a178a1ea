"""What a command prints is read while it runs."""

from collections.abc import Iterator

from wedgehog.harness.invariants.overload import too_late
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call, tool_uses_of
from wedgehog.harness.invariants.tool_results import disturbed
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, passed
from wedgehog.harness.record.views import ToolUse

AT_ONCE_S = 5.0
"""A command that only prints ends long before; divided by the run's time scale."""


@invariant("output_read", asked=True)
def output_read(history: History) -> Iterator[Verdict]:
    """A command that only prints ends by itself: the agent reads what it prints, and does not wait for its end first.

    A pipe holds 64 kB. A command that prints more waits until somebody reads, and an agent that reads after the end
    of the command waits for ever. The model then reads of a time limit, though the command needed a moment. The same
    happens to an agent that reads standard output to its end, and standard error after that. Judged on the commands of
    a scenario that do nothing but print: one that has not ended when its result is sent, 5 s or more after its start.
    A command that was stopped earlier, because it printed too much, is not judged.

    Fix: Read standard output and standard error at the same time, while the command runs (`communicate()`, one thread
    or task for each pipe), or send both into one pipe or into a file.
    """
    if any(turn.tool_uses for turn in history.turns):
        yield passed(because="no command that only prints was stopped at a time limit")
    for turn in history.turns:
        if not disturbed(history, turn):
            yield from (_stuck(history, use) for use in tool_uses_of(turn) if _waits(history, use))


def _waits(history: History, use: ToolUse) -> bool:
    """Whether its result was sent long after its start, and it had not ended by then."""
    if not (use.started and use.results) or any(done.id < use.results[0].id for done in use.done):
        return False
    return _over_s(history, use) >= 0


def _over_s(history: History, use: ToolUse) -> float:
    return use.results[0].at_s - use.started[0].at_s - AT_ONCE_S / history.run.time_scale


def _stuck(history: History, use: ToolUse) -> Verdict:
    start, sent = use.started[0], use.results[0]
    says = f"{name_of_call(use)} only prints, and had not ended {sent.at_s - start.at_s:.1f} s later"
    found = f"{says}, when its result was sent: nobody read what it printed"
    evidence = (use.reply, start, sent)
    return too_late(history, found, evidence, over_s=_over_s(history, use), since_s=start.at_s, until_s=sent.at_s)
