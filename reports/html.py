"""report.html: one file to mail, archive and print. It loads nothing and runs no script."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from wedgehog.harness.record.event import Trouble
from wedgehog.harness.record.history import read
from wedgehog.harness.record.ledger import LEAST_S
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.reports.campaign_folder import NO_FAMILY, OF_SCENARIOS, SINGLE_FIX, StoredCampaign, agent_order
from wedgehog.reports.cost import asked, cost_words, notes, shares, total_words, worst
from wedgehog.reports.markup import Markup, document, scrolled, tag
from wedgehog.reports.plot import Bar, bars
from wedgehog.reports.result_category import (
    ATTENTION,
    attention_heading,
    reads,
    result_category,
    run_badge,
    small_badge,
    tally,
)
from wedgehog.reports.rows import harmed_answered
from wedgehog.reports.run_section import anchor, run_section
from wedgehog.reports.words import NONE, brief, count, many, missing, money, seconds

CSS = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

OPEN_ALL_UP_TO = 3
"""Up to so many runs, all are shown unfolded."""

NUMBERS_NOTE = (
    "Tokens billed: input and output. Delivered: output that reached the agent. The recovery message is not counted. "
    "Per minute: the 60 s with the most calls; if all calls took less than 60 s, their number divided by that time "
    f"({LEAST_S:g} s at least). All times are real times."
)
_NUMBERS = (
    *("paid calls", "refused", "tokens billed", "delivered", "cost", "calls took", "calls/min", "$/min"),
    *("turn", "first error", "recovery", "database"),
)

_NumberedRun = tuple[int, StoredRun]
"""A run and its number in the page."""


def write(campaign: StoredCampaign, table: pd.DataFrame, path: Path) -> None:
    """Write report.html."""
    path.write_text(page(campaign, table), encoding="utf-8")


def page(campaign: StoredCampaign, table: pd.DataFrame) -> str:
    """The report of a campaign as one HTML document."""
    return _Page(campaign, table).document()


@dataclass(frozen=True)
class _Page:
    campaign: StoredCampaign
    table: pd.DataFrame

    def document(self) -> str:
        sections = (self._attention(), self._matrices(), self._fixes(), self._plots(), self._numbers())
        said = "Wedgehog made this page from the histories in this folder; `wedgehog check` makes it again."
        main = tag("main", sections, self._runs(), self._controls())
        return document(f"Wedgehog: {self._headline()}", CSS, POLICY, (self._header(), main, tag("footer", said)))

    # ---- what ran

    def _headline(self) -> str:
        """The result in one sentence."""
        categories = [result_category(run.judgement) for run in self.campaign.runs]
        counted = [category for category in categories if category not in ("skipped", "shown")]
        unfinished = len(self.campaign.unfinished)
        bad, total = sum(one in ATTENTION for one in counted) + unfinished, len(counted) + unfinished
        if not total:
            return "Nothing ran"
        if bad:
            return f"{bad} of {many(total, 'run')} did not end as expected"
        return "The run ended as expected" if total == 1 else f"All {total} runs ended as expected"

    def _header(self) -> Markup:
        spent = f"{total_words(self.table)} at list prices" if len(self.table) else ""
        counts = tally(self.table["standing"], len(self.campaign.unfinished))
        return tag(
            "header",
            tag("p", "Wedgehog", class_="brand"),
            tag("h1", self._headline()),
            tag("p", ". ".join(part for part in (counts, spent) if part) + ".", class_="lead"),
            tag("dl", self._facts(), class_="ran"),
            class_="top",
        )

    def _facts(self) -> Iterator[Markup]:
        networks = sorted({run.judgement.network for run in self.campaign.runs if run.judgement.network})
        folded = {"folder": self.campaign.folder.name, "network": ", ".join(networks)}
        said = {key: value for key, value in self.campaign.facts.items() if key not in OF_SCENARIOS}
        for key, value in (folded | said).items():
            words = _words(value)
            if words:
                name = tag("dt", str(key).replace("_", " "))
                yield tag("div", name, tag("dd", words), class_="wide" if len(words) > 70 else None)

    # ---- what needs attention

    def _attention(self) -> Markup | None:
        runs = [(n, run) for n, run in enumerate(self.campaign.runs) if result_category(run.judgement) in ATTENTION]
        items = [_look(n, run) for n, run in runs]
        for lost in self.campaign.unfinished:
            words = (tag("strong", self.campaign.place(lost.folder)), tag("p", f"Unfinished: {lost.why}"))
            items.append(tag("li", words, class_="unfinished"))
        if not items:
            return None
        title = tag("h2", attention_heading(run.judgement for _, run in runs))
        return tag("section", title, tag("ul", items, class_="plain attention"))

    # ---- matrices

    def _by_family(self) -> Iterator[tuple[Markup | None, list[_NumberedRun]]]:
        """The runs of each family under its title."""
        found: dict[str, list[_NumberedRun]] = {}
        for number, run in enumerate(self.campaign.runs):
            found.setdefault(self.campaign.family(run.judgement.scenario), []).append((number, run))
        for family, runs in found.items():
            yield tag("h3", family) if family != NO_FAMILY else None, runs

    def _matrices(self) -> Markup | None:
        """One table of scenarios by agents per family, and the lines of `shares`; single fixes stand in their own."""
        tables = []
        for title, runs in self._by_family():
            shown = [(n, run) for n, run in runs if not _single_fix(run)] or runs
            tables += [title, _grid(shown, "scenario", "agent")]
        lines = [tag("li", line) for line in shares(self.table)]
        told = tag("ul", lines, class_="facts") if lines else None
        return tag("section", tag("h2", "Verdicts"), tables, told) if tables else None

    def _fixes(self) -> Markup | None:
        """Fixes by scenarios: which single fix is enough, and which is needed."""
        tables = []
        for title, runs in self._by_family():
            if any(_single_fix(run) for _, run in runs):
                variants = [(n, run) for n, run in runs if agent_order(run.judgement.agent) < agent_order("~")]
                tables += [title, _grid(variants, "agent", "scenario", small=True)]
        legend = "P pass, F fail, I inconclusive, E error, S skipped. An outlined F was expected. Empty: not played."
        head = (tag("h2", "Fix \N{MULTIPLICATION SIGN} scenario"), tag("p", legend, class_="soft"))
        return tag("section", head, tables) if tables else None

    # ---- numbers

    def _plots(self) -> Markup | None:
        """Bars per agent; the variants of a fix matrix stand only in the table below."""
        spent = worst(self.table)
        if not len(spent) or not spent["paid_calls"].max() > 0:
            return None
        whole = spent[~spent["agent"].str.startswith(SINGLE_FIX)]
        records = (whole if len(whole) else spent).to_dict("records")
        calls = [_bar(row, "paid_calls", count(row["paid_calls"])) for row in records]
        dollars = [_bar(row, "cost_usd", cost_words(row)) for row in records]
        plots = (bars("Paid calls", calls), bars("Money", dollars))
        return tag("section", tag("h2", "What it cost"), tag("div", plots, class_="plots"))

    def _numbers(self) -> Markup | None:
        """What each agent spent and how long its user waited, by scenario, with the number of the incident's report."""
        both = worst(self.table)
        if not len(both):
            return None
        body = [
            (_group(str(scenario), rows["report_number"].iloc[0]), [_line(row) for row in rows.to_dict("records")])
            for scenario, rows in both.groupby("scenario", sort=False)
        ]
        heads = [tag("th", "agent", scope="col"), *(tag("th", name, class_="n", scope="col") for name in _NUMBERS)]
        said = [tag("p", note, class_="soft") for note in (*notes(both.to_dict("records")), NUMBERS_NOTE)]
        return tag("section", tag("h2", "Calls, tokens, money, time"), scrolled(heads, body, "numbers"), said)

    # ---- runs

    def _runs(self) -> Markup | None:
        if not self.campaign.runs:
            return None
        few = len(self.campaign.runs) <= OPEN_ALL_UP_TO
        sections = [
            run_section(number, run, self.campaign, unfolded=few or result_category(run.judgement) in ATTENTION)
            for number, run in enumerate(self.campaign.runs)
        ]
        return tag("section", tag("h2", "Run by run"), sections)

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
            "section", tag("h2", "Control runs"), tag("p", note, class_="soft"), tag("ul", lines, class_="facts")
        )


def _words(value: Any) -> str:
    """A fact of campaign.json as text: an argument list as a command, a mapping as pairs."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return shlex.join(map(str, value))
    return "" if value is None else str(value)


def _look(number: int, run: StoredRun) -> Markup:
    judged = run.judgement
    return tag(
        "li",
        run_badge(run, anchor(number)),
        " ",
        tag("strong", f"{judged.scenario}, {judged.agent}"),
        tag("p", judged.says or ", ".join(judged.violated)),
        tag("p", f"Expected: {judged.expected}", class_="soft") if judged.expected else None,
        tag("pre", judged.replay) if judged.replay else None,
        class_=result_category(judged),
    )


def _single_fix(run: StoredRun) -> bool:
    return run.judgement.agent.startswith(SINGLE_FIX)


def _grid(runs: Sequence[_NumberedRun], down: str, across: str, small: bool = False) -> Markup:
    found: dict[tuple[str, str], list[_NumberedRun]] = {}
    for number, run in runs:
        found.setdefault((getattr(run.judgement, down), getattr(run.judgement, across)), []).append((number, run))
    cells = {key: list(_small(repeats) if small else _cells(repeats)) for key, repeats in found.items()}
    rows, columns = (_names(cells, place, field) for place, field in enumerate((down, across)))
    body = [
        tag("tr", tag("th", row, scope="row"), [tag("td", cells.get((row, column), "")) for column in columns])
        for row in rows
    ]
    heads = [tag("th", down), *(tag("th", tag("span", column), scope="col") for column in columns)]
    return scrolled(heads, body, "small" if small else None)


def _names(cells: Iterable[tuple[str, str]], place: int, field: str) -> list[str]:
    names = dict.fromkeys(cell[place] for cell in cells)
    return sorted(names, key=agent_order) if field == "agent" else list(names)


def _small(repeats: Sequence[_NumberedRun]) -> Iterator[Markup]:
    return (small_badge(run, anchor(number)) for number, run in repeats)


def _cells(repeats: Sequence[_NumberedRun]) -> Iterator[Markup]:
    """One badge for all repeats with the same result: `pass 3 of 3`."""
    alike: dict[tuple[str, str], list[_NumberedRun]] = {}
    for number, run in repeats:
        alike.setdefault((reads(run.judgement), _below(run)), []).append((number, run))
    for (_, below), runs in alike.items():
        number, run = runs[0]
        share = f"{len(runs)} of {len(repeats)}" if len(repeats) > 1 else ""
        badge = run_badge(run, anchor(number), share)
        yield tag("div", badge, tag("span", below, class_="violated") if below else None)


def _below(run: StoredRun) -> str:
    seen = run.judgement.verdict == "pass" and harmed_answered(run.history) is False
    return "the user saw an error" if seen else ", ".join(run.judgement.violated)


def _bar(row: Mapping[Any, Any], column: str, says: str) -> Bar:
    value = 0.0 if missing(row[column]) else float(row[column])
    return Bar(str(row["scenario"]), str(row["agent"]), value, says)


def _group(scenario: str, report_number: str) -> Markup:
    report = tag("span", f" · incident report: {report_number}", class_="soft") if report_number else None
    return tag("tr", tag("th", scenario, report, colspan=1 + len(_NUMBERS), scope="colgroup"), class_="group")


def _line(row: Mapping[Any, Any]) -> Markup:
    cells = (
        *(count(row[name]) for name in ("paid_calls", "refused_calls", "tokens_billed", "tokens_delivered")),
        cost_words(row),
        seconds(row["calls_s"]),
        brief(row["peak_calls_per_min"]),
        NONE if missing(row["peak_calls_per_min"]) else money(row["peak_usd_per_min"]),
        *(seconds(row[name]) for name in ("turn_s", "first_error_s", "recovery_s")),
        asked(row),
    )
    return tag("tr", tag("td", row["agent"], class_="keep"), [tag("td", words, class_="n") for words in cells])


def _control(folder: Path) -> str:
    try:
        history = read(folder / "history.jsonl")
    except (OSError, ValueError):
        return "it can't be read"
    came = (f"{turn} {outcome_of(turn, history).kind}" for turn in history.turns)
    return "; ".join([*came, *(trouble.what for trouble in history.of(Trouble))]) or "nothing was recorded"
