"""The model does not read of a tool call that had begun that it never ran."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call
from wedgehog.harness.invariants.tool_results import denied
from wedgehog.harness.record.events.call import RequestArrived, ToolResult
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import ToolUse


@invariant("begun_told", level="strict")
def begun_told(history: History) -> Iterator[Verdict]:
    """The result of a command that had begun does not say that it was rejected, or never ran.

    A command that its user stopped, that a time limit ended, or whose agent died may have done its work by then: a
    commit is made, a mail is sent. A model that reads that nothing ran does it again, or tells its user so. Words such
    as "interrupted", "stopped" or "its outcome is unknown" pass, and so does a result that leaves it open ("may not
    have run"). Judged on commands whose first line ran, in each request that carries their result, also after a
    restart; not on calls that the user denied.

    Fix: Keep two results apart: of a call that never began (denied, or still waiting at a stop), and of one that had
    begun. Of the second say that it was interrupted, and that it may have taken effect.
    """
    refused = denied(history)
    for use in history.tool_uses:
        if use.started and use.token not in refused:
            yield from _told(use)


def _told(use: ToolUse) -> Iterator[Verdict]:
    said = [(request, result) for request in use.results if (result := _result(use, request)) is not None]
    if false := next((each for each in said if "never_ran" in (each[1].signs or ())), None):
        says = f"{name_of_call(use)} had begun, and its result in request {false[0].call} says that it did not run"
        yield fail(says, (use.started[0], false[0]))
    elif said:
        yield passed(because=f"no result of {name_of_call(use)} denies that it ran")


def _result(use: ToolUse, request: RequestArrived) -> ToolResult | None:
    """What a request says of the call: its result, and not a text that quotes it."""
    own = (it for it in request.results if it.token == use.token and it.signs_known and not it.in_text)
    return next(own, None)
