"""What must not depend on the world: all that a client saw, and all that the history says of it but times."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from tests.parity.worlds.clients import Seen
from tests.parity.worlds.play import Played
from wedgehog.harness.faults.base import Fault, WireFault, parameters
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import ReplyEnded
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import AgentStarted, ConnectionsWatched, CpuWaitSeen, LagSeen, RunStarted
from wedgehog.harness.record.events.turn import TurnEnded
from wedgehog.harness.record.ledger import ledger_of

OWN = (RunStarted, AgentStarted, LagSeen, CpuWaitSeen, ConnectionsWatched, TurnEnded)
"""Events that name the world, the machine or a time; what a turn ended with, the client saw."""
OWN_FIELDS = ("id", "conn", "host", "proof")
IN_TIME = ("body_bytes", "bytes_delivered", "tokens_delivered", "blocks_delivered", "text_delivered")
"""What depends on how much came before a timeout."""

DATES = re.compile(rb'"(?:created|created_at|completed_at|\w+_duration)": ?[\d.]+|\d{4}-\d\d-\d\dT[\d:.]+Z')
"""The calendar of the world, and what the provider measured."""


def differences(one: Played, other: Played) -> Iterator[str]:
    """A line for each thing that is not the same in both."""
    first, second = told(one), told(other)
    for what in sorted(first.keys() | second.keys()):
        if first.get(what) != second.get(what):
            yield f"{one.scenario.name} {what}:\n    {first.get(what)}\n    {second.get(what)}"


def untold(played: Played) -> Iterator[str]:
    """A line for each answer that came whole, and that the history does not call whole."""
    for turn, tries in zip(played.history.turns, played.seen, strict=False):
        if tries[-1].ended == "whole" and tries[-1].status == 200:
            ended = turn.calls[-1].ended
            if turn.calls[-1].refused is None and (
                ended is None or (ended.how, ended.bytes_delivered) not in _whole(ended)
            ):
                yield f"{played.scenario.name} turn {turn.number} came whole, and the history says {ended}"


def _whole(ended: ReplyEnded) -> list[tuple[str, int]]:
    return [(how, ended.body_bytes) for how in ("complete", "ended early")]


def told(played: Played) -> dict[str, Any]:
    """Everything that is compared, by a name."""
    events, faults = played.history.events, [words.fault for words in played.scenario.faults]
    paced = {turn for turn, fault in enumerate(faults, 1) if is_paced(fault)}
    found: dict[str, Any] = {
        f"turn {turn} try {number}": _Prefix(seen) if turn in paced and "Timeout" in seen.ended else _exact(seen)
        for turn, tries in enumerate(played.seen, 1)
        for number, seen in enumerate(tries, 1)
    }
    for call in played.history.calls:
        mine = [it for it in events if getattr(it, "call", None) == call.number and not _is_late(it)]
        late = call.arrived.turn in paced and call.ended is not None and call.ended.how != "complete"
        found[f"call {call.number}"] = [_plain(it, IN_TIME if late else ()) for it in mine]
    for index in range(len(faults)):
        found[f"fault {index + 1}"] = [_plain(it) for it in events if getattr(it, "fault", None) == index]
    found["other events"] = [_plain(it) for it in events if not isinstance(it, OWN) and not _is_of(it)]
    found["verdicts"] = [(verdict.name, verdict.status) for verdict in played.judgement.verdicts]
    sums = asdict(ledger_of(played.history).total)
    found["ledger"] = {name: sums[name] for name in sums if name not in IN_TIME or not paced}
    return found


def is_paced(fault: Fault) -> bool:
    """Whether the count of bytes at a timeout depends on the clock."""
    if isinstance(fault, WireFault):
        return fault.slows
    return any(parameter.seconds for parameter in parameters(type(fault)).values())


def _exact(seen: Seen) -> dict[str, Any]:
    return {**asdict(seen), "body": DATES.sub(b"DATE", seen.body)}


class _Prefix:
    """A try that ended by the client's own timer: of two of them one has the bytes of the other, and maybe more."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Prefix):
            return False
        short, long = sorted((_exact(self.seen), _exact(other.seen)), key=lambda it: len(it["body"]))
        return {**long, "body": long["body"][: len(short["body"])]} == short

    def __repr__(self) -> str:
        return repr(self.seen)


def _is_late(event: Event) -> bool:
    """The proof of a slow link may come before or after the last byte: it is compared as an event of its fault."""
    return isinstance(event, FaultFired) and event.slows


def _is_of(event: Event) -> bool:
    return hasattr(event, "call") or hasattr(event, "fault")


def _plain(event: Event, but: tuple[str, ...] = ()) -> dict[str, Any]:
    """Its fields but times, whose names end in `_s`."""
    told = event.as_json().items()
    return {name: value for name, value in told if name not in (*OWN_FIELDS, *but) and not name.endswith("_s")}
