"""The matrices of the page: verdicts of scenarios by agents. Repeats with the same result share one badge."""

from collections.abc import Callable, Iterable, Sequence

from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.campaign_folder import agent_order
from wedgehog.reports.history_numbers import RunNumbers
from wedgehog.reports.markup import Markup, scrolled, tag
from wedgehog.reports.result_category import ATTENTION, reads, result_category, run_badge, small_badge

ROWS_SHOWN = 300
"""A larger matrix shows so many rows, those that need attention first."""

NumberedRun = tuple[int, StoredRun]
"""A run and its number in the page."""

RunAddress = Callable[[int], str]
"""The id that a link to a run has; empty if the page does not show that run."""


def grid(
    runs: Sequence[NumberedRun],
    down: str,
    across: str,
    address: RunAddress,
    below: Callable[[StoredRun], str],
    *,
    small: bool = False,
) -> list[Markup]:
    """A table with a row for each `down` (scenario or agent), a column for each `across`; `below` is under a badge."""
    cells: dict[tuple[str, str], list[NumberedRun]] = {}
    for number, run in runs:
        key = (getattr(run.judgement, down), getattr(run.judgement, across))
        cells.setdefault(key, []).append((number, run))
    rows, columns = (_names(cells, place, field) for place, field in enumerate((down, across)))
    shown = _worst(rows, runs, down)[:ROWS_SHOWN] if len(rows) > ROWS_SHOWN else rows
    body = [
        tag(
            "tr",
            tag("th", row, scope="row"),
            [tag("td", _cell(cells.get((row, column), ()), address, below, small=small)) for column in columns],
        )
        for row in shown
    ]
    heads = [tag("th", down), *(tag("th", tag("span", column), scope="col") for column in columns)]
    table = scrolled(heads, body, "small" if small else None)
    if len(shown) == len(rows):
        return [table]
    return [table, tag("p", f"{len(rows) - len(shown):,} more in summary.csv; none is worse.", class_="soft")]


def _names(cells: Iterable[tuple[str, str]], place: int, field: str) -> list[str]:
    names = dict.fromkeys(cell[place] for cell in cells)
    return sorted(names, key=agent_order) if field == "agent" else list(names)


def _worst(rows: Sequence[str], runs: Sequence[NumberedRun], down: str) -> list[str]:
    bad = {getattr(run.judgement, down) for _, run in runs if result_category(run.judgement) in ATTENTION}
    return sorted(rows, key=lambda row: row not in bad)


def _cell(
    runs: Sequence[NumberedRun], address: RunAddress, below: Callable[[StoredRun], str], *, small: bool
) -> list[Markup]:
    """One badge for all repeats with the same result: `pass 3 of 3`."""
    alike: dict[tuple[str, str], list[NumberedRun]] = {}
    for number, run in runs:
        alike.setdefault((reads(run.judgement), below(run)), []).append((number, run))
    return [_badge(group, len(runs), address, words, small=small) for (_, words), group in alike.items()]


def _badge(group: Sequence[NumberedRun], repeats: int, address: RunAddress, below: str, *, small: bool) -> Markup:
    """The badge of some runs with the same result; it links to the first one that the page shows."""
    run = group[0][1]
    link = next(filter(None, (address(number) for number, _ in group)), "")
    if small:
        return small_badge(run, link)
    share = f"{len(group):,} of {repeats:,}" if repeats > 1 else ""
    return tag("div", run_badge(run, link, share), tag("span", below, class_="violated") if below else None)


def words_below(run: StoredRun, numbers: RunNumbers) -> str:
    """What stands under the badge of a run: the violated invariants, or that its user saw an error."""
    seen = run.judgement.verdict == "pass" and numbers.columns.get("harmed_answered") is False
    return "the user saw an error" if seen else ", ".join(run.judgement.violated)
