"""A tool server that dies whenever it starts is not started for ever."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.invariants.overload import passed_unless_starved
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed

WINDOW_S = 20.0
"""Real seconds. An agent that waits a second between two tries starts fewer than are allowed."""

MANY = 10
"""On a busy machine a start takes seconds, so that more than these may be a storm there."""


@invariant("server_start_bound")
def server_start_bound(history: History, *, starts_in_20_s: int = 25) -> Iterator[Verdict]:
    """A tool server over stdio that a fault kills is started at most `starts_in_20_s` times within twenty seconds.

    An agent that starts its dead server anew at once, and again, fills the machine with processes: public reports tell
    of tens of thousands. Judged on programs behind `wedgehog-pipe`. A start counts if a fault struck it.

    Fix: Wait longer before each further start of a server that died, and give up after some. Begin again with short
    waits when it has worked for a while, not when it has started. Tell the user, and work on without its tools.
    """
    struck = [fired for fired in history.of(FaultFired) if fired.link.startswith("ipc:")]
    for turn, link in sorted({(fired.turn, fired.link) for fired in struck}):
        most = _densest([it for it in struck if (it.turn, it.link) == (turn, link)])
        says = f"{link.removeprefix('ipc:')} was started {len(most)} times within 20 s, and died each time"
        if len(most) > starts_in_20_s:
            yield fail(f"{says}; {starts_in_20_s} allowed", (most[0], most[-1]))
        elif len(most) > MANY:
            yield passed_unless_starved(history, says, (most[0], most[-1]), most[0].at_s, most[-1].at_s)
        else:
            yield passed(because=says)


def _densest(struck: Sequence[FaultFired]) -> Sequence[FaultFired]:
    """The most of them within the window."""
    windows = ([it for it in struck[n:] if it.at_s - first.at_s <= WINDOW_S] for n, first in enumerate(struck))
    return max(windows, key=len, default=())
