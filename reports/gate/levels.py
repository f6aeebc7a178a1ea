"""Where the verdicts of two sides are of different levels: what depends on that, and the words for it.

What counts at level `safe` counts at `strict` too. So only what is worse at the stricter level, or better at the looser
one, can be by the level alone.
"""

from collections.abc import Sequence
from dataclasses import replace

from wedgehog.reports.gate.difference import Difference, DifferenceKind
from wedgehog.reports.gate.turn_bounds import Pair
from wedgehog.reports.played_cells import PlayedCell
from wedgehog.reports.words import many


def of_two_levels(before: PlayedCell, after: PlayedCell) -> bool:
    """Whether both levels are known and differ."""
    return bool(before.level and after.level) and before.level != after.level


def by_level(it: Difference, before: PlayedCell, after: PlayedCell) -> Difference:
    """The difference of two results; if the level alone can explain it, it decides nothing."""
    explained = it.kind == ("worse" if after.level == "strict" else "better")
    if not explained or not of_two_levels(before, after):
        return it
    kind: DifferenceKind = "undecided" if it.kind == "worse" else "maybe"
    return replace(it, kind=kind, says=f"{it.says}, but {_levels(before, after)}")


def level_notes(pairs: Sequence[Pair]) -> list[str]:
    """A sentence for all results of two levels; nothing if there is none."""
    found = [pair for pair in pairs if of_two_levels(*pair)]
    return [f"{_levels(*found[0])}, in {many(len(found), 'result')}"] if found else []


def _levels(before: PlayedCell, after: PlayedCell) -> str:
    equal = f"`wedgehog check RUN --level {before.level}` judges it as before"
    return f"it is judged at level {after.level} now and was at {before.level} before; {equal}"
