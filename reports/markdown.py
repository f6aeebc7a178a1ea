"""summary.md: a short page for the summary of a CI job, worst first. All words of agents are escaped."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from wedgehog.harness.record.judgement import Judgement
from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.cost import notes, numbers, of_the_campaign, total_words
from wedgehog.reports.groups import grouped
from wedgehog.reports.reasons import run_reasons
from wedgehog.reports.repeats import folded
from wedgehog.reports.result_category import ATTENTION, SIGNS, WORST_FIRST, alike, result_category, tally
from wedgehog.reports.rows import RunRow
from wedgehog.reports.totals import bounds, side_by_side
from wedgehog.reports.words import one_line

HEAD = (
    *("", "scenario", "agent", "verdict", "violated", "paid calls", "tokens billed / delivered"),
    *("simulated cost", "turn", "first error", "recovery"),
)


def write(campaign: StoredCampaign, table: Sequence[RunRow], path: Path) -> None:
    """Write summary.md."""
    path.write_text("\n".join(_lines(campaign, table)) + "\n", encoding="utf-8")


LINES = 60
"""The page has at most so many lines; the table of results gets what the other parts leave."""
NOTES, SHARES, SIDES, REASONS, UNFINISHED = 2, 4, 6, 5, 2
"""The most lines of each other part."""
VIOLATIONS = 2
"""The most of one run; one line too many is shown."""


_BREAK = "\u200b"
"""A character without a width: GitHub looks for names, numbers and addresses after the markup, so a `\\` hides none."""
_SEEN_BY_GITHUB = re.compile(r"@|#(?=\d)|\bGH-(?=\d)|:(?=//)|\bwww(?=\.)", re.IGNORECASE)
_COMMIT = re.compile(r"(?<![0-9a-z])[0-9a-f]{7,}(?![0-9a-z])", re.IGNORECASE)
"""GitHub links seven or more digits of a commit's hash."""
_DOLLAR = "<span>&#36;</span>"
"""Never the start of a formula: GitHub looks for two `$` in one piece of text, GitLab for the character itself."""


def escaped(text: str) -> str:
    """`text` on one line, without effect: no cell ends, no tag, link or formula begins, no user or issue is named."""
    plain = _SEEN_BY_GITHUB.sub(rf"\g<0>{_BREAK}", one_line(text, 400))
    plain = _COMMIT.sub(_broken, plain)
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#!|~])", r"\\\1", plain).replace("$", _DOLLAR)


def _broken(digits: re.Match[str]) -> str:
    """In pieces of six, of which none is a hash."""
    return re.sub(r".{6}(?=.)", rf"\g<0>{_BREAK}", digits[0])


def code(text: str) -> str:
    """`text` as code, in a fence longer than any in it."""
    line = one_line(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    return f"{fence} {line} {fence}" if "`" in line else f"{fence}{line}{fence}"


def _lines(campaign: StoredCampaign, table: Sequence[RunRow]) -> Iterator[str]:
    yield "## Wedgehog"
    yield ""
    yield f"**{tally((row.standing for row in table), campaign.lost)}**, {total_words(table)}."
    yield ""
    rows = sorted(folded(table), key=lambda row: WORST_FIRST.index(row.standing))
    below = "\n".join(_below(campaign, table, rows)).split("\n")  # a replay is a line of its own
    if table:
        yield _line(HEAD)
        yield _line(["---"] * len(HEAD))
        yield from _first((_line(_cells(row)) for row in rows), LINES - len(below) - 9, "results")
        yield ""
    yield from below


def _below(campaign: StoredCampaign, table: Sequence[RunRow], rows: Sequence[RunRow]) -> Iterator[str]:
    """What stands below the table."""
    for note in _first((escaped(note) for note in notes(rows)), NOTES, "notes"):
        yield from (note, "")
    if lines := of_the_campaign(campaign, table):
        yield from _first((f"- {escaped(line)}" for line in lines), SHARES, "such lines")
        yield ""
    if together := list(side_by_side(campaign)):
        sides = [f"{'  ' * depth}- {escaped(line)}" for depth, line in together]
        yield from _first([*sides, *(f"- {escaped(line)}" for line in bounds(campaign))], SIDES, "such lines")
        yield ""
    if violated := _violated(campaign):
        yield from (violated, "")
    yield from _first(_unexpected(campaign), REASONS, "results that were not expected")
    lost = (f"- unfinished: {escaped(campaign.place(run.folder))}: {escaped(run.why)}" for run in campaign.unfinished)
    yield from _first(lost, UNFINISHED, "unfinished runs")


def _first(lines: Iterable[str], most: int, noun: str) -> Iterator[str]:
    """The first lines, and how many more there are."""
    every = list(lines)
    left = len(every) - most
    # One line too many is shown, since the line in its place would be as long.
    yield from every if left <= 1 else every[:most]
    if left > 1:
        yield ""
        yield f"… and {left:,} more {noun}; report.html and summary.csv hold all."


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(row: RunRow) -> Sequence[str]:
    paid, billed, delivered, usd, *times = numbers(row)
    words = (escaped(said) for said in (row.scenario, row.agent, row.reads))
    violated = escaped(row.violated.replace(";", ", "))
    return (SIGNS[row.standing], *words, violated, paid, f"{billed} / {delivered}", escaped(usd), *times)


def _violated(campaign: StoredCampaign) -> str:
    """What the red runs violate, and how many of them; empty if all of them have a sentence below."""
    bad = [run.judgement for run in campaign.runs if result_category(run.judgement) == "failed"]
    often = Counter(name for judged in bad for name in judged.violated).most_common()
    named = ", ".join(f"{escaped(name)} {number}" for name, number in often)
    return f"Violated, by runs: {named}" if len(bad) > REASONS + 1 and named else ""


def _unexpected(campaign: StoredCampaign) -> Iterator[str]:
    """Repeats that ended alike stand together, and a replay behind its result."""
    bad = [run.judgement for run in campaign.runs if result_category(run.judgement) in ATTENTION]
    bad.sort(key=_rank)
    for repeats in _one_of_each_kind_first(list(grouped(bad, alike).values())):
        judged, more = repeats[0], f" ({len(repeats)} repeats)" if len(repeats) > 1 else ""
        name = f"- **{escaped(judged.scenario)}, {escaped(judged.agent)}**{more}"
        replay = [code(judged.replay)] if judged.replay else []
        reasons = [escaped(str(it)) for it in run_reasons(judged)]
        if len(reasons) < 2:
            yield "\n  ".join([f"{name}: {''.join(reasons)}", *replay])
        else:
            yield "\n  - ".join([name, *filter(None, _first(reasons, VIOLATIONS, "violations")), *replay])


def _one_of_each_kind_first(results: Sequence[list[Judgement]]) -> list[list[Judgement]]:
    """The first result of each kind, that of most results first, then all others: few of them are shown."""
    kinds = grouped(results, lambda repeats: (result_category(repeats[0]), repeats[0].violated)).values()
    firsts = [kind[0] for kind in sorted(kinds, key=lambda kind: (_rank(kind[0][0]), -len(kind)))]
    return [*firsts, *(repeats for kind in kinds for repeats in kind[1:])]


def _rank(judged: Judgement) -> int:
    return WORST_FIRST.index(result_category(judged))
