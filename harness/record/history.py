"""The append-only record of one run, and its views for checks: `history.turns`, `turn.steps`, `step.calls`."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.base import Event, from_json
from wedgehog.harness.record.events.call import (
    CallUnscripted,
    HungUp,
    ReplyEnded,
    ReplyStarted,
    RequestArrived,
    RequestRefused,
    ToolCallOffered,
)
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import CpuWait, CpuWaitSeen, LagSeen, RunStarted, Trouble
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import (
    AbortSent,
    AgentKilled,
    DeadlineHit,
    Frozen,
    GaveUp,
    HangSeen,
    StartMissed,
    StimulusGiven,
    Thawed,
    TurnEnded,
)

E = TypeVar("E", bound=Event)
T = TypeVar("T")
K = TypeVar("K")

LAG_TOO_LONG_S = 5.0
"""Above this lag of the harness, time-based invariants cannot be judged."""
SEEN_LATE_S = 0.5
"""The close of a connection may be recorded so much later than the end of its agent."""


@dataclass(frozen=True)
class Call:
    """One request for the model, and its events."""

    arrived: RequestArrived
    refused: RequestRefused | None = None
    started: ReplyStarted | None = None
    ended: ReplyEnded | None = None
    hung_up: HungUp | None = None
    unscripted: CallUnscripted | None = None
    faults: tuple[FaultFired, ...] = ()
    stopped_by: str = ""
    """What closed the connection, or empty: "our SIGKILL", "our stop at the deadline", "the end of the run"."""

    @property
    def number(self) -> int:
        """The call's number in the run, from 1."""
        return self.arrived.call

    @property
    def at_s(self) -> float:
        """When the request arrived."""
        return self.arrived.at_s

    @property
    def main(self) -> bool:
        """Whether it belongs to the conversation, and is no background call (a title, a summary)."""
        return not self.arrived.background

    @property
    def paid(self) -> bool:
        """Whether the provider accepted it."""
        return self.started is not None

    @property
    def tokens_delivered(self) -> int:
        """Output tokens that reached the agent."""
        return self.ended.tokens_delivered if self.ended else 0

    @property
    def output_tokens(self) -> int:
        """Output tokens that were generated, so billed."""
        return self.ended.output_tokens if self.ended else 0

    @property
    def input_tokens(self) -> int:
        """Billed input tokens; 0 for a refused request."""
        return self.started.input_tokens if self.started else 0

    @property
    def progressed(self) -> bool:
        """Whether a text block or tool call arrived whole."""
        return self.ended is not None and self.ended.blocks_delivered > 0

    @property
    def whole(self) -> bool:
        """Whether the whole reply was delivered."""
        return self.ended is not None and self.ended.how == "complete" and self.hung_up is None

    @property
    def ok(self) -> bool:
        """Whether it was accepted, delivered whole, and not stopped at max_tokens."""
        return self.whole and self.ended is not None and self.ended.stop not in ("max_tokens", "error")

    @property
    def damaged(self) -> bool:
        """Whether a fault damaged its content: the stream or body, or the arguments of a tool call."""
        ended = self.ended
        return ended is not None and (ended.damaged or not all(offered.whole for offered in ended.tool_calls))

    @property
    def final(self) -> bool:
        """Whether its reply arrived whole and ends the turn."""
        return self.ok and self.ended is not None and self.ended.stop == "end"

    def open_after(self, event: int) -> bool:
        """Whether it arrived or was open after the event with this id."""
        ends = [end.id for end in (self.refused, self.ended, self.hung_up) if end is not None]
        return max(ends, default=event + 1) > event

    @property
    def limited(self) -> str:
        """A sentence if the agent's own limit of output tokens is too low for this reply; else empty."""
        if self.ended is None or self.ended.how != "complete" or not self.ended.tokens_needed:
            return ""
        return (
            f"call {self.number} allows {self.arrived.max_tokens} output tokens (max_tokens), "
            f"and the scripted reply needs {self.ended.tokens_needed}"
        )

    @property
    def failed_at_s(self) -> float | None:
        """The time of the refusal, the cut or the agent's hang-up; None for a whole reply."""
        if self.refused:
            return self.refused.at_s
        if self.hung_up:
            return self.hung_up.at_s
        if self.ended and self.ended.how != "complete":
            return self.ended.at_s
        return None

    @property
    def evidence(self) -> tuple[Event, ...]:
        """All events of this call."""
        parts = (self.arrived, self.refused, self.started, self.ended, self.hung_up, self.unscripted)
        return tuple(part for part in parts if part is not None) + self.faults


@dataclass(frozen=True)
class Step:
    """The main calls that carry the results of the same tool rounds: attempts of one step."""

    turn: int
    number: int
    calls: tuple[Call, ...]

    @property
    def paid_calls(self) -> tuple[Call, ...]:
        """The calls that the provider accepted."""
        return tuple(call for call in self.calls if call.paid)

    def __str__(self) -> str:
        """`1.2`: turn 1, step 2."""
        return f"{self.turn}.{self.number}"


@dataclass(frozen=True)
class ToolUse:
    """One tool call of the model, its runs and its results."""

    offered: ToolCallOffered
    reply: ReplyEnded
    turn: int
    step: int
    started: tuple[BeaconSeen, ...] = ()
    done: tuple[BeaconSeen, ...] = ()
    results: tuple[RequestArrived, ...] = ()
    """Requests that carry its result, in order."""

    @property
    def token(self) -> str:
        """turn.step.call"""
        return self.offered.token


@dataclass(frozen=True)
class Turn:
    """A stimulus and all that follows until its turn is over; turn 0, without a stimulus, holds all other calls."""

    number: int
    stimulus: StimulusGiven | None
    end: TurnEnded | None
    calls: tuple[Call, ...] = ()
    tool_uses: tuple[ToolUse, ...] = ()
    aborted: AbortSent | None = None
    gave_up: GaveUp | None = None
    deadline: DeadlineHit | None = None
    start_missed: StartMissed | None = None
    kept_away: tuple[FaultFired, ...] = ()
    """Faults of the model's link without a known request: a refused connection, a stalled upload."""
    start_up_s: float = 0.0
    killed: AgentKilled | None = None
    """The kill that ended the turn; None if the agent survived."""

    @cached_property
    def main_calls(self) -> tuple[Call, ...]:
        """Calls of the conversation, without background calls."""
        return tuple(call for call in self.calls if call.main)

    @cached_property
    def paid_calls(self) -> tuple[Call, ...]:
        """Main calls that the provider accepted."""
        return tuple(call for call in self.main_calls if call.paid)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Main calls by step, in order."""
        numbers = sorted({call.arrived.step for call in self.main_calls})
        return tuple(
            Step(self.number, n, tuple(call for call in self.main_calls if call.arrived.step == n)) for n in numbers
        )

    @property
    def recovery(self) -> bool:
        """Whether this is the turn of the recovery message."""
        return self.stimulus is not None and self.stimulus.stimulus == "recovery"

    @property
    def goes_on(self) -> bool:
        """Whether its last call is not a final reply."""
        last = self.main_calls[-1] if self.main_calls else None
        return last is not None and not last.final

    @property
    def start_s(self) -> float:
        """The time of the first request; if none came or a fault prevented it, message time plus usual start-up."""
        due_s = (self.stimulus.at_s if self.stimulus else 0.0) + self.start_up_s
        if not self.calls:
            return due_s
        first = self.calls[0].arrived
        kept_away = bool(self.kept_away) and self.kept_away[0].id < first.id
        return min(due_s, first.at_s) if kept_away else first.at_s

    @property
    def stopped(self) -> AbortSent | GaveUp | None:
        """The user's abort, or the event that the front end gave up, if any."""
        return self.aborted or self.gave_up

    @property
    def duration_s(self) -> float | None:
        """Seconds from the first request to the end of the turn."""
        return None if self.end is None else max(0.0, self.end.at_s - self.start_s)

    @property
    def exit_s(self) -> float:
        """Seconds from its last reply to its end; 0 without a reply."""
        last = max((call.ended.at_s for call in self.main_calls if call.ended is not None), default=None)
        return 0.0 if last is None or self.end is None else max(0.0, self.end.at_s - last)

    def __str__(self) -> str:
        """`turn 2`, or `the recovery message`."""
        return "the recovery message" if self.recovery else f"turn {self.number}"


class History:
    """The events of one run, in order."""

    def __init__(
        self,
        clock: Clock | None = None,
        sink: Callable[[Event], object] = lambda event: None,
        events: Iterable[Event] = (),
    ) -> None:
        """An empty history, or a finished one with `events`; `sink` gets each event at once."""
        self._clock, self._sink = clock, sink
        self.events: list[Event] = list(events)
        self.sealed = False

    def add(self, event: E) -> E:
        """Append one event; sets its id, and its time unless given. RuntimeError if the history is sealed."""
        if self.sealed:
            raise RuntimeError("the history is sealed")
        at_s = event.at_s if event.at_s >= 0 or self._clock is None else self._clock.now()
        placed = event.placed(len(self.events), at_s)
        self.events.append(placed)
        self._sink(placed)
        return placed

    def add_unless_sealed(self, event: Event) -> None:
        """Append one event that may also come after the end of the run, and then does not count."""
        if not self.sealed:
            self.add(event)

    def seal(self) -> "History":
        """End the history; from then on its views may be read."""
        self.sealed = True
        return self

    def of(self, kind: type[E]) -> Iterator[E]:
        """All events of one kind, in order."""
        return (event for event in self.events if isinstance(event, kind))

    def first(self, kind: type[E]) -> E | None:
        """The first event of one kind."""
        return next(self.of(kind), None)

    @property
    def run(self) -> RunStarted:
        """The settings of this run; empty ones if none are recorded."""
        return self.first(RunStarted) or RunStarted(
            scenario="", agent="", network="", time_scale=1.0, started="1970-01-01T00:00:00+00:00"
        )

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """Every request for the model, in order of arrival."""
        return _calls(self)

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the scenario and of the recovery, in order."""
        return tuple(turn for turn in _turns(self) if turn.number > 0)

    @cached_property
    def stray(self) -> Turn:
        """Calls without an open turn, as turn 0."""
        return next(turn for turn in _turns(self) if turn.number == 0)

    @cached_property
    def played_calls(self) -> tuple[Call, ...]:
        """The calls of the scenario, without those of the recovery message."""
        ours = {turn.number for turn in self.turns if turn.recovery}
        return tuple(call for call in self.calls if call.arrived.turn not in ours)

    @cached_property
    def watched_until(self) -> int:
        """The id of the last turn's end, after which the harness stops the agent and the network."""
        return max((event.id for event in self.of(TurnEnded)), default=len(self.events))

    @cached_property
    def cut_short(self) -> bool:
        """Whether the agent still made calls of the scenario when it was stopped, or when the history ends."""
        stopped = any(turn.deadline is not None and turn.goes_on for turn in self.turns if not turn.recovery)
        open_calls = any(call.open_after(self.watched_until) for call in self.played_calls)
        return bool(self.played_calls) and (not self.whole or stopped or open_calls)

    @cached_property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """Every tool call of every main reply, in order."""
        return _tool_uses(self)

    @property
    def whole(self) -> bool:
        """Whether the history reaches the end of the run, or an error of the harness."""
        return any(isinstance(event, LagSeen | Trouble) for event in self.events)

    @property
    def missing(self) -> int | None:
        """The id of the first missing event, or None."""
        return next((number for number, event in enumerate(self.events) if event.id != number), None)

    @property
    def lag_s(self) -> float:
        """The largest lag of the harness."""
        return max((event.worst_s for event in self.of(LagSeen)), default=0.0)

    @property
    def too_slow_to_judge_time(self) -> bool:
        """Whether the lag of the harness forbids a verdict on times."""
        return self.lag_s > LAG_TOO_LONG_S

    def beside(self, turn: Turn) -> tuple[Turn, ...]:
        """The turns that were open at the same time as this one."""
        return tuple(other for other in self.turns if other.number != turn.number and _overlap(turn, other))

    def frozen_s(self, since_s: float, until_s: float) -> float:
        """Seconds for which the agent itself was stopped between two times."""
        return sum(max(0.0, min(end, until_s) - max(begin, since_s)) for begin, end in self._freezes)

    @cached_property
    def _freezes(self) -> tuple[tuple[float, float], ...]:
        """Start and end of each, in order; without a recorded end, the planned duration counts."""
        thaws = [event for event in self.of(Thawed) if event.whom != "tool"]
        return tuple(
            (it.at_s, next((thaw.at_s for thaw in thaws if thaw.id > it.id), it.at_s + it.for_s))
            for it in self.of(Frozen)
            if it.whom != "tool"
        )

    def stretched(self, bound_s: float) -> float:
        """A time bound plus one second of grace."""
        return bound_s + 1.0

    def cpu_wait(self, since_s: float, until_s: float) -> CpuWait:
        """The waits for a processor in the periods that overlap these times."""
        waits = (wait for seen in self.of(CpuWaitSeen) for wait in seen.waits)
        between = (wait for wait in waits if wait.until_s > since_s and wait.since_s < until_s)
        return sum(between, start=CpuWait(since_s, until_s, 0.0))


def _firsts(history: History, owner: str) -> dict[int, dict[type[Event], Any]]:
    """The first event of each kind, by call or turn (`owner`)."""
    found: dict[int, dict[type[Event], Any]] = defaultdict(dict)
    for event in history.events:
        if hasattr(event, owner):
            found[getattr(event, owner)].setdefault(type(event), event)
    return found


def _by(key: Callable[[T], K], items: Iterable[T]) -> dict[K, list[T]]:
    found: dict[K, list[T]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found


def _calls(history: History) -> tuple[Call, ...]:
    firsts, stops = _firsts(history, "call"), _Stops(history)
    faults = _by(lambda fired: fired.call, history.of(FaultFired))

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
        )

    return tuple(map(call, history.of(RequestArrived)))


class _Stops:
    """Actions of the harness that close connections of the agent."""

    def __init__(self, history: History) -> None:
        self._kills = [kill for kill in history.of(AgentKilled) if kill.whom in ("tree", "leader")]
        self._begun: dict[int, Event] = {}
        for event in history.events:
            if isinstance(event, DeadlineHit | StartMissed | HangSeen):
                self._begun[event.turn] = event  # the last one of a turn
        self._ended = {end.turn: end.at_s for end in history.of(TurnEnded)}
        self._watched_until = history.watched_until

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


def _tool_uses(history: History) -> tuple[ToolUse, ...]:
    beacons = _by(lambda beacon: (beacon.token, beacon.phase), history.of(BeaconSeen))
    carried: dict[str, list[RequestArrived]] = defaultdict(list)
    for arrived in history.of(RequestArrived):
        for token in {result.token for result in arrived.results if result.token}:
            carried[token].append(arrived)

    def used(offered: ToolCallOffered, reply: ReplyEnded, asked: RequestArrived) -> ToolUse:
        started, done = (tuple(beacons[offered.token, phase]) for phase in ("started", "done"))
        return ToolUse(offered, reply, asked.turn, asked.step, started, done, tuple(carried[offered.token]))

    replies = ((call.ended, call.arrived) for call in history.calls if call.ended and call.main)
    return tuple(used(offered, ended, arrived) for ended, arrived in replies for offered in ended.tool_calls)


def _turns(history: History) -> tuple[Turn, ...]:
    stimuli: dict[int, StimulusGiven | None] = {0: None} | {it.turn: it for it in history.of(StimulusGiven)}
    firsts = _firsts(history, "turn")
    calls = _by(lambda call: call.arrived.turn, history.calls)
    uses = _by(lambda use: use.turn, history.tool_uses)
    without_call = (it for it in history.of(FaultFired) if it.link == "llm" and it.call is None and not it.slows)
    kept_away = _by(lambda fault: fault.turn, without_call)

    def turn(number: int, stimulus: StimulusGiven | None) -> Turn:
        first = firsts[number].get
        end = first(TurnEnded)
        return Turn(
            number,
            stimulus,
            end,
            tuple(calls[number]),
            tuple(uses[number]),
            first(AbortSent),
            first(GaveUp),
            first(DeadlineHit),
            first(StartMissed),
            tuple(kept_away[number]),
            history.run.start_up_s,
            _killed(history, stimulus, end),
        )

    return tuple(turn(*it) for it in sorted(stimuli.items()))


def _overlap(one: Turn, other: Turn) -> bool:
    if one.stimulus is None or other.stimulus is None:
        return False
    first, second = sorted((one, other), key=lambda turn: turn.stimulus.id if turn.stimulus else 0)
    return first.end is None or (second.stimulus is not None and second.stimulus.id < first.end.id)


def _killed(history: History, stimulus: StimulusGiven | None, end: TurnEnded | None) -> AgentKilled | None:
    """The last kill of the agent itself in a turn that a kill ended."""
    if stimulus is None or end is None or end.ended != "killed":
        return None
    kills = [kill for kill in history.of(AgentKilled) if stimulus.id < kill.id < end.id]
    return next((kill for kill in reversed(kills) if kill.whom in ("tree", "leader")), None)


def read(path: Path) -> History:
    """Read a stored history (JSONL) without a half-written last line. ValueError, with its number, for another one."""
    events: list[Event] = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            events.append(from_json(json.loads(line.decode("utf-8"))))
        except ValueError as wrong:
            if number == len(lines):
                break
            raise ValueError(f"{path}:{number}: {wrong}") from None
    return History(events=events).seal()


def longest_run(items: Iterable[T], holds: Callable[[T], bool]) -> tuple[T, ...]:
    """The longest run of consecutive items for which `holds` is true; the first of equals."""
    return max((tuple(row) for held, row in groupby(items, holds) if held), key=len, default=())
