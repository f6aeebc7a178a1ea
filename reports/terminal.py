"""The report in a terminal: verdicts, reasons, cost, and how to play a run again.

Words carry the meaning and colours only repeat it, for NO_COLOR, logs and screen readers. On a narrow terminal each run
becomes three short lines. Where the encoding has no `✓`, the report says `ok`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.campaign_folder import FIX_ROWS, NO_FAMILY, SINGLE_FIX, StoredCampaign, agent_order
from wedgehog.reports.cost import asked, notes, numbers, shares, total_words
from wedgehog.reports.groups import grouped
from wedgehog.reports.repeats import folded
from wedgehog.reports.result_category import ATTENTION, SIGNS, agent_name, attention_heading, result_category, tally
from wedgehog.reports.rows import RunRow, table
from wedgehog.reports.totals import OVER_OWN_LIMITS, bounds, over_own_limits, side_by_side
from wedgehog.reports.words import NONE, clean, count, many, money, seconds, speakable

BOUNDLESS_COLUMNS = 10_000

WORDS = ("scenario, agent", "verdict")
HEADS = (*WORDS, "paid", "billed", "delivered", "sim. cost", "turn", "1st error", "recovery")

STYLES = {
    "passed": "green",
    "failed": "bold red",
    "inconclusive": "yellow",
    "error": "magenta",
    "skipped": "dim",
    "known": "yellow",
    "shown": "dim",
}

DEAR_USD_PER_MIN = 1.0
"""From this cost per minute on, the report has a line about it."""

SKIPPED_NAMED = 4
"""How many scenarios with the same reason are named; the rest is counted."""


def print_campaign(campaign: StoredCampaign, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
    """Print the report of a campaign that was read.

    `verbose` adds each invariant's sentence; `quiet` leaves only what needs attention, and the totals.
    """
    printed = _Report(campaign, table(campaign), console, verbose)
    if not quiet:
        printed.tables()
    printed.summary()


@dataclass(frozen=True)
class _Report:
    campaign: StoredCampaign
    rows: Sequence[RunRow]
    console: Console
    verbose: bool

    def tables(self) -> None:
        """All runs, and what they have in common."""
        families = grouped(self._tabled(), lambda row: row.family)
        for family, rows in families.items():
            self._family(family if family != NO_FAMILY or len(families) > 1 else "", rows)
        self._shares()
        self._side_by_side()
        self._skipped()
        if self.verbose:
            self._passed()
        self._expected_failures()

    def _tabled(self) -> list[RunRow]:
        """Without the runs of an agent whose control run failed: one line names them all."""
        rows = zip(self.rows, self.campaign.runs, strict=True)
        kept = self.campaign.numbers
        return [row for row, run in rows if row.standing != "error" or kept[run.folder].recorded]

    def summary(self) -> None:
        """What needs attention, and the totals."""
        self._attention()
        self._closing()

    # ---- tables

    def _family(self, title: str, rows: Sequence[RunRow]) -> None:
        self.console.print()
        if title:
            self.console.print(self._text(title, "bold underline"))
        records = folded(rows)
        grid = self._table(records)
        boundless = self.console.options.update(width=BOUNDLESS_COLUMNS)
        if Measurement.get(self.console, boundless, grid).minimum <= self.console.width:
            self.console.print(grid)
        else:
            self._stacked(records)
        for note in notes(records):
            self._say(note, "dim")
        self._rates(rows)
        self._databases(rows)
        self._fixes(rows)

    def _table(self, records: Sequence[RunRow]) -> Table:
        """The runs as a table. Only the violated invariants, below the verdict, may wrap."""
        lines: list[list[Text]] = []
        room = {name: len(name) for name in HEADS}
        for scenario, rows in groupby(records, lambda row: row.scenario):
            lines.append([self._text(scenario, "bold")])
            for row in rows:
                lines.append([self._text(f"  {_agent(row)}"), self._verdict(row), *map(self._text, numbers(row))])
        for line in lines:
            room |= {name: max(room[name], word.cell_len) for name, word in zip(HEADS, line, strict=False)}
        for line, row in zip((line for line in lines if len(line) > 1), records, strict=True):
            if row.violated:
                line[1] = Text.assemble(line[1], "\n", self._text(row.violated.replace(";", ", "), "dim"))
        grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for name in HEADS:
            justify: Literal["left", "right"] = "left" if name in WORDS else "right"
            grid.add_column(name, min_width=room[name], no_wrap=name != "verdict", justify=justify)
        for line in lines:
            grid.add_row(*line)
        return grid

    def _stacked(self, records: Sequence[RunRow]) -> None:
        for scenario, rows in groupby(records, lambda row: row.scenario):
            self._say(scenario, "bold")
            for row in rows:
                self._say(Text.assemble(self._verdict(row), "  ", self._text(_agent(row), "bold")), indent=2)
                if row.violated:
                    self._say(row.violated.replace(";", ", "), indent=4)
                if row.paid_calls is not None:
                    paid, billed, delivered, usd, turn, error, recovery = numbers(row)
                    spent = f"{paid} paid · {billed} billed / {delivered} delivered · {usd} simulated"
                    self._say(spent, "dim", indent=4)
                    self._say(f"turn {turn} · first error {error} · recovery {recovery}", "dim", indent=4)

    def _rates(self, rows: Iterable[RunRow]) -> None:
        """The cost per minute of all agents of a scenario, if that of one agent is high."""
        counted = (row for row in rows if row.standing != "shown" and row.peak_usd_per_min is not None)
        for scenario, runs in grouped(counted, lambda row: row.scenario).items():
            if any((row.peak_usd_per_min or 0) >= DEAR_USD_PER_MIN for row in runs):
                said = ", ".join(map(_rate, runs))
                scale = max(row.time_scale or 1 for row in runs)
                clock = f" (in real time; durations were divided by {scale:g})" if scale != 1 else ""
                self._say(f"highest simulated cost per minute in {scenario}: {said}{clock}", "dim")

    def _databases(self, rows: Iterable[RunRow]) -> None:
        """The database queries of each agent of a scenario, and their share of the turns' time."""
        used = (row for row in rows if row.queries is not None and row.standing != "shown")
        for scenario, runs in grouped(used, lambda row: row.scenario).items():
            said = "; ".join(f"{_agent(row)} {asked(row)}" for row in runs)
            self._say(f"database of {scenario}: {said}", "dim")

    def _shares(self) -> None:
        lines = shares(self.rows)
        if lines:
            self.console.print()
        for line in lines:
            self._say(line)

    def _side_by_side(self) -> None:
        """The totals of each agent, and the scenarios in which they differ."""
        lines = list(side_by_side(self.campaign))
        if lines:
            self._heading("Side by side")
        for depth, line in lines:
            self._say(line, indent=2 + 2 * depth)
        for line in bounds(self.campaign):
            self._say(line, indent=2)
        if limited := list(over_own_limits(self.campaign)):
            self._heading(OVER_OWN_LIMITS)
        for line in limited:
            self._say(line, indent=2)

    def _fixes(self, rows: Iterable[RunRow]) -> None:
        """For each variant of a specimen its verdicts, if variants with single fixes were played."""
        tried = grouped((row for row in rows if row.agent.startswith(FIX_ROWS)), lambda row: row.agent)
        if not any(agent.startswith(SINGLE_FIX) for agent in tried):
            return
        self.console.print()
        self._say("fix \N{MULTIPLICATION SIGN} scenario", "bold")
        for agent in sorted(tried, key=agent_order):
            by_verdict = grouped(tried[agent], lambda row: row.reads)
            said = "; ".join(f"{reads}: {_scenarios(alike)}" for reads, alike in by_verdict.items())
            self._say(Text.assemble(self._text(agent, "bold"), self._text(f"  {said}")), indent=2)

    def _verdict(self, row: RunRow) -> Text:
        return self._text(f"{SIGNS[row.standing]} {row.reads}", STYLES[row.standing])

    # ---- sentences

    def _skipped(self) -> None:
        """The reasons of skipped runs, each once per agent."""
        runs = [run for run in self.campaign.runs if run.judgement.skipped]
        if runs:
            self._heading("Skipped")
        for alike in grouped(runs, lambda run: (run.judgement.agent, run.judgement.skipped)).values():
            names = list(dict.fromkeys(run.judgement.scenario for run in alike))
            more = f" and {len(names) - SKIPPED_NAMED} more" if len(names) > SKIPPED_NAMED else ""
            judged, shown = alike[0].judgement, ", ".join(names[:SKIPPED_NAMED])
            self._say(f"{NONE} {judged.agent}: {judged.skipped} ({shown}{more})", indent=2)

    def _passed(self) -> None:
        """What supports each pass, once for repeats with the same sentences."""
        runs = [run for run in self.campaign.runs if run.judgement.verdict == "pass"]
        runs = [run for run in runs if result_category(run.judgement) == "passed"]
        if runs:
            self._heading("Passed")
        for alike in grouped(runs, _sentence).values():
            judged = alike[0].judgement
            names = dict.fromkeys(agent_name(run.judgement) for run in alike)
            self._say(f"{SIGNS['passed']} {judged.scenario}, {', '.join(names)}", STYLES["passed"], indent=2)
            self._each_invariant(alike[0])

    def _expected_failures(self) -> None:
        """Why the runs with an expected or known failure failed."""
        failed = [run for run in self.campaign.runs if run.judgement.verdict == "fail"]
        runs = [run for run in failed if result_category(run.judgement) in ("passed", "known")]
        if runs:
            self._heading("Failed, as expected")
        for alike in grouped(runs, _sentence).values():
            self._why(alike)

    def _attention(self) -> None:
        runs = [run for run in self.campaign.runs if result_category(run.judgement) in ATTENTION]
        if runs:
            self._heading(attention_heading(run.judgement for run in runs))
        for alike in grouped(runs, self._alike).values():
            repeats = self.campaign.numbers[alike[0].folder].recorded
            self._why(alike[:1] if repeats else alike)
            if repeats and len(alike) > 1:
                self._say(f"and {many(len(alike) - 1, 'more repeat')} with this result", "dim", indent=4)
            if alike[0].judgement.replay:
                self._whole(f"    replay: {alike[0].judgement.replay}", "cyan")
        self._fixes_of(run for run in runs if not run.judgement.expected)
        if self.campaign.unfinished:
            self._heading("Unfinished")
        for lost in self.campaign.unfinished:
            self._say(f"{self.campaign.place(lost.folder)}: {lost.why}", indent=2)

    def _fixes_of(self, runs: Iterable[StoredRun]) -> None:
        """How to fix what these runs violate: each invariant once."""
        judged = [run.judgement for run in runs]
        fixes = {it.name: it.fix for one in judged for it in one.verdicts if it.fix and it.name in one.violated}
        if fixes:
            self._heading("How to fix")
        for name, fix in fixes.items():
            self._say(Text.assemble(self._text(f"{name}: ", "bold"), self._text(fix)), indent=2)

    def _alike(self, run: StoredRun) -> object:
        """The key of repeats with the same result, or of runs of an agent that could not be played for one reason."""
        judged = run.judgement
        if not self.campaign.numbers[run.folder].recorded:
            return judged.agent, judged.says
        return judged.scenario, judged.agent, judged.verdict, judged.violated

    def _why(self, runs: Sequence[StoredRun]) -> None:
        """One sentence for runs with the same result."""
        judged = runs[0].judgement
        sign, style = SIGNS[result_category(judged)], STYLES[result_category(judged)]
        scenarios = list(dict.fromkeys(run.judgement.scenario for run in runs))
        where = scenarios[0] if len(scenarios) == 1 else f"{len(scenarios)} scenarios"
        names = ", ".join([where, *dict.fromkeys(agent_name(run.judgement) for run in runs)])
        says = judged.says or ", ".join(judged.violated) or judged.verdict
        known = f" (known: {judged.known})" if result_category(judged) == "known" else ""
        self._say(Text.assemble(self._text(f"{sign} {names}: ", style), self._text(f"{says}{known}")), indent=2)
        if self.verbose:
            self._each_invariant(runs[0])

    def _each_invariant(self, run: StoredRun) -> None:
        for verdict in run.judgement.verdicts:
            if verdict.status != "nothing":
                said = verdict.says or verdict.because
                self._say(f"{verdict.name} {verdict.status}{f': {said}' if said else ''}", "dim", indent=4)
        told = {verdict.says for verdict in run.judgement.verdicts}
        for remark in (*filter(None, [run.judgement.clocks]), *run.judgement.remarks):
            if remark not in told:
                self._say(remark, "dim", indent=4)

    def _closing(self) -> None:
        self.console.print()
        if not self.rows and not self.campaign.unfinished:
            self._say("Nothing ran.")
        counts = tally((row.standing for row in self.rows), len(self.campaign.unfinished))
        bad = self.campaign.unfinished or any(row.standing in ATTENTION for row in self.rows)
        spent = f", {total_words(self.rows)}" if self.rows else ""
        self._say(Text.assemble(self._text(counts, "bold red" if bad else "bold green"), self._text(spent)))
        if clocks := both_clocks(run.judgement for run in self.campaign.runs):
            self._say(clocks)
        page = self.campaign.folder / "report.html"
        self._whole(f"report: {page if page.is_file() else self.campaign.folder}")

    # ---- output

    def _heading(self, words: str) -> None:
        self.console.print()
        self._say(words, "bold")

    def _say(self, words: str | Text, style: str = "", indent: int = 0) -> None:
        text = words if isinstance(words, Text) else self._text(words, style)
        self.console.print(Padding(text, (0, 0, 0, indent), expand=False), soft_wrap=False)

    def _whole(self, words: str, style: str = "") -> None:
        """One line to copy: only the terminal may wrap it."""
        self.console.print(self._text(words, style), soft_wrap=True)

    def _text(self, words: str, style: str = "") -> Text:
        """Text of any origin without control codes and markup, in characters that this terminal can write."""
        line = clean(words).replace("\n", " ").replace("\t", " ")
        return Text(speakable(line, self.console.encoding), style=style)


def _sentence(run: StoredRun) -> object:
    """The key of runs of one scenario with the same sentence."""
    judged = run.judgement
    return judged.scenario, judged.says, judged.violated, judged.known


def _scenarios(rows: Iterable[RunRow]) -> str:
    return ", ".join(dict.fromkeys(row.scenario for row in rows))


def _agent(row: RunRow) -> str:
    return row.agent if row.repeat == 1 else f"{row.agent} #{row.repeat}"


def _rate(row: RunRow) -> str:
    spent = f"{count(row.paid_calls)} calls in {seconds(row.calls_s)}"
    return f"{_agent(row)} {money(row.peak_usd_per_min)} ({spent})"


def both_clocks(judgements: Iterable[Judgement]) -> str:
    """The virtual and the real time of all simulated runs together; empty if there are none."""
    played = [(it.virtual_s, it.real_s) for it in judgements if it.virtual_s is not None and it.real_s is not None]
    virtual_s, real_s = (sum(column) for column in zip(*played, strict=True)) if played else (0.0, 0.0)
    return f"virtual time: {virtual_s:.0f} s; the runs took {real_s:.1f} s, added up" if played else ""
