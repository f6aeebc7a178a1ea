"""Sentences on what two sides do not share, so that something is not compared or can differ by that alone."""

from collections.abc import Iterator, Sequence

from wedgehog.reports.gate.baseline import Baseline
from wedgehog.reports.gate.baseline_cell import ORDER
from wedgehog.reports.gate.levels import level_notes
from wedgehog.reports.gate.tested_numbers import too_busy
from wedgehog.reports.gate.turn_bounds import Pair, bound_notes
from wedgehog.reports.played_cells import PlayedCell
from wedgehog.reports.words import many

OF_OLDER_FILES = {
    "unanswered": "messages without an answer",
    "start_s": "starts",
    "other_turns_s": "turns beside the longest",
    "recovery_calls": "calls and cost of recovery messages",
    "bound_s": "bounds of turns",
    "level": "levels of verdicts",
    ORDER: "numbers of results that vary",
}
"""What older baselines do not have, in words."""


def side_notes(before: Baseline, after: Baseline, pairs: Sequence[Pair], names: tuple[str, str]) -> Iterator[str]:
    """All notes. The sides' settings are worlds and dates of prices; `names` is what the sides are called."""
    old, new = names
    if before.world and after.world and before.world != after.world:
        yield f"{old} was played in the world {before.world}, {new} in {after.world}: times are not compared"
    yield from _not_kept(pairs)
    yield from bound_notes(pairs)
    yield from level_notes(pairs)
    yield from _busy(pairs)
    if before.prices and after.prices and before.prices != after.prices:
        says = f"the prices are of {after.prices}, those of {old} of {before.prices}"
        yield f"{says}: a cost can differ by that alone"


def _busy(pairs: Sequence[Pair]) -> Iterator[str]:
    found = [pair for pair in pairs if too_busy(*pair)]
    if found:
        yield (
            f"in {len(found)} of {many(len(pairs), 'scenario')} the machine was too busy to compare times, which only "
            "warn: play fewer runs at once (`--jobs`), or on a quiet machine"
        )


def _not_kept(pairs: Sequence[Pair]) -> Iterator[str]:
    """What one side measured and an older baseline does not have."""
    either = [*pairs, *((new, old) for old, new in pairs)]
    missing = [words for name, words in OF_OLDER_FILES.items() if any(_is_missing(name, *pair) for pair in either)]
    if missing:
        yield (
            f"the baseline was written before all of this was kept in it: {' and '.join(missing)} are not compared; "
            "`wedgehog baseline RUN --into FILE` adds them"
        )


def _is_missing(name: str, stored: PlayedCell, other: PlayedCell) -> bool:
    return name in stored.not_kept and (name == ORDER or bool(getattr(other, name)))
