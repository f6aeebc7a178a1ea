"""The tables of the report in a terminal: runs by family, shares, agents side by side, fixes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from wedgehog.reports.campaign_folder import FIX_ROWS, NO_FAMILY, SINGLE_FIX, agent_order
from wedgehog.reports.cost import asked, notes, numbers, of_the_campaign
from wedgehog.reports.groups import grouped
from wedgehog.reports.repeats import folded
from wedgehog.reports.rows import RunRow
from wedgehog.reports.terminal.printer import Printer
from wedgehog.reports.totals import OVER_OWN_LIMITS, bounds, over_own_limits, side_by_side
from wedgehog.reports.words import count, money, seconds

BOUNDLESS_COLUMNS = 10_000
MOST_SKIPPED = 20
"""With more skipped runs than these the tables have only the others; the reasons stand below them."""

WORDS = ("scenario, agent", "verdict")
HEADS = (*WORDS, "paid", "billed", "delivered", "sim. cost", "turn", "1st error", "recovery")

DEAR_USD_PER_MIN = 1.0
"""From this cost per minute on, the report has a line about it."""


@dataclass(frozen=True)
class Tables(Printer):
    """Prints the tables."""

    def print(self) -> None:
        """The runs by family, and what they have in common."""
        families = grouped(self._tabled(), lambda row: row.family)
        for family, rows in families.items():
            self._family(family if family != NO_FAMILY or len(families) > 1 else "", rows)
        self._shares()
        self._side_by_side()

    def _tabled(self) -> list[RunRow]:
        """Without the runs of an agent whose control run failed, and without many skipped ones: one line names them."""
        rows = zip(self.rows, self.campaign.runs, strict=True)
        kept = self.campaign.numbers
        many_skipped = sum(row.standing == "skipped" for row in self.rows) > MOST_SKIPPED
        left_out = {"skipped"} if many_skipped else set[str]()
        left = [(row, run) for row, run in rows if row.standing not in left_out]
        return [row for row, run in left if row.standing != "error" or kept[run.folder].recorded]

    def _family(self, title: str, rows: Sequence[RunRow]) -> None:
        self.console.print()
        records = folded(rows)
        if title := ", ".join(filter(None, (title, self._only_agent(records)))):
            self.console.print(self.text(title, "bold underline"))
        grid = self._table(records)
        boundless = self.console.options.update(width=BOUNDLESS_COLUMNS)
        if Measurement.get(self.console, boundless, grid).minimum <= self.console.width:
            self.console.print(grid)
        else:
            self._stacked(records)
        for note in notes(records):
            self.say(note, "dim")
        self._rates(rows)
        self._databases(rows)
        self._fixes(rows)

    def _only_agent(self, records: Sequence[RunRow]) -> str:
        """The agent, if all runs are its: it stands above them. A line for each scenario is then enough."""
        agents = {row.agent for row in self.rows}
        alone = len(agents) == 1 and len({row.scenario for row in records}) == len(records)
        return _agent(records[0]) if alone and len({*map(_agent, records)}) == 1 else ""

    def _table(self, records: Sequence[RunRow]) -> Table:
        """The runs as a table. Only the violated invariants, below the verdict, may wrap."""
        lines: list[list[Text]] = []
        only = self._only_agent(records)
        heads = (WORDS[0].partition(",")[0] if only else WORDS[0], *HEADS[1:])
        room = {name: len(name) for name in heads}
        for scenario, rows in groupby(records, lambda row: row.scenario):
            lines += [] if only else [[self.text(scenario, "bold")]]
            for row in rows:
                named = self.text(scenario, "bold") if only else self.text(f"  {_agent(row)}")
                lines.append([named, self.verdict(row), *map(self.text, numbers(row))])
        for line in lines:
            room |= {name: max(room[name], word.cell_len) for name, word in zip(heads, line, strict=False)}
        for line, row in zip((line for line in lines if len(line) > 1), records, strict=True):
            if row.violated:
                line[1] = Text.assemble(line[1], "\n", self.text(row.violated.replace(";", ", "), "dim"))
        grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for number, name in enumerate(heads):
            justify: Literal["left", "right"] = "left" if number < len(WORDS) else "right"
            grid.add_column(name, min_width=room[name], no_wrap=name != "verdict", justify=justify)
        for line in lines:
            grid.add_row(*line)
        return grid

    def _stacked(self, records: Sequence[RunRow]) -> None:
        only = self._only_agent(records)
        for scenario, rows in groupby(records, lambda row: row.scenario):
            if not only:
                self.say(scenario, "bold")
            for row in rows:
                named = self.text(scenario if only else _agent(row), "bold")
                self.say(Text.assemble(self.verdict(row), "  ", named), indent=2)
                if row.violated:
                    self.say(row.violated.replace(";", ", "), indent=4)
                if row.paid_calls is not None:
                    paid, billed, delivered, usd, turn, error, recovery = numbers(row)
                    spent = f"{paid} paid · {billed} billed / {delivered} delivered · {usd} simulated"
                    self.say(spent, "dim", indent=4)
                    self.say(f"turn {turn} · first error {error} · recovery {recovery}", "dim", indent=4)

    def _rates(self, rows: Iterable[RunRow]) -> None:
        """The cost per minute of all agents of a scenario, if that of one agent is high."""
        counted = (row for row in rows if row.standing != "shown" and row.peak_usd_per_min is not None)
        for scenario, runs in grouped(counted, lambda row: row.scenario).items():
            if any((row.peak_usd_per_min or 0) >= DEAR_USD_PER_MIN for row in runs):
                said = ", ".join(map(_rate, runs))
                scale = max(row.time_scale or 1 for row in runs)
                clock = f" (in real time; durations were divided by {scale:g})" if scale != 1 else ""
                self.say(f"highest simulated cost per minute in {scenario}: {said}{clock}", "dim")

    def _databases(self, rows: Iterable[RunRow]) -> None:
        """The database queries of each agent of a scenario, and their share of the turns' time."""
        used = (row for row in rows if row.queries is not None and row.standing != "shown")
        for scenario, runs in grouped(used, lambda row: row.scenario).items():
            said = "; ".join(f"{_agent(row)} {asked(row)}" for row in runs)
            self.say(f"database of {scenario}: {said}", "dim")

    def _shares(self) -> None:
        lines = of_the_campaign(self.campaign, self.rows)
        if lines:
            self.console.print()
        for line in lines:
            self.say(line)

    def _side_by_side(self) -> None:
        """The totals of each agent, and the scenarios in which they differ."""
        lines = list(side_by_side(self.campaign))
        if lines:
            self.heading("Side by side")
        for depth, line in lines:
            self.say(line, indent=2 + 2 * depth)
        for line in bounds(self.campaign):
            self.say(line, indent=2)
        if limited := list(over_own_limits(self.campaign)):
            self.heading(OVER_OWN_LIMITS)
        for line in limited:
            self.say(line, indent=2)

    def _fixes(self, rows: Iterable[RunRow]) -> None:
        """For each variant of a specimen its verdicts, if variants with single fixes were played."""
        tried = grouped((row for row in rows if row.agent.startswith(FIX_ROWS)), lambda row: row.agent)
        if not any(agent.startswith(SINGLE_FIX) for agent in tried):
            return
        self.console.print()
        self.say("fix \N{MULTIPLICATION SIGN} scenario", "bold")
        for agent in sorted(tried, key=agent_order):
            by_verdict = grouped(tried[agent], lambda row: row.reads)
            said = "; ".join(f"{reads}: {_scenarios(alike)}" for reads, alike in by_verdict.items())
            self.say(Text.assemble(self.text(agent, "bold"), self.text(f"  {said}")), indent=2)


def _scenarios(rows: Iterable[RunRow]) -> str:
    return ", ".join(dict.fromkeys(row.scenario for row in rows))


def _agent(row: RunRow) -> str:
    return row.agent if row.repeat == 1 else f"{row.agent} #{row.repeat}"


def _rate(row: RunRow) -> str:
    spent = f"{count(row.paid_calls)} calls in {seconds(row.calls_s)}"
    return f"{_agent(row)} {money(row.peak_usd_per_min)} ({spent})"
