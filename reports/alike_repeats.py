"""The repeats whose numbers can be compared: those of one result.

A session that fails early pays for less and ends sooner than one that is answered. So the numbers of a failed repeat
say nothing beside those of a passed one: a fix would look dear, and a new failure cheap.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from wedgehog.reports.levels import of_two_levels
from wedgehog.reports.played_cells import PlayedCell
from wedgehog.reports.turn_bounds import Pair

NUMBERS = (
    *("paid_calls", "usd", "turn_s", "turn_least_s", "other_turns_s", "other_turns_least_s"),
    *("recovery_calls", "recovery_usd", "start_s", "start_least_s"),
)


def alike_repeats(pairs: Iterable[Pair], *, better: bool) -> Iterator[Pair]:
    """Of each pair the passed repeats; else all repeats, if the verdicts do not go the other way than the number.

    The numbers are tested for being higher now, or (`better`) lower. Higher ones of a fix are left out, and lower ones
    of a new failure; so are those of a failure that has lost, or gained, a violation. At two levels others pass, so
    nothing is taken of results that vary.
    """
    for before, after in pairs:
        if of_two_levels(before, after) and (_varies(before) or _varies(after)):
            continue
        low, high = (after, before) if better else (before, after)
        if _passed(low) and _passed(high):
            yield _only_passed(before), _only_passed(after)
        elif not _passed(high) and (_passed(low) or set(low.violated) <= set(high.violated)):
            yield before, after


def _varies(cell: PlayedCell) -> bool:
    return 0 < _passed(cell) < cell.decided


def _passed(cell: PlayedCell) -> int:
    return cell.results.get("passed", 0)


def _only_passed(cell: PlayedCell) -> PlayedCell:
    """The cell with its passed repeats alone. Their numbers stand first."""
    count = _passed(cell)
    if count == cell.decided:
        return cell
    kept: dict[str, Any] = {name: _first(getattr(cell, name), count, cell.decided) for name in NUMBERS}
    return replace(cell, results={"passed": count}, **kept)


def _first(values: Sequence[float], count: int, decided: int) -> tuple[float, ...]:
    """The first numbers, if each decided repeat has one; else it is not known of which repeats they are."""
    return tuple(values[:count]) if len(values) == decided else ()
