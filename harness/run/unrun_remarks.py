"""Commands of the script that left no trace: what an agent says of them is not what they did."""

from collections.abc import Iterator

from wedgehog.harness.invariants.no_denied_calls import denied
from wedgehog.harness.invariants.scope import name_of_call, over, tool_uses_of
from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import Turn


def unrun_remarks(history: History) -> Iterator[str]:
    """A sentence for each turn in which a command arrived whole and never ran, though a result of it was sent.

    A sandbox that cannot write our file, a dry run, or a rule of the agent that refuses the command: the invariants
    about tools have nothing to judge then, and a pass says less than it seems to.
    """
    refused = denied(history)
    for turn in (it for it in history.turns if over(it) is None):
        unrun = [name for token, name in _unrun(turn) if token not in refused]
        if unrun:
            more = f" and {len(unrun) - 1} more" if len(unrun) > 1 else ""
            yield f"{turn}: {unrun[0]}{more} never ran, though a result was sent: its command left no trace"


def _unrun(turn: Turn) -> Iterator[tuple[str, str]]:
    """The token and the name of each such call; one of a tool that does not exist cannot run."""
    exist = {tool for call in turn.calls for tool in call.arrived.tools}
    for use in tool_uses_of(turn):
        runs = use.offered.traced and use.offered.whole and use.offered.name in exist
        if runs and use.results and not use.started:
            yield use.token, name_of_call(use)
