"""A tool call runs once."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise, starmap

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import after_deadline, compacts
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import AgentKilled
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed


@invariant("at_most_once_tools")
def at_most_once_tools(history: History) -> Iterator[Verdict]:
    """No tool call of the model runs twice: not after a retry, a restart or a message that is sent again.

    Judged by the call's own beacon. A retried step offers the same call again with the same token: to run the call of
    the complete reply once is right; to run the call of the cut reply too is not. It holds after a kill too: how far
    the first run came is unknown, so only the model or the user may ask for a second one. Not judged where the model
    asks again because a compaction left the first call out.

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
        if all(starmap(partial(_asked_anew, history), pairwise(beacons))):
            yield nothing(f"not judged: the model called {token}{names.get(token, '')} again after a compaction")
            continue
        kills = [kill for kill in history.of(AgentKilled) if beacons[0].id < kill.id < beacons[-1].id]
        times = "twice" if len(beacons) == 2 else f"{len(beacons)} times"
        says = f"tool call {token}{names.get(token, '')} ran {times}, {_when(beacons)}"
        yield fail(f"{says}{_kills(kills)}", sorted((*beacons, *kills), key=lambda event: event.id))


def _asked_anew(history: History, before: BeaconSeen, again: BeaconSeen) -> bool:
    """Whether a request for a summary came in between, and then a reply with this call to a request without it.

    The words of the summary are the model's, and so is the second call: the agent did not repeat it.
    """
    compacted = False
    for call in history.calls:
        if not before.id < call.arrived.id < again.id:
            continue
        compacted |= compacts(call) and call.paid
        offered = {it.token for it in call.ended.tool_calls} if call.ended is not None else set()
        carried = {it.token for it in call.arrived.results} | {it.token for it in call.arrived.open_calls or ()}
        if compacted and call.main and again.token in offered - carried:
            return True
    return False


def _when(beacons: Sequence[BeaconSeen]) -> str:
    waits = [f"{again.at_s - before.at_s:.1f} s" for before, again in pairwise(beacons)]
    return f"again after {waits[0]}" if len(waits) == 1 else f"the last time {waits[-1]} after the one before"


def _kills(kills: Sequence[AgentKilled]) -> str:
    whom = {
        "leader": "the agent",
        "tree": "the agent",
        "worker": "the process that asks the model",
        "subagent": "the subagent's process",
        "tool": "the tool",
        "server": "the tool server",
    }
    killed = dict.fromkeys(whom.get(kill.whom, kill.whom) for kill in kills)
    return f", with a kill of {' and '.join(killed)} in between" if killed else ""
