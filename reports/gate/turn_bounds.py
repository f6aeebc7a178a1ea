"""Where a turn may take another time than before: what depends on that bound, and the words for it.

A turn that is over its bound is stopped and violates `turn_deadline`. A turn over the larger bound is over the smaller
one too. So where only the side with the larger bound violates it, the sides differ whatever the bound is. Where the
side with the smaller bound violates it, its times and calls depend on that bound, and so may each of its failures: only
the side with the larger bound can be shown to fail more. Where no side does, nothing depends on it; nor where each turn
under the larger bound was far from the smaller one.
"""

from collections.abc import Iterable, Iterator

from wedgehog.reports.played_cells import PlayedCell
from wedgehog.reports.words import many

DEADLINE = "turn_deadline"
FAR_FROM = 0.5
"""A turn that ended within this share of a bound passes under that bound too, even if the next one takes longer."""
MOST_NOTES = 3
"""The most sentences on different bounds."""
Pair = tuple[PlayedCell, PlayedCell]
"""One scenario and agent before and now."""


def is_cut_by_another_bound(before: PlayedCell, after: PlayedCell) -> bool:
    """Whether the bounds differ, a turn was over the smaller one, and the other side's turns may have been too."""
    tighter, looser = (after, before) if has_larger_bound(before, after) else (before, after)
    return _differs(before, after) and DEADLINE in tighter.violated and not _is_far_from(tighter.bound_s, looser)


def _is_far_from(bound_s: float | None, cell: PlayedCell) -> bool:
    """Whether each turn of each repeat is known, and far from this bound."""
    if bound_s is None or not len(cell.turn_s) == len(cell.other_turns_s) == cell.decided:
        return False
    longest_s = max((*cell.turn_s, *cell.other_turns_s), default=bound_s)
    return longest_s + max(cell.start_s, default=0.0) <= FAR_FROM * bound_s


def has_larger_bound(one: PlayedCell, other: PlayedCell) -> bool:
    """Whether its turns may take longer than those of the other side."""
    return (one.bound_s or 0.0) > (other.bound_s or 0.0)


def fails_whatever_the_bound(before: PlayedCell, after: PlayedCell) -> bool:
    """Whether it violates something new that no bound decides."""
    return not set(after.violated) <= {DEADLINE, *before.violated}


def says_another_bound(before: PlayedCell, after: PlayedCell) -> str:
    """What is not compared, with both bounds."""
    moved, bounds, equal = f"{before.reads()} → {after.reads()}", _bounds(before, after), _equal(before)
    return f"{moved}, but {bounds}, so neither {DEADLINE} nor the numbers are compared; {equal}"


def says_although(before: PlayedCell, after: PlayedCell) -> str:
    """What follows a share of failures that the bounds alone do not explain."""
    return f", although {_bounds(before, after)}; the numbers are not compared, {_equal(before)}"


def bound_notes(pairs: Iterable[Pair]) -> Iterator[str]:
    """A sentence for all results with the same two bounds, where no turn was over the smaller one."""
    alike: dict[tuple[str, str], list[str]] = {}
    for before, after in pairs:
        if _differs(before, after) and not is_cut_by_another_bound(before, after):
            place = f"{after.scenario}, {after.agent}"
            alike.setdefault((_bounds(before, after), _equal(before)), []).append(place)
    if len(alike) > MOST_NOTES:
        places, (bounds, _) = [place for some in alike.values() for place in some], next(iter(alike))
        says = f"a turn may take another time now than before, in {many(len(places), 'result')}"
        yield f"{says} ({places[0]}: {bounds}); play with the bounds of the baseline"
        return
    for (bounds, equal), places in alike.items():
        yield f"{bounds}, in {many(len(places), 'result')} ({_some(places)}); {equal}"


def _differs(before: PlayedCell, after: PlayedCell) -> bool:
    return before.bound_s is not None and after.bound_s is not None and before.bound_s != after.bound_s


def _bounds(before: PlayedCell, after: PlayedCell) -> str:
    return f"a turn may take {after.bound_s:g} s now and could take {before.bound_s:g} s before"


def _equal(before: PlayedCell) -> str:
    return f"play with `--turn-s {before.bound_s:g}` for equal bounds"


def _some(places: list[str]) -> str:
    return places[0] if len(places) == 1 else f"such as {places[0]}"
