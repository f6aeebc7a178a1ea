"""A request offers each tool once."""

from collections import Counter
from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import main_calls_of, requests
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call


@invariant("tools_once", level="strict")
def tools_once(history: History) -> Iterator[Verdict]:
    """No request of the conversation offers two tools with one name.

    The copies are paid with each request, the model can't say which one it means, and some providers refuse such a
    request. It usually means that a part of the program adds its tools again with each turn, or that two tool servers
    have a tool of the same name.

    Fix: Build the list of tools anew for each request, and put the name of its server before a name that two have.
    """
    for turn in history.turns:
        calls = main_calls_of(turn)
        doubled = next((call for call in calls if _copies(call)), None)
        if doubled is not None:
            name, times = _copies(doubled)[0]
            yield fail(f"{turn}: request {doubled.number} offers the tool {name} {times} times", requests([doubled]))
        elif any(call.arrived.tools for call in calls):
            yield passed(because=f"{turn}: no request offers a tool twice")


def _copies(call: Call) -> list[tuple[str, int]]:
    """The tools that a request offers more than once; those of the provider have no name."""
    return [(name, times) for name, times in Counter(call.arrived.tools).items() if name and times > 1]
