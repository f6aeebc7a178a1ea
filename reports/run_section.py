"""One run in the page: its verdicts with evidence, its turns, faults and calls, and what was executed."""

import shlex
from collections.abc import Iterator, Sequence

from wedgehog.harness.record.event import (
    AgentStarted,
    Event,
    FaultArmed,
    FaultFired,
    HangSeen,
    HostRefused,
    Note,
    SessionKept,
    Trouble,
)
from wedgehog.harness.record.history import History, Turn
from wedgehog.harness.record.ledger import ledger_of
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import NOTHING_TO_JUDGE, WORST_FIRST, Verdict
from wedgehog.reports.calls import call_table, fault_words, stop_name
from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.cost import cost_words, database, notes
from wedgehog.reports.markup import Markup, html_table, line, tag
from wedgehog.reports.narrative import facts
from wedgehog.reports.plot import Mark, growth
from wedgehog.reports.result_category import run_badge, status_badge
from wedgehog.reports.rows import row
from wedgehog.reports.words import brief, count, many, missing, money, one_line, seconds

WORTH_A_PLOT = 5
"""With fewer paid calls there is no plot."""

EVIDENCE_SHOWN = 4


def anchor(number: int) -> str:
    """The id of a run's section."""
    return f"run-{number + 1}"


def run_section(number: int, run: StoredRun, campaign: StoredCampaign, *, unfolded: bool) -> Markup:
    """The folded section of one run."""
    judged = run.judgement
    name = f"{judged.scenario}, {judged.agent}" + (f" (repeat {judged.repeat})" if judged.repeat > 1 else "")
    says = judged.skipped or judged.says
    head = tag("summary", run_badge(run), tag("strong", name), tag("span", says, class_="why") if says else None)
    why = campaign.whys.get(judged.scenario)
    inside = (
        tag("p", tag("em", why), class_="soft") if why else None,
        tag("p", "This run was not played and does not count.", class_="soft")
        if judged.skipped
        else _played(run, campaign.place(run.folder)),
    )
    return tag("details", head, tag("div", inside, class_="inside", id=anchor(number)), class_="run", open=unfolded)


def _played(run: StoredRun, run_dir: str) -> Iterator[Markup | None]:
    yield _stats(run, run_dir)
    yield _reported(run)
    yield _happened(run)
    yield _invariants(run)
    yield _turns(run.history)
    yield _plot(run.history)
    yield _faults(run.history)
    yield call_table(run.history)
    yield _what_ran(run.history)
    yield _files(run, run_dir)
    if run.judgement.replay:
        yield tag("h4", "Play this run again")
        yield tag("pre", run.judgement.replay)


# ---- in short


def _stats(run: StoredRun, run_dir: str) -> Markup:
    said = row(run, run_dir)
    refused = f"{said['refused_calls']:,} refused" if said["refused_calls"] else ""
    took = "" if missing(said["calls_s"]) else f"in {seconds(said['calls_s'])}"
    peak = "" if missing(said["peak_calls_per_min"]) else f"peak {brief(said['peak_calls_per_min'])} calls/min"
    parts = (
        ("paid calls", count(said["paid_calls"]), ", ".join(part for part in (refused, took) if part)),
        ("tokens billed", brief(said["tokens_billed"]), f"{brief(said['tokens_delivered'])} delivered"),
        ("cost", cost_words(said), peak),
        ("turn", seconds(said["turn_s"]), ""),
        ("first error", seconds(said["first_error_s"]), ""),
        ("recovery", seconds(said["recovery_s"]), _recovery(run.history)),
    )
    signs = [tag("p", note, class_="soft") for note in notes([said])]
    stats = [_stat(*part) for part in (*parts, *_database(run.history))]
    return tag("div", tag("dl", stats, class_="stats"), signs)


def _recovery(history: History) -> str:
    """The cost of the recovery message, which no other number contains."""
    spent = ledger_of(history, [call for turn in history.turns if turn.recovery for call in turn.calls])
    return f"{many(spent.paid_calls, 'paid call')} more, {money(spent.cost_usd)}" if spent.paid_calls else ""


def _database(history: History) -> Iterator[tuple[str, str, str]]:
    if used := database(history):
        yield "database", many(used.queries, "query", "queries"), f"{used.share:.0%} of the turns' time"


def _reported(run: StoredRun) -> Markup | None:
    """The number of the incident's report."""
    if not run.judgement.report_number:
        return None
    words = tag("strong", run.judgement.report_number)
    return tag("p", "The incident report says: ", words, tag("span", " (not measured here)", class_="soft"))


def _stat(name: str, value: str, beside: str) -> Markup:
    return tag("div", tag("dt", name), tag("dd", value, tag("small", beside) if beside else None))


def _happened(run: StoredRun) -> Markup | None:
    """Facts of the history, and remarks of the judge and the harness."""
    judged, history = run.judgement, run.history
    said = [event.what for event in history.events if isinstance(event, Trouble | Note)]
    said += [f"The agent asked for {event.host} and was refused: {event.why}." for event in history.of(HostRefused)]
    known = [f"Known: {judged.known}"] if judged.known else []
    remarks = [one for one in judged.remarks if one not in {verdict.says for verdict in judged.verdicts}]
    clocks = [judged.clocks] if judged.clocks else []
    sentences = [*known, *clocks, *facts(history), *remarks, *said]
    if not sentences:
        return None
    return tag("div", tag("h4", "What happened"), tag("ul", [tag("li", one) for one in sentences], class_="facts"))


# ---- tables


_INVARIANT = (("invariant", "keep"), ("verdict", "keep"), ("why", "says"), ("evidence", "says"))


def _invariants(run: StoredRun) -> Markup | None:
    if not run.judgement.verdicts:
        return None
    verdicts = sorted(run.judgement.verdicts, key=lambda one: WORST_FIRST.index(one.status))
    lines = [
        line(_INVARIANT, (one.name, status_badge(one.status), one.says, _evidence(run.history, one.evidence)))
        for one in verdicts
        if one.status != "nothing"
    ]
    rest = ", ".join(_unjudged(one) for one in verdicts if one.status == "nothing")
    table = html_table(_INVARIANT, lines) if lines else None
    return tag(
        "div", tag("h4", "Invariants"), table, tag("p", f"Nothing to judge: {rest}.", class_="soft") if rest else None
    )


def _unjudged(verdict: Verdict) -> str:
    return verdict.name + (f" ({verdict.says})" if verdict.says not in ("", NOTHING_TO_JUDGE) else "")


def _evidence(history: History, ids: Sequence[int]) -> str:
    """The events that prove a verdict, by id, kind and time; the end of a long list is counted."""
    found = [history.events[i] for i in ids if 0 <= i < len(history.events)]
    shown = [f"#{event.id} {event.kind.replace('_', ' ')} {_at(event)}" for event in found[:EVIDENCE_SHOWN]]
    more = [f"and {len(found) - EVIDENCE_SHOWN:,} more"] if len(found) > EVIDENCE_SHOWN else []
    return ", ".join(shown + more)


def _at(event: Event) -> str:
    return f"at {seconds(event.at_s)}"


_TURN = (("turn", "keep"), ("message", "says"), ("outcome", "keep"), ("seen by", "says"), ("took", "n"))


def _turns(history: History) -> Markup | None:
    if not history.turns:
        return None
    lines = [line(_TURN, _turn(turn, history)) for turn in history.turns]
    seen = [_what_was_seen(turn) for turn in history.turns]
    return tag("div", tag("h4", "Turns"), html_table(_TURN, lines), seen)


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
    signs = ", ".join(part for part in [f"ended: {end.ended}", *exit_] if part)
    head = tag("summary", f"What the user saw of {turn}: {signs}")
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
        return f"{armed.name} on {armed.link} was armed and did not fire" if armed else ""
    times = f"fired {many(len(fired), 'time')}, first " if len(fired) > 1 else "fired "
    return f"{times}{_at(fired[0])}: {fault_words(fired[0])}"


def _plot(history: History) -> Markup | None:
    paid = [call.at_s for call in history.played_calls if call.paid]
    if len(paid) < WORTH_A_PLOT:
        return None
    end = max(event.at_s for event in history.events)
    return growth("Paid calls over time", paid, end, list(_marks(history)), "paid calls")


def _marks(history: History) -> Iterator[Mark]:
    for turn in history.turns:
        if turn.stimulus:
            yield Mark(turn.stimulus.at_s, "a message", "turn")
        stop = turn.stopped or turn.deadline or turn.killed
        if stop:
            yield Mark(stop.at_s, stop_name(turn), "stop")
    for fired in history.of(FaultFired):
        yield Mark(fired.at_s, "a fault fired", "fault", small=True)


# ---- what was executed


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
        ("hash of that file", first.entry_hash),
        ("started", many(len(started), "time")),
    )
    shown = [tag("div", tag("dt", name), tag("dd", tag("code", value))) for name, value in pairs if value]
    return tag("div", tag("h4", "What was executed"), tag("dl", shown, class_="stack"))


def _files(run: StoredRun, run_dir: str) -> Markup:
    kept = {event.path: event for event in run.history.of(SessionKept)}
    own = [
        name
        for name in ("scenario.yaml", "agent.yaml", "history.jsonl", "verdicts.json", "agent.log")
        if (run.folder / name).is_file()
    ]
    own += [event.file for event in run.history.of(HangSeen) if event.file]
    items = [tag("li", tag("code", f"{run_dir}/{name}")) for name in own]
    if kept:
        items += [
            tag("li", tag("code", path), f" {count(event.size)} bytes, sha256 ", tag("code", event.sha256[:16]))
            for path, event in kept.items()
        ]
    else:
        inside = (str(path).removeprefix(f"{run.folder}/") for path in run.session_files)
        items += [tag("li", tag("code", f"{run_dir}/{path}")) for path in inside]
    return tag("div", tag("h4", "Files"), tag("ul", items, class_="facts"))
