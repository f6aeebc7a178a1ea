"""The history of one run: its events, and their views for checks: `history.turns`, `turn.steps`, `step.calls`."""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from wedgehog.harness.record.build_views import build_calls, build_tool_uses, build_turns, overlap
from wedgehog.harness.record.by_session import events_of
from wedgehog.harness.record.event_log import EventLog
from wedgehog.harness.record.events.base import Event, from_line
from wedgehog.harness.record.events.run import CpuWait, CpuWaitSeen, LagSeen, Trouble
from wedgehog.harness.record.events.turn import AGENT_ITSELF, Frozen, StimulusGiven, Thawed
from wedgehog.harness.record.left_working import asks_on
from wedgehog.harness.record.views import Call, ToolUse, Turn

T = TypeVar("T")

LAG_TOO_LONG_S = 5.0
"""Above this lag of the harness, time-based invariants cannot be judged."""


class History(EventLog):
    """The events of one run, and its views. The views may be read when the history is sealed."""

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """Every request for the model, in order of arrival."""
        return build_calls(self)

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the scenario and of the recovery, in order."""
        return tuple(turn for turn in self._all_turns if turn.number > 0)

    @cached_property
    def stray(self) -> Turn:
        """Calls without an open turn, as turn 0."""
        return next(turn for turn in self._all_turns if turn.number == 0)

    @cached_property
    def _all_turns(self) -> tuple[Turn, ...]:
        return build_turns(self, self.calls, self.tool_uses)

    @cached_property
    def played_calls(self) -> tuple[Call, ...]:
        """The calls of the scenario, without those of the recovery message."""
        ours = {turn.number for turn in self.turns if turn.recovery}
        return tuple(call for call in self.calls if call.arrived.turn not in ours)

    @cached_property
    def cut_short(self) -> bool:
        """Whether the agent was stopped, or the history ends, before its work on the scenario was done."""
        stopped = any(self.is_cut_short(turn) for turn in self.turns if not turn.recovery)
        open_calls = any(call.open_after(self.watched_until) for call in self.played_calls)
        return bool(self.played_calls) and (not self.whole or stopped or open_calls)

    def is_cut_short(self, turn: Turn) -> bool:
        """Whether the agent was stopped, or the history ends, before its work on this turn was done."""
        ends_s = self.events[-1].at_s if self.events else 0.0
        return (turn.deadline is not None and turn.goes_on) or asks_on(turn, ends_s)

    @cached_property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """Every tool call of every main reply, in order."""
        return build_tool_uses(self, self.calls)

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
        """The turns of its session that were open at the same time as this one."""
        return tuple(it for it in self.in_parallel(turn) if it.session == turn.session)

    def in_parallel(self, turn: Turn) -> tuple[Turn, ...]:
        """The turns that were open at the same time as this one, of any session."""
        return tuple(other for other in self.turns if other.number != turn.number and overlap(turn, other))

    @cached_property
    def sessions(self) -> "Mapping[str, History]":
        """What happened in each session, by its name; a history of one session has itself."""
        names = tuple(dict.fromkeys(given.session for given in self.of(StimulusGiven)))
        if len(names) < 2:
            return dict.fromkeys(names, self)
        return {name: History(events=events_of(self, name)).seal() for name in names}

    def frozen_s(self, since_s: float, until_s: float) -> float:
        """Seconds for which the agent itself was stopped between two times."""
        return sum(max(0.0, min(end, until_s) - max(begin, since_s)) for begin, end in self._freezes)

    @cached_property
    def _freezes(self) -> tuple[tuple[float, float], ...]:
        """Start and end of each, in order; without a recorded end, the planned duration counts."""
        thaws = [event for event in self.of(Thawed) if event.whom in AGENT_ITSELF]
        return tuple(
            (it.at_s, next((thaw.at_s for thaw in thaws if thaw.id > it.id), it.at_s + it.for_s))
            for it in self.of(Frozen)
            if it.whom in AGENT_ITSELF
        )

    def stretched(self, bound_s: float) -> float:
        """A time bound plus one second of grace."""
        return bound_s + 1.0

    def cpu_wait(self, since_s: float, until_s: float) -> CpuWait:
        """The waits for a processor in the periods that overlap these times."""
        waits = (wait for seen in self.of(CpuWaitSeen) for wait in seen.waits)
        between = (wait for wait in waits if wait.until_s > since_s and wait.since_s < until_s)
        return sum(between, start=CpuWait(since_s, until_s, 0.0))


def read(path: Path) -> History:
    """Read a stored history (JSONL) without a half-written last line. ValueError, with its number, for another one."""
    events: list[Event] = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            events.append(from_line(line))
        except ValueError as wrong:
            if number == len(lines):
                break
            raise ValueError(f"{path}:{number}: {wrong}") from None
    return History(events=events).seal()


def add_trouble(path: Path, what: str) -> None:
    """Append an error to a stored history whose run can write no more, in the place of a half-written last line."""
    kept = path.read_bytes()
    path.write_bytes(kept[: kept.rfind(b"\n") + 1])
    events = read(path).events
    trouble = Trouble(what=what).placed(len(events), events[-1].at_s if events else 0.0)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(trouble.as_json()) + "\n")


def longest_run(items: Iterable[T], holds: Callable[[T], bool]) -> tuple[T, ...]:
    """The longest run of consecutive items for which `holds` is true; the first of equals."""
    return max((tuple(row) for held, row in groupby(items, holds) if held), key=len, default=())
