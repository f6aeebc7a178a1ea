"""One run in the page: its verdicts with evidence, its turns, faults and calls, and what was executed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.fault import FaultArmed, FaultFired
from wedgehog.harness.record.events.run import HostRefused, Note, Trouble
from wedgehog.harness.record.history import History
from wedgehog.harness.record.ledger import ledger_of
from wedgehog.harness.record.store import BODIES, StoredRun
from wedgehog.harness.record.verdict import WORST_FIRST, Verdict
from wedgehog.reports.calls import VIOLATING, fault_words, marks
from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.cost import cost_words, count_words, notes, pace
from wedgehog.reports.database_use import database
from wedgehog.reports.history_numbers import first_error
from wedgehog.reports.lane import Lane, events_in
from wedgehog.reports.lanes import lanes
from wedgehog.reports.markup import Markup, html_table, line, tag, text
from wedgehog.reports.page.answers.reader_answers import reader_answers
from wedgehog.reports.page.answers.related_runs import RelatedRuns
from wedgehog.reports.page.run.call_table import call_table
from wedgehog.reports.page.run.changed_files import changed_files
from wedgehog.reports.page.run.event_list import ListedEvents, event_list, listed
from wedgehog.reports.page.run.narrative import narrated
from wedgehog.reports.page.run.pictures import picture
from wedgehog.reports.page.run.refused_request import refused_request
from wedgehog.reports.page.run.run_files import files
from wedgehog.reports.page.run.timeline_svg import event_id, timeline_figure
from wedgehog.reports.page.run.turn_table import turn_table
from wedgehog.reports.page.run.unjudged_turns import with_reason
from wedgehog.reports.page.run.what_ran import what_ran
from wedgehog.reports.reasons import causes_first, run_reasons
from wedgehog.reports.result_category import agent_name, run_badge, status_badge
from wedgehog.reports.rows import row
from wedgehog.reports.words import brief, many, money, seconds

EVIDENCE_SHOWN = 4
EVIDENCE_LINKED = 500
"""So many pieces of evidence of a verdict have a link; all but the first few are folded."""

_INVARIANT = (("invariant", "keep"), ("verdict", "keep"), ("why", "says"), ("evidence", "says"))


def anchor(number: int) -> str:
    """The id of a run's section."""
    return f"run-{number + 1}"


def run_section(
    number: int, run: StoredRun, campaign: StoredCampaign, related: RelatedRuns, *, unfolded: bool
) -> Markup:
    """The folded section of one run."""
    judged = run.judgement
    why = campaign.whys.get(judged.scenario)
    name = tag("h3", f"{judged.scenario}, {agent_name(judged)}")
    reasons = [judged.skipped] if judged.skipped else map(str, run_reasons(judged))
    head = tag("summary", run_badge(run), name, [tag("span", it, class_="why") for it in reasons])
    skipped = tag("p", "This run does not count.", class_="soft")
    inside = (
        tag("p", tag("em", why), class_="soft") if why else None,
        skipped if judged.skipped else _PlayedRun(run, campaign, anchor(number), related).parts(),
    )
    return tag("details", head, tag("div", inside, class_="inside", id=anchor(number)), class_="run", open=unfolded)


def _titled(title: str, *content: object) -> Markup:
    return tag("div", tag("h4", title), *content)


def _bullets(items: Sequence[object]) -> Markup:
    return tag("ul", [tag("li", item) for item in items], class_="bullets")


@dataclass(frozen=True)
class _PlayedRun:
    run: StoredRun
    campaign: StoredCampaign
    id: str
    related: RelatedRuns

    @cached_property
    def run_dir(self) -> str:
        return self.campaign.place(self.run.folder)

    @cached_property
    def history(self) -> History:
        return self.run.history

    def parts(self) -> Iterator[Markup | None]:
        yield self._stats()
        yield self._reported()
        yield self._timeline()
        yield self._invariants()
        yield event_list(self.id, self.shown, self.violating, events_in(self.drawn))
        yield self._happened()
        yield self._faults()
        yield tag("div", list(self._details()), class_="screen")

    def _details(self) -> Iterator[Markup | None]:
        """What is on the screen only: printed, it would fill pages."""
        yield self._turns()
        yield self._project()
        yield reader_answers(self.run, self.related)
        yield call_table(self.history, self.violating)
        yield refused_request(self.history, self.campaign.folder / BODIES)
        yield what_ran(self.history)
        yield _titled("Files", _bullets(files(self.run, self.run_dir)))
        if self.run.judgement.replay:
            yield tag("h4", "Play this run again")
            yield tag("pre", self.run.judgement.replay)

    # ---- in short

    def _stats(self) -> Markup:
        said = row(self.run, self.campaign, self.campaign.numbers[self.run.folder])
        refused = f"{said.refused_calls:,} refused" if said.refused_calls else ""
        took = "" if said.calls_s is None else f"paid ones within {seconds(said.calls_s)}"
        peak = pace(said.peak_calls_per_min, said.paid_calls or 0, said.calls_s or 0.0)
        delivered = count_words(said, said.tokens_delivered, brief)
        parts = [
            ("paid calls", count_words(said, said.paid_calls), ", ".join(part for part in (refused, took) if part)),
            ("tokens billed", count_words(said, said.tokens_billed, brief), f"{delivered} delivered"),
            ("simulated cost", cost_words(said), peak),
            ("turn", seconds(said.turn_s), ""),
            ("first error", seconds(said.first_error_s), self._first_error()),
            ("recovery", seconds(said.recovery_s), self._recovery()),
        ]
        if used := database(self.history):
            parts.append(("database", many(used.queries, "query", "queries"), f"{used.share:.0%} of the turns' time"))
        stats = [
            tag("div", tag("dt", name), tag("dd", value, tag("small", beside) if beside else None))
            for name, value, beside in parts
        ]
        return tag("div", tag("dl", stats, class_="stats"), [tag("p", note, class_="soft") for note in notes([said])])

    def _first_error(self) -> str:
        """The turn whose user saw it, if that is not the first one."""
        turn = first_error(self.history)
        return "" if turn is None or turn.number == 1 else f"in {turn}"

    def _recovery(self) -> str:
        """The cost of the recovery message, which no other number contains."""
        calls = [call for turn in self.history.turns if turn.recovery for call in turn.calls]
        spent = ledger_of(self.history, calls)
        paid = many(spent.paid_calls, "paid call")
        return f"{paid} more, simulated cost {money(spent.cost_usd)}" if spent.paid_calls else ""

    def _reported(self) -> Markup | None:
        """The number of the incident's report."""
        number = self.run.judgement.report_number
        return tag("p", "The incident's report says of the original: ", tag("strong", number)) if number else None

    def _happened(self) -> Markup | None:
        """Facts of the history, and remarks of the judge and the harness."""
        judged, history = self.run.judgement, self.history
        known = [f"Known: {judged.known}"] if judged.known else []
        verdicts = {verdict.says for verdict in judged.verdicts}
        remarks = [one for one in judged.remarks if one not in verdicts]
        said = [event.what for event in history.events if isinstance(event, Trouble | Note)]
        refused = history.of(HostRefused)
        said += [f"The agent asked for {event.host} and was refused: {event.why}." for event in refused]
        clocks = [judged.clocks] if judged.clocks else []
        sentences = [*known, *clocks, *narrated(history), *remarks, *said]
        return _titled("What happened", _bullets(sentences)) if sentences else None

    # ---- tables

    def _invariants(self) -> Markup | None:
        if not self.run.judgement.verdicts:
            return None
        verdicts = sorted(causes_first(self.run.judgement), key=lambda one: WORST_FIRST.index(one.status))
        lines = [row for one in verdicts if one.status in VIOLATING for row in self._violations(one)]
        table = html_table(_INVARIANT, lines, class_="stacked") if lines else None
        held = [with_reason(one, self.history) for one in verdicts if one.status == "pass"]
        rest = [with_reason(one, self.history) for one in verdicts if one.status == "nothing"]
        return _titled("Invariants", table, _named("Passed", held), _named("Nothing to judge", rest))

    def _violations(self, verdict: Verdict) -> Iterator[Markup]:
        """A row with the name and the fix, and one for each further violation."""
        evidence = self._evidence(verdict.evidence)
        yield line(_INVARIANT, (verdict.name, status_badge(verdict.status), _why_and_fix(verdict), evidence))
        for other in verdict.more:
            yield line(_INVARIANT, ("", "", other.says, self._evidence(other.evidence)))

    def _evidence(self, ids: Sequence[int]) -> Markup:
        """The events that prove a violation, each linked to the list; the end of a long list is folded."""
        events = self.history.events
        found = [events[i] for i in ids if 0 <= i < len(events)]
        shown = self._links(found[:EVIDENCE_SHOWN])
        if len(found) <= EVIDENCE_SHOWN:
            return shown
        left = len(found) - EVIDENCE_LINKED
        rest = f", and {left:,} more in verdicts.json" if left > 0 else ""
        links = self._links(found[EVIDENCE_SHOWN:EVIDENCE_LINKED])
        folded = tag("details", tag("summary", "show them"), links, rest, class_="more")
        return text([shown, f", and {len(found) - EVIDENCE_SHOWN:,} more", folded])

    def _links(self, found: Sequence[Event]) -> Markup:
        links: list[object] = []
        for event in found:
            words = f"#{event.id} {event.kind.replace('_', ' ')} {_at(event)}"
            known = event.id in self.shown.ids
            links += [", ", tag("a", words, href=f"#{event_id(self.id, event.id)}") if known else words]
        return text(links[1:])

    @cached_property
    def shown(self) -> ListedEvents:
        return listed(self.history, self.violating, self.linked)

    def _turns(self) -> Markup | None:
        """Each turn, and what its user saw: the words, and the page if the run did not pass."""
        turns, good = self.history.turns, self.run.judgement.verdict == "pass"
        pages = {turn.number: picture(self.run.folder, turn) for turn in turns if not good}
        return _titled("Turns", *turn_table(self.history, pages)) if turns else None

    def _project(self) -> Markup | None:
        """What became of the project's files; in a run that passed it is as expected."""
        good = self.run.judgement.verdict == "pass"
        shown = [] if good else list(changed_files(self.history))
        return _titled("Files of the project", shown) if shown else None

    def _faults(self) -> Markup | None:
        armed = {event.fault: event for event in self.history.of(FaultArmed)}
        fired: dict[int, list[FaultFired]] = {}
        for event in self.history.of(FaultFired):
            fired.setdefault(event.fault, []).append(event)
        items = [_fault(armed.get(n), fired.get(n, [])) for n in sorted({*armed, *fired})]
        return _titled("Faults", _bullets(items)) if items else None

    # ---- the timeline

    @cached_property
    def violating(self) -> dict[int, str]:
        return marks(self.run.judgement.verdicts)

    @cached_property
    def linked(self) -> frozenset[int]:
        """The events to which the table of invariants links."""
        shown = (it for verdict in self.run.judgement.verdicts for it in verdict.violations)
        return frozenset(event for it in shown for event in it.evidence[:EVIDENCE_LINKED])

    def _timeline(self) -> Markup | None:
        judged, bad = self.run.judgement, frozenset(self.violating)
        scale, clock = self.history.run.time_scale, judged.clocks
        return timeline_figure(self.id, self.drawn, bad, self.shown.ids, scale, clock)

    @cached_property
    def drawn(self) -> list[Lane]:
        return lanes(self.history, self.run.judgement.remarks)


def _named(title: str, names: Sequence[str]) -> Markup | None:
    return tag("p", tag("strong", title), f": {'; '.join(names)}.", class_="soft") if names else None


def _why_and_fix(verdict: Verdict) -> object:
    """The sentence of a verdict; of a pass without one, why it holds; of a violation, also how to fix it."""
    if not verdict.fix:
        return verdict.says or verdict.because
    return tag("div", verdict.says, tag("p", tag("strong", "Fix: "), verdict.fix, class_="soft"))


def _at(event: Event) -> str:
    return f"at {seconds(event.at_s)}"


def _fault(armed: FaultArmed | None, fired: Sequence[FaultFired]) -> str:
    if not fired:
        return f"{armed.name} on {armed.link} was armed and did not fire" if armed else ""
    times = f"fired {many(len(fired), 'time')}, first " if len(fired) > 1 else "fired "
    return f"{times}{_at(fired[0])}: {fault_words(fired[0])}"
