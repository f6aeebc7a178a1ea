"""A tool call runs once."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import after_deadline
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import AgentKilled
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("at_most_once_tools")
def at_most_once_tools(history: History) -> Iterator[Verdict]:
    """No tool call of the model runs twice: not after a retry, a restart or a message that is sent again.

    Judged by the call's own beacon. A retried step offers the same call again with the same token: to run the call of
    the complete reply once is right; to run the call of the cut reply too is not. It holds after a kill too: how far
    the first run came is unknown, so only the model or the user may ask for a second one.

    Fix: Write the id of a tool call into the session before the tool starts. After a retry or a restart send the
    stored result for that id, or a result that says `interrupted`; do not start the tool again.
    """
    starts: dict[str, list[BeaconSeen]] = {}
    for beacon in history.of(BeaconSeen):
        if beacon.phase == "started" and not after_deadline(history, beacon):
            starts.setdefault(beacon.token, []).append(beacon)
    names = {use.token: f" ({use.offered.name})" for use in history.tool_uses}
    for token, beacons in starts.items():
        if len(beacons) == 1:
            yield passed(because=f"tool call {token}{names.get(token, '')} was started once")
            continue
        kills = [kill for kill in history.of(AgentKilled) if beacons[0].id < kill.id < beacons[-1].id]
        times = "twice" if len(beacons) == 2 else f"{len(beacons)} times"
        says = f"tool call {token}{names.get(token, '')} ran {times}, {_when(beacons)}"
        yield fail(f"{says}{_kills(kills)}", sorted((*beacons, *kills), key=lambda event: event.id))


def _when(beacons: Sequence[BeaconSeen]) -> str:
    waits = [f"{again.at_s - before.at_s:.1f} s" for before, again in pairwise(beacons)]
    return f"again after {waits[0]}" if len(waits) == 1 else f"the last time {waits[-1]} after the one before"


def _kills(kills: Sequence[AgentKilled]) -> str:
    whom = {"leader": "the agent", "tree": "the agent", "tool": "the tool", "server": "the tool server"}
    killed = dict.fromkeys(whom.get(kill.whom, kill.whom) for kill in kills)
    return f", with a kill of {' and '.join(killed)} in between" if killed else ""
