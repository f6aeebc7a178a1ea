"""A run as Chrome trace events, for Perfetto and chrome://tracing: the lanes of its timeline as tracks.

    process: a run ── thread: a row of a lane ── X: a span, and its parts inside it ── i: a moment

Timestamps are whole microseconds of the run's clock.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from sys import maxsize
from typing import Any

from wedgehog.harness.record.history import History
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.record.views import Call
from wedgehog.reports.call_attributes import call_rows
from wedgehog.reports.calls import VIOLATING, violations
from wedgehog.reports.lane import Lane, LaneItem
from wedgehog.reports.lanes import lanes, phases

VIOLATIONS = "violations"
"""The name of the last track."""


def trace_events(run: StoredRun, number: int, name: str) -> Iterator[dict[str, Any]]:
    """All events of one run. `number`, from 1, is its process in the trace, and `name` the name of that."""
    history, judged = run.history, run.judgement
    drawn = _TracedRun(
        number, history, violations(judged.verdicts), {row["wedgehog.call"]: row for row in call_rows(run)}
    )
    yield _named("process_name", number, 0, f"{name}: {judged.verdict}")
    for lane in lanes(history, judged.remarks, most_rows=maxsize):
        yield from drawn.lane(lane)
    yield from drawn.violated(judged.verdicts)


def microseconds(at_s: float) -> int:
    """A moment of the run as the trace has it."""
    return round(max(at_s, 0.0) * 1e6)


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _short(item: LaneItem) -> str:
    """The sentence up to its first colon: `call 3, 1.2.1`."""
    return item.says.partition(": ")[0]


@dataclass
class _TracedRun:
    """Gives each row of each lane a thread."""

    process: int
    history: History
    bad: Mapping[int, Sequence[str]]
    rows: Mapping[int, Mapping[str, Any]]
    """The attributes of each call."""
    threads: int = 0

    def lane(self, lane: Lane) -> Iterator[dict[str, Any]]:
        """The tracks of a lane, with what lies in them; a part that outlasts its span lies on a track of its own."""
        calls = {call.arrived.id: call for call in self.history.calls}
        known: dict[int, int] = {}
        spans: dict[int, LaneItem] = {}
        for item in lane.items:
            row = item.row
            if item.end_s is not None and item.whole:
                spans[row] = item
            elif item.end_s is not None and not _inside(item, spans.get(row)):
                row = -1
            if row not in known:
                known[row] = self._thread()
                yield _named("thread_name", self.process, known[row], _track(lane.name, row))
            call = calls.get(item.events[0]) if item.whole and item.events and item.end_s is not None else None
            yield from self._item(item, known[row], call)

    def violated(self, verdicts: Sequence[Verdict]) -> Iterator[dict[str, Any]]:
        """A moment for each event that violates an invariant."""
        bad = [it for it in verdicts if it.status in VIOLATING]
        found = [
            (event, it.name, it.status, one.like or one.says)
            for it in bad
            for one in it.violations
            for event in one.evidence
        ]
        if not found:
            return
        thread = self._thread()
        yield _named("thread_name", self.process, thread, VIOLATIONS)
        for number, name, status, says in sorted(found):
            if 0 <= number < len(self.history.events):
                args = {"says": says, "status": status, "events": [number]}
                yield self._moment(self.history.events[number].at_s, thread, name, "violation", args)

    def _thread(self) -> int:
        self.threads += 1
        return self.threads

    def _item(self, item: LaneItem, thread: int, call: Call | None) -> Iterator[dict[str, Any]]:
        args: dict[str, Any] = {"says": item.says, "events": list(item.events)}
        if violates := sorted({name for event in item.events for name in self.bad.get(event, ())}):
            args["violates"] = violates
        if item.end_s is None:
            yield self._moment(item.start_s, thread, _short(item), item.tone, args)
        elif call is not None:
            more = {key: value for key, value in self.rows[call.number].items() if value is not None}
            yield self._span(item.start_s, item.end_s, thread, _short(item), item.tone, args | more)
            yield from self._phases(call, item.end_s, thread)
        elif item.tone != "stream":  # it is one of the call's phases
            yield self._span(item.start_s, item.end_s, thread, _short(item), item.tone, args)

    def _phases(self, call: Call, end_s: float, thread: int) -> Iterator[dict[str, Any]]:
        for name, first_s, until_s in phases(call, end_s):
            args = {"wedgehog.call": call.number}
            yield self._span(first_s, until_s, thread, name, "phase", args)
            if name == "stream":
                yield self._moment(first_s, thread, "first byte", "phase", args)

    def _span(
        self, from_s: float, until_s: float, thread: int, name: str, kind: str, args: Mapping[str, Any]
    ) -> dict[str, Any]:
        start, end = microseconds(from_s), microseconds(until_s)
        place = {"ts": start, "dur": max(0, end - start), "pid": self.process, "tid": thread}
        return {"ph": "X", "name": name, "cat": kind, **place, "args": args}

    def _moment(self, at_s: float, thread: int, name: str, kind: str, args: Mapping[str, Any]) -> dict[str, Any]:
        place = {"ts": microseconds(at_s), "s": "t", "pid": self.process, "tid": thread}
        return {"ph": "i", "name": name, "cat": kind, **place, "args": args}


def _track(lane: str, row: int) -> str:
    return lane if row == 0 else f"{lane}, meanwhile" if row < 0 else f"{lane} {row + 1}"


def _inside(part: LaneItem, span: LaneItem | None) -> bool:
    if span is None or span.end_s is None or part.end_s is None:
        return False
    return span.start_s <= part.start_s and part.end_s <= span.end_s
