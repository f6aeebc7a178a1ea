"""Builds the views of a history from its events."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from wedgehog.harness.record.event_log import EventLog
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import (
    CallUnscripted,
    HungUp,
    ReplyEnded,
    ReplyStarted,
    RequestArrived,
    RequestRefused,
    ToolCallOffered,
)
from wedgehog.harness.record.events.fault import FaultFired, FaultHealed
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import (
    AGENT_ITSELF,
    AbortSent,
    AgentKilled,
    DeadlineHit,
    GaveUp,
    HangSeen,
    StartMissed,
    StimulusGiven,
    TurnEnded,
)
from wedgehog.harness.record.views import Call, ToolUse, Turn

T = TypeVar("T")
K = TypeVar("K")


SEEN_LATE_S = 0.5
"""The close of a connection may be recorded this much later than the end of its agent."""


def _firsts(log: EventLog, owner: str) -> dict[int, dict[type[Event], Any]]:
    """The first event of each kind, by call or turn (`owner`)."""
    found: dict[int, dict[type[Event], Any]] = defaultdict(dict)
    for event in log.events:
        if hasattr(event, owner):
            found[getattr(event, owner)].setdefault(type(event), event)
    return found


def _by(key: Callable[[T], K], items: Iterable[T]) -> dict[K, list[T]]:
    found: dict[K, list[T]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found


def build_calls(log: EventLog) -> tuple[Call, ...]:
    """Every request for the model, in order of arrival."""
    firsts, stops = _firsts(log, "call"), _Stops(log)
    faults = _by(lambda fired: fired.call, log.of(FaultFired))

    def call(arrived: RequestArrived) -> Call:
        first, struck = firsts[arrived.call].get, tuple(faults[arrived.call])
        hung_up = first(HungUp)
        return Call(
            arrived,
            first(RequestRefused),
            first(ReplyStarted),
            first(ReplyEnded),
            hung_up,
            first(CallUnscripted),
            struck,
            stops.of(arrived, hung_up),
            None if hung_up else _waited_until_s(log, first(ReplyEnded), struck),
        )

    return tuple(map(call, log.of(RequestArrived)))


def _waited_until_s(log: EventLog, ended: ReplyEnded | None, struck: Iterable[FaultFired]) -> float | None:
    """When a reply that stalled and stayed open was no longer waited for: at the latest when its fault was removed."""
    if ended is None or ended.how != "stalled":
        return None
    faults = {fired.fault for fired in struck}
    healed = (it.at_s for it in log.of(FaultHealed) if it.id > ended.id and it.fault in faults)
    return next(healed, log.events[-1].at_s)


class _Stops:
    """Actions of the harness that close connections of the agent."""

    def __init__(self, log: EventLog) -> None:
        self._kills = [kill for kill in log.of(AgentKilled) if kill.whom in AGENT_ITSELF]
        self._begun: dict[int, Event] = {}
        for event in log.events:
            if isinstance(event, DeadlineHit | StartMissed | HangSeen):
                self._begun[event.turn] = event  # the last one of a turn
        self._ended = {end.turn: end.at_s for end in log.of(TurnEnded)}
        self._watched_until = log.watched_until

    def of(self, arrived: RequestArrived, gone: HungUp | None) -> str:
        """The action that closed the connection of this call; empty if the agent did."""
        if gone is None:
            return ""
        kill = next((kill for kill in self._kills if arrived.id < kill.id < gone.id), None)
        if kill is not None:
            return f"our {kill.signal}"
        stop, over_s = self._begun.get(arrived.turn), self._ended.get(arrived.turn, gone.at_s)
        if stop is not None and stop.id < gone.id and gone.at_s <= over_s + SEEN_LATE_S:
            return "our stop at the deadline"
        return "the end of the run" if gone.id > self._watched_until else ""


def build_tool_uses(log: EventLog, calls: tuple[Call, ...]) -> tuple[ToolUse, ...]:
    """Every tool call of every main reply, in order."""
    beacons = _by(lambda beacon: (beacon.token, beacon.phase), log.of(BeaconSeen))
    carried: dict[str, list[RequestArrived]] = defaultdict(list)
    for arrived in log.of(RequestArrived):
        for token in {result.token for result in arrived.results if result.token}:
            carried[token].append(arrived)

    def used(offered: ToolCallOffered, reply: ReplyEnded, asked: RequestArrived) -> ToolUse:
        started, done = (tuple(beacons[offered.token, phase]) for phase in ("started", "done"))
        return ToolUse(offered, reply, asked.turn, asked.step, started, done, tuple(carried[offered.token]))

    replies = ((call.ended, call.arrived) for call in calls if call.ended and call.main)
    return tuple(used(offered, ended, arrived) for ended, arrived in replies for offered in ended.tool_calls)


OF_DATABASES = ("tcp:", "store")
"""How the names of the links of databases begin: the user's own servers, and ours."""


def build_turns(log: EventLog, calls: tuple[Call, ...], uses: tuple[ToolUse, ...]) -> tuple[Turn, ...]:
    """All turns in order; turn 0 holds the calls without an open turn."""
    stimuli: dict[int, StimulusGiven | None] = {0: None} | {it.turn: it for it in log.of(StimulusGiven)}
    firsts = _firsts(log, "turn")
    calls_of = _by(lambda call: call.arrived.turn, calls)
    uses_of = _by(lambda use: use.turn, uses)
    without_call = (it for it in log.of(FaultFired) if it.link == "llm" and it.call is None and not it.slows)
    kept_away = _by(lambda fault: fault.turn, without_call)
    held_up = _by(lambda fault: fault.turn, (it for it in log.of(FaultFired) if it.link.startswith(OF_DATABASES)))

    def turn(number: int, stimulus: StimulusGiven | None) -> Turn:
        first = firsts[number].get
        end = first(TurnEnded)
        return Turn(
            number,
            stimulus,
            end,
            tuple(calls_of[number]),
            tuple(uses_of[number]),
            first(AbortSent),
            first(GaveUp),
            first(DeadlineHit),
            first(StartMissed),
            tuple(kept_away[number]),
            tuple(held_up[number]),
            log.run.start_up_s,
            _killed(log, stimulus, end),
        )

    return tuple(turn(*it) for it in sorted(stimuli.items()))


def overlap(one: Turn, other: Turn) -> bool:
    """Whether both turns were open at the same time."""
    if one.stimulus is None or other.stimulus is None:
        return False
    first, second = sorted((one, other), key=lambda turn: turn.stimulus.id if turn.stimulus else 0)
    return first.end is None or (second.stimulus is not None and second.stimulus.id < first.end.id)


def _killed(log: EventLog, stimulus: StimulusGiven | None, end: TurnEnded | None) -> AgentKilled | None:
    """The last kill of the agent itself in a turn that a kill ended."""
    if stimulus is None or end is None or end.ended != "killed":
        return None
    kills = [kill for kill in log.of(AgentKilled) if stimulus.id < kill.id < end.id]
    return next((kill for kill in reversed(kills) if kill.whom in AGENT_ITSELF), None)
