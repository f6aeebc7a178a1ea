"""A run as OpenTelemetry spans in OTLP/JSON: run > turn > call > tool, with the times of its timeline.

Names are those of OpenTelemetry's GenAI conventions where there is one, else they begin with `wedgehog.`. What the
timeline shows besides these spans is an event of the span in which it happened.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.views import Call, Turn
from wedgehog.reports.call_attributes import call_rows
from wedgehog.reports.calls import VIOLATING, ending
from wedgehog.reports.lane import Lane, LaneItem, span_of
from wedgehog.reports.lanes import lanes
from wedgehog.reports.tool_runs import tool_runs

INTERNAL, CLIENT = 1, 3
"""Kinds of spans."""
ERROR = 2
"""The status of a span that failed."""
SPANS = ("user", "agent", "model calls", "tools")
"""The lanes whose spans are spans here; those of other lanes are events."""


@dataclass
class _Span:
    name: str
    key: str
    """Unique in the run; the id follows from it."""
    start_s: float
    end_s: float
    parent: "_Span | None" = None
    kind: int = INTERNAL
    attributes: Mapping[str, object] = field(default_factory=dict)
    failed: str = ""
    """Why it failed; empty if it did not."""
    events: list[tuple[float, str, Mapping[str, object]]] = field(default_factory=list)

    def add(self, at_s: float, name: str, attributes: Mapping[str, object]) -> None:
        """Add an event."""
        self.events.append((at_s, name, attributes))


def resource_spans(run: StoredRun, place: str) -> dict[str, Any]:
    """The trace of one run. `place`, its campaign and folder, decides its ids: they are the same each time."""
    first = run.history.first(AgentStarted)
    service = {"service.name": run.judgement.agent, "service.version": (first.version if first else "") or None}
    began = datetime.fromisoformat(run.history.run.started)
    zero_ns = round(began.timestamp() * 1e6) * 1_000 - _ns(run.history.run.at_s)
    trace = hashlib.sha256(place.encode()).hexdigest()[:32]
    spans = [_as_json(span, trace, zero_ns) for span in _Spans(run, place).all()]
    return {
        "resource": {"attributes": _attributes(service)},
        "scopeSpans": [{"scope": {"name": "wedgehog"}, "spans": spans}],
    }


class _Spans:
    """Builds the spans of a run from its lanes: they have the times, and the history says what belongs to what."""

    def __init__(self, run: StoredRun, place: str) -> None:
        self.run, self.history, self.place = run, run.history, place
        self.lanes = lanes(self.history, run.judgement.remarks)
        self.items = {item.events[0]: item for item in self._items() if item.whole and item.end_s is not None}
        self.rows = {row["wedgehog.call"]: row for row in call_rows(run)}

    def _items(self) -> Iterator[LaneItem]:
        yield from (item for lane in self.lanes if lane.name in SPANS for item in lane.items if item.events)

    def all(self) -> list[_Span]:
        """The spans, parents before their children."""
        root = self._root()
        turns = [self._turn(turn, root) for turn in self.history.turns]
        calls = {
            call.number: self._call(call, parent)
            for turn, parent in zip(self.history.turns, turns, strict=True)
            for call in turn.calls
        }
        own = [span for span in turns if span is not root]
        tools = list(self._tools(calls))
        for lane in self.lanes:
            self._events(lane, root, own, calls)
        self._violated(root)
        return [root, *own, *calls.values(), *tools]

    def _root(self) -> _Span:
        judged, ran = self.run.judgement, self.history.run
        end_s = max([span_of(self.lanes), *(event.at_s for event in self.history.events)])
        says = {
            "scenario": judged.scenario,
            "agent": judged.agent,
            "repeat": judged.repeat,
            "verdict": judged.verdict,
            "violated": list(judged.violated),
            "expected": judged.expected or None,
            "says": judged.says or None,
            "network": ran.network,
            "world": judged.world,
            "time_scale": ran.time_scale,
        }
        failed = (judged.says or judged.verdict) if judged.verdict in VIOLATING else ""
        attributes = {f"wedgehog.{key}": value for key, value in says.items()}
        return _Span(f"run {judged.scenario}", "run", 0.0, end_s, attributes=attributes, failed=failed)

    def _turn(self, turn: Turn, root: _Span) -> _Span:
        """The span of a message; calls without one belong to the run."""
        given = turn.stimulus
        if given is None:
            return root
        item, came = self.items[given.id], outcome_of(turn, self.history)
        agent = self.run.judgement.agent
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "gen_ai.conversation.id": self.place,
            "wedgehog.turn": turn.number,
            "wedgehog.stimulus": given.stimulus,
            "wedgehog.outcome": came.kind,
        }
        failed = item.says if item.tone in ("bad", "warn") else ""
        name, key = f"invoke_agent {agent}", f"turn {turn.number}"
        return _Span(name, key, item.start_s, item.until_s, root, INTERNAL, attributes, failed)

    def _call(self, call: Call, parent: _Span) -> _Span:
        item, row = self.items[call.arrived.id], self.rows[call.number]
        failed = "" if call.ok else ending(call)
        more = {"gen_ai.conversation.id": self.place}
        name = f"chat {call.arrived.model}"
        return _Span(name, f"call {call.number}", item.start_s, item.until_s, parent, CLIENT, row | more, failed)

    def _tools(self, calls: Mapping[int, _Span]) -> Iterator[_Span]:
        for run in tool_runs(self.history):
            use, item = run.use, self.items[run.began.id]
            code = None if run.done is None else run.done.exit_code
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": use.offered.name,
                "gen_ai.tool.type": "function",
                "wedgehog.token": use.token,
                "wedgehog.exit_code": code,
            }
            failed = item.says if run.done is None or code else ""
            key, parent = f"tool {run.began.id}", calls[use.reply.call]
            name = f"execute_tool {use.offered.name}"
            yield _Span(name, key, item.start_s, item.until_s, parent, INTERNAL, attributes, failed)

    # ---- events of spans

    def _events(self, lane: Lane, root: _Span, turns: list[_Span], calls: Mapping[int, _Span]) -> None:
        """What is no span here becomes an event: on its call or the call that it hit, else on the turn of its time."""
        span: _Span | None = None
        for item in lane.items:
            if item.end_s is not None and item.whole and lane.name in SPANS:
                span = next((calls[n] for n in map(self._call_of, item.events) if n in calls), None)
            elif item.tone != "stream":
                during = next((turn for turn in reversed(turns) if turn.start_s <= item.start_s <= turn.end_s), root)
                hit = next((calls[n] for n in map(self._call_of, item.events) if n in calls), during)
                (hit if item.whole or span is None else span).add(*_as_event(lane.name, item))

    def _call_of(self, number: int) -> int:
        """The call of an event; 0 if it has none."""
        event = self.history.events[number]
        return getattr(event, "call", None) or 0

    def _violated(self, root: _Span) -> None:
        bad = [it for it in self.run.judgement.verdicts if it.status in VIOLATING]
        for name, violation in ((it.name, one) for it in bad for one in it.violations):
            for number in violation.evidence:
                if 0 <= number < len(self.history.events):
                    says = {"wedgehog.invariant": name, "wedgehog.says": violation.like or violation.says}
                    root.add(self.history.events[number].at_s, "wedgehog.violation", says)


def _as_event(lane: str, item: LaneItem) -> tuple[float, str, Mapping[str, object]]:
    took_s = None if item.end_s is None else item.until_s - item.start_s
    says = {"wedgehog.says": item.says, "wedgehog.duration_s": took_s, "wedgehog.events": list(item.events)}
    return item.start_s, f"wedgehog.{lane.replace(' ', '_')}", says


# ---- JSON


def _ns(at_s: float) -> int:
    return round(max(at_s, 0.0) * 1e9)


def _span_id(span: _Span, trace: str) -> str:
    return hashlib.sha256(f"{trace} {span.key}".encode()).hexdigest()[:16]


def _as_json(span: _Span, trace: str, zero_ns: int) -> dict[str, Any]:
    events = [
        {"timeUnixNano": str(zero_ns + _ns(at_s)), "name": name, "attributes": _attributes(attributes)}
        for at_s, name, attributes in sorted(span.events, key=lambda one: one[0])
    ]
    return {
        "traceId": trace,
        "spanId": _span_id(span, trace),
        **({"parentSpanId": _span_id(span.parent, trace)} if span.parent else {}),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(zero_ns + _ns(span.start_s)),
        "endTimeUnixNano": str(zero_ns + _ns(max(span.start_s, span.end_s))),
        "attributes": _attributes(span.attributes),
        "events": events,
        "status": {"code": ERROR, "message": span.failed} if span.failed else {},
    }


def _attributes(values: Mapping[str, object]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value not in (None, [])]


def _value(value: object) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list() | tuple():
            return {"arrayValue": {"values": [_value(one) for one in value]}}
        case _:
            return {"stringValue": str(value)}
