"""report.html: one file to mail, archive and print. It loads nothing and runs no script."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from wedgehog.harness.record.events.run import Trouble
from wedgehog.harness.record.history import read
from wedgehog.harness.record.ledger import LEAST_S
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.reports.campaign_folder import NO_FAMILY, OF_SCENARIOS, SINGLE_FIX, StoredCampaign, agent_order
from wedgehog.reports.cost import (
    PerAnswer,
    asked,
    cost_words,
    count_words,
    notes,
    of_the_campaign,
    per_answer,
    total_words,
    worst,
)
from wedgehog.reports.groups import grouped
from wedgehog.reports.latency import times
from wedgehog.reports.markup import Markup, document, scrolled, tag
from wedgehog.reports.page.all_runs import AllRuns
from wedgehog.reports.page.attention import attention_list, headline, wrong_lines
from wedgehog.reports.page.latency_section import latency_section
from wedgehog.reports.page.matrix import NumberedRun, grid, words_below
from wedgehog.reports.page.plot import Bar, bars
from wedgehog.reports.repeats import cell_of
from wedgehog.reports.result_category import tally
from wedgehog.reports.rows import RunRow
from wedgehog.reports.totals import OVER_OWN_LIMITS, bounds, over_own_limits, side_by_side
from wedgehog.reports.words import NONE, brief, count, money, seconds

CSS = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

BARS_SHOWN, ROWS_SHOWN, LINES_SHOWN = 60, 500, 60
"""The most bars of a family, rows of the numbers and lines of a comparison; summary.csv and summary.md hold all."""

NUMBERS_NOTE = (
    "No provider was paid: money is simulated, from tokens at list prices. "
    "Tokens billed: input and output. Delivered: output that reached the agent. The recovery message is not counted. "
    "Per minute: the 60 s with the most calls; if all calls took less than 60 s, their number divided by that time "
    f"({LEAST_S:g} s at least). Per answer: over all repeats, divided by the answered turns. Wasted: the share of the "
    "money for calls that completed no text block and no tool call. Database: queries through a database of the "
    "harness; those that only the agent's own files count are shown with its run."
)
_NUMBERS = (
    *("paid calls", "refused", "tokens billed", "delivered", "simulated cost", "calls took", "calls/min", "$/min"),
    *("$/answer", "tokens/answer", "wasted", "database"),
)


def write(campaign: StoredCampaign, table: Sequence[RunRow], path: Path) -> None:
    """Write report.html."""
    path.write_text(page(campaign, table), encoding="utf-8")


def page(campaign: StoredCampaign, table: Sequence[RunRow]) -> str:
    """The report of a campaign as one HTML document."""
    return _Page(campaign, table).document()


@dataclass(frozen=True)
class _Page:
    campaign: StoredCampaign
    table: Sequence[RunRow]

    def document(self) -> str:
        shown = attention_list(self.campaign, self.runs.bad, self.runs.address)
        sections = (
            shown,
            self._matrices(),
            agents_section(self.campaign),
            self._plots(),
            self._numbers(),
            self._latency(),
            self._fixes(),
        )
        said = "Wedgehog made this page from the histories in this folder; `wedgehog check` makes it again."
        main = tag("main", sections, self.runs.parts(), self._what_ran(), self._controls())
        title = f"Wedgehog: {headline(self.campaign)}"
        return document(title, CSS, POLICY, (self._header(), main, tag("footer", said)))

    @cached_property
    def runs(self) -> AllRuns:
        return AllRuns(self.campaign)

    # ---- what ran

    def _header(self) -> Markup:
        """What is wrong in three lines, before anything else."""
        spent = f"{total_words(self.table)} at list prices, without the recovery messages" if self.table else ""
        counts = tally((row.standing for row in self.table), self.campaign.lost)
        expected = any(run.judgement.verdict == "fail" and run.judgement.as_expected for run in self.campaign.runs)
        counts += " (an expected fail counts as passed)" if expected else ""
        return tag(
            "header",
            tag("p", "Wedgehog", class_="brand"),
            tag("h1", headline(self.campaign)),
            wrong_lines(self.campaign, self.runs.bad, self.runs.address),
            tag("p", "; ".join(part for part in (counts, spent) if part) + ".", class_="lead"),
            class_="top",
        )

    def _what_ran(self) -> Markup:
        return tag("section", tag("h2", "What was run, and where"), tag("dl", self._pairs(), class_="ran"))

    def _pairs(self) -> Iterator[Markup]:
        networks = sorted({run.judgement.network for run in self.campaign.runs if run.judgement.network})
        folded = {"folder": self.campaign.folder.name, "network": ", ".join(networks)}
        said = {key: value for key, value in self.campaign.description.items() if key not in OF_SCENARIOS}
        for key, value in (folded | said).items():
            words = _words(value)
            if words:
                name = tag("dt", str(key).replace("_", " "))
                yield tag("div", name, tag("dd", words), class_="wide" if len(words) > 70 else None)

    # ---- matrices

    def _by_family(self) -> Iterator[tuple[Markup | None, list[NumberedRun]]]:
        """The runs of each family under its title."""
        found: dict[str, list[NumberedRun]] = {}
        for number, run in enumerate(self.campaign.runs):
            found.setdefault(self.campaign.family(run.judgement.scenario), []).append((number, run))
        for family, runs in found.items():
            yield tag("h3", family) if family != NO_FAMILY else None, runs

    def _below(self, run: StoredRun) -> str:
        return words_below(run, self.campaign.numbers[run.folder])

    def _matrices(self) -> Markup | None:
        """One table of scenarios by agents per family, and the lines of `shares`; single fixes stand in their own."""
        tables: list[Markup | None] = []
        for title, runs in self._by_family():
            shown = [(n, run) for n, run in runs if not _single_fix(run)] or runs
            tables += [title, *grid(shown, "scenario", "agent", self.runs.address, self._below)]
        lines = [tag("li", line) for line in of_the_campaign(self.campaign, self.table)]
        told = tag("ul", lines, class_="bullets") if lines else None
        return tag("section", tag("h2", "Verdicts"), tables, told) if tables else None

    def _fixes(self) -> Markup | None:
        """Fixes by scenarios: which single fix is enough, and which is needed."""
        tables: list[Markup | None] = []
        for title, runs in self._by_family():
            if any(_single_fix(run) for _, run in runs):
                variants = [(n, run) for n, run in runs if agent_order(run.judgement.agent) < agent_order("~")]
                tables += [title, *grid(variants, "agent", "scenario", self.runs.address, self._below, small=True)]
        legend = "P pass, F fail, I inconclusive, E error, S skipped. An outlined F was expected. Empty: not played."
        head = (tag("h2", "Fix \N{MULTIPLICATION SIGN} scenario"), tag("p", legend, class_="soft"))
        return tag("section", head, tables) if tables else None

    # ---- numbers

    def _plots(self) -> Markup | None:
        """Bars per agent; the variants of a fix matrix stand only in the table below."""
        spent = worst(self.table)
        if not any(row.paid_calls for row in spent):
            return None
        some = [row for row in spent if not row.agent.startswith(SINGLE_FIX)] or spent
        plots = [_bars(family, rows) for family, rows in grouped(some, lambda row: row.family).items()]
        note = tag("p", "Each family has a scale of its own.", class_="soft") if len(plots) > 1 else None
        return tag("section", tag("h2", "Paid calls and simulated cost"), note, tag("div", plots, class_="plots"))

    def _numbers(self) -> Markup | None:
        """What each agent spent and how long its user waited, by scenario, with the number of the incident's report."""
        spent, answers = worst(self.table), per_answer(self.table)
        if not spent:
            return None
        body = [
            (_group(scenario, rows[0].report_number), [_line(row, answers[cell_of(row)]) for row in rows])
            for scenario, rows in grouped(spent[:ROWS_SHOWN], lambda row: row.scenario).items()
        ]
        heads = [tag("th", "agent", scope="col"), *(tag("th", name, class_="n", scope="col") for name in _NUMBERS)]
        said = [tag("p", note, class_="soft") for note in (*notes(spent), NUMBERS_NOTE)]
        return tag("section", tag("h2", "Calls, tokens, money, time"), scrolled(heads, body, "numbers"), said)

    def _latency(self) -> Markup | None:
        return latency_section(times(self.campaign))

    def _controls(self) -> Markup | None:
        """What each agent did without a fault."""
        folders = self.campaign.controls
        if not folders:
            return None
        lines = [tag("li", tag("code", self.campaign.place(folder)), f": {_control(folder)}") for folder in folders]
        note = (
            "Each agent plays this run first, without a fault. What it does not do here is not held against it later."
        )
        return tag(
            "section", tag("h2", "Control runs"), tag("p", note, class_="soft"), tag("ul", lines, class_="bullets")
        )


def _words(value: Any) -> str:
    """A fact of campaign.json as text: an argument list as a command, a mapping as pairs."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return shlex.join(map(str, value))
    return "" if value is None else str(value)


def _single_fix(run: StoredRun) -> bool:
    return run.judgement.agent.startswith(SINGLE_FIX)


def _bars(family: str, rows: Sequence[RunRow]) -> tuple[Markup, Markup]:
    shown = rows[:BARS_SHOWN]
    of = "" if family == NO_FAMILY else f": {family}"
    only = len({row.agent for row in rows}) == 1  # the names of its scenarios are enough
    named = [(("", row.scenario) if only else (row.scenario, row.agent), row) for row in shown]
    calls = [Bar(*name, row.paid_calls or 0.0, count_words(row, row.paid_calls)) for name, row in named]
    dollars = [Bar(*name, row.cost_usd or 0.0, cost_words(row)) for name, row in named]
    return bars(f"Paid calls{of}", calls), bars(f"Simulated cost{of}", dollars)


def _group(scenario: str, report_number: str) -> Markup:
    report = tag("span", f" · incident report: {report_number}", class_="soft") if report_number else None
    return tag("tr", tag("th", scenario, report, colspan=1 + len(_NUMBERS), scope="colgroup"), class_="group")


def _line(row: RunRow, answers: PerAnswer) -> Markup:
    cells = (
        count_words(row, row.paid_calls),
        count(row.refused_calls),
        *(count_words(row, tokens) for tokens in (row.tokens_billed, row.tokens_delivered)),
        cost_words(row),
        seconds(row.calls_s),
        brief(row.peak_calls_per_min),
        NONE if row.peak_calls_per_min is None else money(row.peak_usd_per_min),
        *_of_answers(answers),
        asked(row),
    )
    return tag("tr", tag("td", row.agent, class_="keep"), [tag("td", words, class_="n") for words in cells])


def _of_answers(per: PerAnswer) -> tuple[str, str, str]:
    """Cost and tokens for each answered turn, and the share of the money that brought nothing."""
    wasted = NONE if per.wasted_share is None else f"{per.wasted_share:.0%}"
    if per.tokens is None:
        return "no answer", NONE, wasted
    return money(per.usd), brief(per.tokens), wasted


def _control(folder: Path) -> str:
    try:
        history = read(folder / "history.jsonl")
    except (OSError, ValueError):
        return "it can't be read"
    came = (f"{turn} {outcome_of(turn, history).kind}" for turn in history.turns)
    return "; ".join([*came, *(trouble.what for trouble in history.of(Trouble))]) or "nothing was recorded"


def agents_section(campaign: StoredCampaign) -> Markup | None:
    """Agents side by side; None if there is nothing to compare and no common bound."""
    held, compared = list(bounds(campaign)), list(side_by_side(campaign))
    if not held and not compared:
        return None
    lines = [tag("li", line, class_="beside" if depth else None) for depth, line in compared[:LINES_SHOWN]]
    more = f"{len(compared) - LINES_SHOWN:,} more lines are in summary.md." if len(compared) > LINES_SHOWN else ""
    return tag(
        "section",
        tag("h2", "Side by side"),
        [tag("p", line) for line in held],
        tag("ul", lines, class_="bullets") if lines else None,
        tag("p", more, class_="soft") if more else None,
        _over(campaign),
    )


def _over(campaign: StoredCampaign) -> list[Markup] | None:
    lines = list(over_own_limits(campaign))
    if not lines:
        return None
    return [tag("h3", OVER_OWN_LIMITS), tag("ul", [tag("li", line) for line in lines[:LINES_SHOWN]], class_="bullets")]
