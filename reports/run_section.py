"""One run in the page: why, the invariants with their evidence, the turns, every call, what really ran."""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from wedgehog.harness.event import AgentStarted, Event, FaultArmed, FaultFired, Note, SessionKept, Trouble
from wedgehog.harness.history import Call, History, Turn
from wedgehog.harness.outcome import outcome_of
from wedgehog.harness.store import StoredRun
from wedgehog.reports.campaign_folder import Campaign
from wedgehog.reports.chip import run_chip, status_chip
from wedgehog.reports.explain import ending, facts, place, strike, took_s
from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.plot import Mark, growth
from wedgehog.reports.rows import row
from wedgehog.reports.words import NONE, brief, count, many, missing, money, one_line, seconds

CALLS_SHOWN = 300
"""A longer list is cut in its middle; the history keeps them all."""

WORTH_A_PLOT = 5
"""Paid calls from which their growth over time tells something."""

EVIDENCE_SHOWN = 4


def anchor(number: int) -> str:
    """The id of a run's section."""
    return f"run-{number + 1}"


def run_section(number: int, run: StoredRun, campaign: Campaign, *, unfolded: bool) -> Markup:
    """The folded section of one run."""
    judged = run.judgement
    name = f"{judged.scenario}, {judged.agent}" + (f" (repeat {judged.repeat})" if judged.repeat > 1 else "")
    says = judged.skipped or judged.says
    head = tag("summary", run_chip(run), tag("strong", name), tag("span", says, class_="why") if says else None)
    why = campaign.whys.get(judged.scenario)
    inside = (
        tag("p", tag("em", why), class_="soft") if why else None,
        tag("p", "It was not played, and counts as nothing.", class_="soft")
        if judged.skipped
        else _played(run, campaign.place(run.folder)),
    )
    return tag("details", head, tag("div", inside, class_="inside", id=anchor(number)), class_="run", open=unfolded)


def _played(run: StoredRun, run_dir: str) -> Iterator[Markup | None]:
    yield _stats(run, run_dir)
    yield _told(run)
    yield _invariants(run)
    yield _turns(run.history)
    yield _plot(run.history)
    yield _faults(run.history)
    yield _calls(run.history)
    yield _what_ran(run.history)
    yield _files(run, run_dir)
    if run.judgement.replay:
        yield tag("h4", "Play it again")
        yield tag("pre", run.judgement.replay)


# ---- in short


def _stats(run: StoredRun, run_dir: str) -> Markup:
    said = row(run, run_dir)
    reported = run.judgement.report_number
    parts = (
        (
            "paid calls",
            count(said["paid_calls"]),
            f"{said['refused_calls']:,} refused" if said["refused_calls"] else "",
        ),
        ("tokens billed", brief(said["tokens_billed"]), f"{brief(said['tokens_delivered'])} delivered"),
        ("cost", money(said["cost_usd"]), _peak(said)),
        ("turn", seconds(said["turn_s"]), ""),
        ("first error", seconds(said["first_error_s"]), ""),
        ("recovery", seconds(said["recovery_s"]), ""),
        ("the report's number", reported, "measured elsewhere, not by us") if reported else ("", "", ""),
    )
    return tag("dl", [_stat(*part) for part in parts if part[0]], class_="stats")


def _peak(said: dict[str, object]) -> str:
    calls = said["peak_calls_per_min"]
    return f"peak {brief(calls)} calls/min" if isinstance(calls, int | float) and not missing(calls) else ""


def _stat(name: str, value: str, beside: str) -> Markup:
    return tag("div", tag("dt", name), tag("dd", value, tag("small", beside) if beside else None))


def _told(run: StoredRun) -> Markup | None:
    """What the history tells by itself, and what the judge and the harness remarked."""
    judged, history = run.judgement, run.history
    said = [event.what for event in history.events if isinstance(event, Trouble | Note)]
    known = [f"Known: {judged.known}"] if judged.known else []
    sentences = [*known, *judged.remarks, *facts(history), *said]
    if not sentences:
        return None
    return tag("div", tag("h4", "What happened"), tag("ul", [tag("li", one) for one in sentences], class_="facts"))


# ---- tables


def _table(heads: Sequence[tuple[str, str]], body: Iterable[Markup], tall: bool = False) -> Markup:
    head = [tag("th", name, class_=kind or None, scope="col") for name, kind in heads]
    table = tag("table", tag("thead", tag("tr", head)), tag("tbody", body))
    return tag("div", table, class_="scroll tall" if tall else "scroll", tabindex="0")


def _line(heads: Sequence[tuple[str, str]], cells: Sequence[object], class_: str | None = None) -> Markup:
    pairs = zip(cells, heads, strict=True)
    return tag("tr", [tag("td", cell, class_=kind or None) for cell, (_, kind) in pairs], class_=class_)


_INVARIANT = (("invariant", "keep"), ("verdict", "keep"), ("why", "says"), ("evidence", "says"))


def _invariants(run: StoredRun) -> Markup | None:
    if not run.judgement.verdicts:
        return None
    lines = [
        _line(_INVARIANT, (one.name, status_chip(one.status), one.says, evidence(run.history, one.evidence)))
        for one in run.judgement.verdicts
    ]
    return tag("div", tag("h4", "Invariants"), _table(_INVARIANT, lines))


def evidence(history: History, ids: Sequence[int]) -> str:
    """The events that prove a verdict, by id, kind and time; a long list is counted."""
    found = [history.events[i] for i in ids if 0 <= i < len(history.events)]
    shown = [f"#{event.id} {event.kind.replace('_', ' ')} {at(event)}" for event in found[:EVIDENCE_SHOWN]]
    more = [f"and {len(found) - EVIDENCE_SHOWN:,} more"] if len(found) > EVIDENCE_SHOWN else []
    return ", ".join(shown + more)


def at(event: Event) -> str:
    """When it happened: `at 3.20 s`."""
    return f"at {seconds(event.at_s)}"


_TURN = (("turn", "keep"), ("message", "says"), ("came to", "keep"), ("by which sign", "says"), ("took", "n"))


def _turns(history: History) -> Markup | None:
    if not history.turns:
        return None
    lines = [_line(_TURN, _turn(turn, history)) for turn in history.turns]
    seen = [_what_was_seen(turn) for turn in history.turns]
    return tag("div", tag("h4", "Turns"), _table(_TURN, lines), seen)


def _turn(turn: Turn, history: History) -> tuple[object, ...]:
    came = outcome_of(turn, history)
    stimulus = turn.stimulus
    message = f"{stimulus.stimulus.replace('_', ' ')}: {one_line(stimulus.text, 160)}" if stimulus else ""
    how = came.how + (f". {came.remark}" if came.remark else "")
    return ("recovery" if turn.recovery else turn.number, message, came.kind, how, seconds(turn.duration_s))


def _what_was_seen(turn: Turn) -> Markup | None:
    end = turn.end
    if end is None:
        return None
    exit_ = [
        f"exit code {end.exit_code}" if end.exit_code is not None else "",
        f"HTTP {end.status}" if end.status is not None else "",
        f"raised {one_line(end.raised, 160)}" if end.raised else "",
    ]
    parts = (("answer", end.answer), ("error", end.error), ("stderr", end.stderr if end.stderr != end.error else ""))
    boxes = [(tag("p", name, class_="soft"), tag("pre", said)) for name, said in parts if said.strip()]
    signs = ", ".join(part for part in [f"ended {end.ended}", *exit_] if part)
    head = tag("summary", f"What its user saw of {turn}: {signs}")
    return tag("details", head, boxes or tag("p", "Nothing.", class_="soft"), class_="more")


def _faults(history: History) -> Markup | None:
    armed = {event.fault: event for event in history.of(FaultArmed)}
    fired: dict[int, list[FaultFired]] = {}
    for event in history.of(FaultFired):
        fired.setdefault(event.fault, []).append(event)
    items = [tag("li", _fault(armed.get(n), fired.get(n, []))) for n in sorted({*armed, *fired})]
    return tag("div", tag("h4", "Faults"), tag("ul", items, class_="facts")) if items else None


def _fault(armed: FaultArmed | None, fired: Sequence[FaultFired]) -> str:
    if not fired:
        return f"{armed.name} on {armed.link} was armed and never struck" if armed else ""
    times = f"struck {many(len(fired), 'time')}, first " if len(fired) > 1 else "struck "
    return f"{times}{at(fired[0])}: {strike(fired[0])}"


# ---- calls

_CALL = (
    ("#", "n"),
    ("turn.step.attempt", "keep"),
    ("at", "n"),
    ("sent", "n"),
    ("status", "keep"),
    ("tokens in", "n"),
    ("out billed", "n"),
    ("delivered", "n"),
    ("took", "n"),
    ("how it ended", "says"),
)


def _calls(history: History) -> Markup | None:
    calls = history.calls
    if not calls:
        return tag("p", "No request reached the model.", class_="soft")
    proofs = _new_proofs(calls)
    lines = [_call(call, proof) for call, proof in zip(calls, proofs, strict=True)]
    if len(lines) > CALLS_SHOWN:
        head, tail = CALLS_SHOWN * 3 // 4, CALLS_SHOWN // 4
        words = f"{len(calls) - head - tail:,} calls left out here; history.jsonl holds them all"
        gap = tag("tr", tag("td", words, colspan=len(_CALL)), class_="left-out")
        lines = [*lines[:head], gap, *lines[-tail:]]
    return tag("div", tag("h4", many(len(calls), "call")), _table(_CALL, lines, tall=True))


def _new_proofs(calls: Sequence[Call]) -> list[str]:
    """What struck each call; a proof in the same words as the one before is not said again."""
    said = ["; ".join(strike(fired) for fired in call.faults) for call in calls]
    names = [", ".join(fired.name for fired in call.faults) for call in calls]
    return [name if before == one else one for before, one, name in zip(["", *said], said, names, strict=False)]


def _call(call: Call, struck: str) -> Markup:
    where = place(call) + (f" {call.arrived.background}" if call.arrived.background else "")
    cells = (
        call.number,
        where,
        seconds(max(call.at_s, 0.0)),
        f"{brief(call.arrived.body_bytes)} B",
        status(call),
        count(call.input_tokens),
        count(call.output_tokens),
        count(call.tokens_delivered),
        seconds(took_s(call)),
        (ending(call), tag("small", struck, class_="struck") if struck else None),
    )
    return _line(_CALL, cells, None if call.ok else "lost")


def status(call: Call) -> str:
    """What the provider answered: a paid 200, a refusal, or nothing."""
    if call.unscripted:
        return "unscripted"
    if call.refused:
        return str(call.refused.status)
    return "200, paid" if call.paid else NONE


def _plot(history: History) -> Markup | None:
    ours = {turn.number for turn in history.turns if turn.recovery}
    paid = [call.at_s for call in history.calls if call.paid and call.arrived.turn not in ours]
    if len(paid) < WORTH_A_PLOT:
        return None
    end = max(event.at_s for event in history.events)
    return growth("Paid calls, as they added up", paid, end, list(_marks(history)), "paid calls")


def _marks(history: History) -> Iterator[Mark]:
    for turn in history.turns:
        if turn.stimulus:
            yield Mark(turn.stimulus.at_s, "a message", "turn")
        stop = turn.stopped or turn.deadline
        if stop:
            name = "abort" if turn.aborted else "front end gave up" if turn.gave_up else "deadline"
            yield Mark(stop.at_s, name, "stop")
    for fired in history.of(FaultFired):
        yield Mark(fired.at_s, "a fault struck", "fault", small=True)


# ---- what really ran


def _what_ran(history: History) -> Markup | None:
    started = list(history.of(AgentStarted))
    if not started:
        return None
    first = started[0]
    pairs = (
        ("command", shlex.join(first.argv)),
        ("executable", first.executable),
        ("version", first.version),
        ("entry file", first.entry),
        ("its hash", first.entry_hash),
        ("started", many(len(started), "time")),
    )
    shown = [tag("div", tag("dt", name), tag("dd", tag("code", value))) for name, value in pairs if value]
    return tag("div", tag("h4", "What really ran"), tag("dl", shown, class_="stack"))


def _files(run: StoredRun, run_dir: str) -> Markup:
    kept = {event.path: event for event in run.history.of(SessionKept)}
    own = [
        name
        for name in ("scenario.yaml", "agent.yaml", "history.jsonl", "verdicts.json", "agent.log")
        if (run.folder / name).is_file()
    ]
    items = [tag("li", tag("code", f"{run_dir}/{name}")) for name in own]
    if kept:
        items += [
            tag("li", tag("code", path), f" {count(event.size)} bytes, sha256 ", tag("code", event.sha256[:16]))
            for path, event in kept.items()
        ]
    else:
        items += [tag("li", tag("code", f"{run_dir}/{_inside(path, run)}")) for path in run.session_files]
    return tag("div", tag("h4", "Files"), tag("ul", items, class_="facts"))


def _inside(path: object, run: StoredRun) -> str:
    return str(path).removeprefix(f"{run.folder}/")
