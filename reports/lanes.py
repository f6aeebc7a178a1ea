"""A run as lanes over one clock: who did what, from when to when. Pure: events in, spans and moments out."""

import re
from collections.abc import Iterator, Sequence

from wedgehog.harness.record.events.fault import FaultArmed, FaultFired, FaultHealed, FaultUnproven
from wedgehog.harness.record.events.files import FilesSeen
from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.record.events.service import (
    BackendClosed,
    BackendOpened,
    BeaconSeen,
    ChatAsked,
    PageAsked,
    PipeClosed,
    PipeOpened,
    StoreAsked,
    ToolAsked,
)
from wedgehog.harness.record.events.turn import AgentKilled, Frozen, HangSeen, Thawed, TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.left_working import calls_after_it_left
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.views import Call, Turn
from wedgehog.reports.calls import ending, fault_words, place
from wedgehog.reports.event_lines import files_in_words
from wedgehog.reports.lane import MOST_ROWS, Lane, LaneItem, moment, packed
from wedgehog.reports.tool_runs import tool_runs
from wedgehog.reports.words import many, one_line, seconds

TONE_OF_OUTCOME = {"answered": "good", "silent": "bad", "hidden": "bad", "truncated": "bad", "surfaced": "warn"}


def lanes(history: History, remarks: Sequence[str] = (), most_rows: int = MOST_ROWS) -> list[Lane]:
    """The lanes of a run that hold anything, from the user down to the database."""
    found = (
        ("user", _user(history)),
        ("agent", _agent(history)),
        ("model calls", _calls(history)),
        ("timers", _timers(history, remarks)),
        ("tools", _tools(history)),
        ("tool host", (moment(it, "tool", "•", f"{it.tool} was called") for it in history.of(ToolAsked))),
        ("files", (moment(it, "tool", "•", files_in_words(it)) for it in history.of(FilesSeen))),
        ("pages", (moment(it, "tool", "•", f"page {it.path}: {it.status}") for it in history.of(PageAsked))),
        ("database", map(_query, history.of(StoreAsked))),
        ("pipes", _pipes(history)),
        ("links", _backends(history)),
        ("chat", (moment(it, "tool", "•", f"chat: {it.what}") for it in history.of(ChatAsked))),
        ("faults", _faults(history)),
    )
    return [Lane(name, packed(items, most_rows)) for name, them in found if (items := list(them))]


# ---- the user and the agent


def _last_s(history: History) -> float:
    """The end of the last turn, or the last event."""
    ends = [end.at_s for end in history.of(TurnEnded)]
    return max(ends or [event.at_s for event in history.events], default=0.0)


def _user(history: History) -> Iterator[LaneItem]:
    for turn in history.turns:
        given = turn.stimulus
        if given is None:
            continue
        came = outcome_of(turn, history)
        end_s = turn.end.at_s if turn.end else _last_s(history)
        ids = (given.id, *((turn.end.id,) if turn.end else ()))
        took = f"{seconds(end_s - given.at_s)} after the message"
        says = f"{turn.in_session}: “{one_line(given.text, 80)}”: {came.kind} {took}"
        label = "R" if turn.recovery else str(turn.number)
        yield LaneItem(given.at_s, end_s, TONE_OF_OUTCOME.get(came.kind, "plain"), says, ids, label)
        yield from _stops(turn)


def _stops(turn: Turn) -> Iterator[LaneItem]:
    named = (
        (turn.aborted, "the user aborts"),
        (turn.gave_up, "the front end gives up"),
        (turn.deadline, (turn.deadline and turn.deadline.too_many) or "the deadline passes"),
        (turn.start_missed, "no request came in time"),
    )
    for event, says in named:
        if event is not None:
            yield LaneItem(event.at_s, None, "stop", f"{turn}: {says}", (event.id,), "✕", whole=False)


def _agent(history: History) -> Iterator[LaneItem]:
    """The agent at work on each message, until the end of the turn, its kill or its last call; and its stops."""
    started = {it.pid: it for it in history.of(AgentStarted)}
    starts = [it.id for it in started.values()][:1]
    for turn in history.turns:
        if turn.stimulus is None:
            continue
        over = turn.killed or turn.end
        end_s, says = over.at_s if over else _last_s(history), f"at work on {turn.in_session}"
        if after := calls_after_it_left(turn):
            end_s, says = max(end_s, _over_s(after[-1], history)), f"{says}, also after its front end gave up"
        yield LaneItem(turn.stimulus.at_s, end_s, "plain", says, tuple(starts))
        starts = []
    for kill in history.of(AgentKilled):
        says = f"{kill.signal} to {kill.whom}: {many(len(kill.pids), 'process', 'processes')}"
        yield moment(kill, "fault", "✕", says)
    thaws = list(history.of(Thawed))
    for ice in history.of(Frozen):
        thaw = next((it for it in thaws if it.id > ice.id), None)
        end_s = thaw.at_s if thaw else ice.at_s + ice.for_s
        ids = (ice.id, thaw.id) if thaw else (ice.id,)
        yield LaneItem(ice.at_s, end_s, "fault", f"{ice.whom} stands still (SIGSTOP)", ids, whole=False)
    for hang in history.of(HangSeen):
        yield moment(hang, "stop", "?", f"looked at before it was stopped: {one_line(hang.says, 160)}")


# ---- calls


def _calls(history: History) -> Iterator[LaneItem]:
    for call in history.calls:
        yield from _call(call, history)


def _call(call: Call, history: History) -> Iterator[LaneItem]:
    """A call: the wait for its first byte, its stream, and how it ended."""
    end_s = _over_s(call, history)
    tone = "refused" if call.refused else "wait" if call.main else "wait background"
    beside = call.arrived.side or call.arrived.background
    kind = f" ({beside})" if beside else ""
    says = f"call {call.number}, {place(call)}{kind}: {ending(call)} after {seconds(end_s - call.at_s)}"
    yield LaneItem(call.at_s, end_s, tone, says, tuple(event.id for event in call.evidence), place(call))
    for name, first_s, until_s in phases(call, end_s):
        if name == "stream":
            down = f"first byte after {seconds(first_s - call.at_s)}, {many(call.tokens_delivered, 'token')} delivered"
            yield LaneItem(first_s, until_s, "stream", f"{says}; {down}", (), whole=False)
    if call.hung_up is not None:
        by = call.stopped_by or "the agent"
        yield LaneItem(call.hung_up.at_s, None, "hangup", f"{by} closes call {call.number}", (), "✕", whole=False)


def phases(call: Call, end_s: float) -> Iterator[tuple[str, float, float]]:
    """The parts of a call that ended at `end_s`: name, start and end in seconds of the run.

    `request` until the provider accepts or refuses it, `wait` until the first byte, `stream` until the end.
    """
    accepted_s = min(call.started.at_s, end_s) if call.started else end_s
    first_s = first_byte_at_s(call)
    first_s = end_s if first_s is None else min(max(first_s, accepted_s), end_s)
    named = (("request", call.at_s, accepted_s), ("wait", accepted_s, first_s), ("stream", first_s, end_s))
    yield from (phase for phase in named if phase[1] < phase[2])


def _over_s(call: Call, history: History) -> float:
    ends = [it.at_s for it in (call.refused, call.hung_up, call.unscripted, call.ended) if it is not None]
    failed_s = call.failed_at_s
    over_s = failed_s if failed_s is not None else max(ends, default=_last_s(history))
    return max(over_s, call.at_s)


def first_byte_at_s(call: Call) -> float | None:
    """When the first byte of a reply was sent; histories without that moment give the acceptance of the request."""
    if call.ended is None or call.started is None or not call.ended.bytes_delivered:
        return None
    sent_s = call.ended.first_byte_s
    return call.started.at_s if sent_s is None else call.at_s + sent_s


_FIRED = re.compile(
    r"(?P<turn>turn \d+|the recovery message): its timer (?P<name>.+?) fired: it (?P<what>hung up on call (?P<call>\S+)"
    r"|hung up on [\d,]+ calls|ended the turn) after (?P<s>[\d.]+) s"
)
"""What the judge remarks about a timer of the agent's spec."""


def _timers(history: History, remarks: Sequence[str]) -> Iterator[LaneItem]:
    """The agent's timers that are known to have fired, each from its possible beginning to its end."""
    turns = {str(turn): turn for turn in history.turns}
    for fired in filter(None, map(_FIRED.search, remarks)):
        turn, says = turns.get(fired["turn"]), fired.string
        if turn is None:
            continue
        if fired["what"] != "ended the turn":
            yield from _hang_ups(turn, fired["call"], says)
        elif turn.end is not None:
            yield LaneItem(max(0.0, turn.end.at_s - float(fired["s"])), turn.end.at_s, "timer", says, ())


def _hang_ups(turn: Turn, of: str | None, says: str) -> Iterator[LaneItem]:
    """From the request to the hang-up: of one call, or of all on which the agent hung up."""
    for call in turn.main_calls:
        if call.hung_up and not call.stopped_by and of in (None, place(call)):
            yield LaneItem(call.at_s, call.hung_up.at_s, "timer", says, ())


# ---- tools, pipes, faults


def _tools(history: History) -> Iterator[LaneItem]:
    for run in tool_runs(history):
        use, began, done = run.use, run.began, run.done
        end_s = done.at_s if done else _tool_end(began, history)
        code = "" if done is None or done.exit_code is None else f", exit code {done.exit_code}"
        how = f"done after {seconds(end_s - began.at_s)}{code}" if done else "it did not end"
        ids = (began.id, done.id) if done else (began.id,)
        tone = "tool" if done else "tool open"
        yield LaneItem(began.at_s, end_s, tone, f"tool {use.token} {use.offered.name}: {how}", ids, use.token)


def _tool_end(began: BeaconSeen, history: History) -> float:
    """A tool without an end is drawn until the next kill, or the end of its turn."""
    later = (it for it in history.events if it.id > began.id and isinstance(it, AgentKilled | TurnEnded))
    return next((it.at_s for it in later), _last_s(history))


def _query(asked: StoreAsked) -> LaneItem:
    says = f"query {asked.number}: {asked.verb}, {many(asked.rows, 'row')}, {seconds(asked.latency_s)}"
    return LaneItem(max(0.0, asked.at_s - asked.latency_s), asked.at_s, "tool", says, (asked.id,))


def _pipes(history: History) -> Iterator[LaneItem]:
    closed = {it.pid: it for it in history.of(PipeClosed)}
    for pipe in history.of(PipeOpened):
        end = closed.get(pipe.pid)
        bytes_ = "" if end is None or end.stdout_bytes is None else f", {many(end.stdout_bytes, 'byte')} to the agent"
        ids = (pipe.id, end.id) if end else (pipe.id,)
        end_s = end.at_s if end else _last_s(history)
        yield LaneItem(pipe.at_s, end_s, "tool", f"pipe {pipe.name}{bytes_}", ids)


def _backends(history: History) -> Iterator[LaneItem]:
    closed = {(it.link, it.connection): it for it in history.of(BackendClosed)}
    for it in history.of(BackendOpened):
        end = closed.get((it.link, it.connection))
        crossed = f": {end.bytes_up:,} bytes up, {end.bytes_down:,} bytes down, closed by {end.by}" if end else ""
        ids = (it.id, end.id) if end else (it.id,)
        end_s = end.at_s if end else _last_s(history)
        yield LaneItem(it.at_s, end_s, "tool", f"{it.link}, connection {it.connection}{crossed}", ids)


def _faults(history: History) -> Iterator[LaneItem]:
    """Each fault from its arming until it is removed, and each time it fired."""
    healed = {it.fault: it for it in history.of(FaultHealed)}
    for armed in history.of(FaultArmed):
        end = healed.get(armed.fault)
        end_s = end.at_s if end and end.at_s >= armed.at_s else _last_s(history)
        ids = (armed.id, end.id) if end else (armed.id,)
        yield LaneItem(armed.at_s, end_s, "armed", f"{armed.name} on {armed.link} is armed", ids, armed.name)
        for it in history.of(FaultFired):
            if it.fault == armed.fault:
                yield LaneItem(it.at_s, None, "fault", fault_words(it), (it.id,), "⚡", whole=False)
    for missed in history.of(FaultUnproven):
        yield moment(missed, "stop", "?", f"{missed.name}: nothing proves that it struck")
