"""The repeats whose numbers can be compared: passed ones with passed ones, failed ones with failed ones.

A session that fails early pays for less and ends sooner than one that is answered. So the numbers of a failed repeat
say nothing beside those of a passed one: a fix would look dear, and a new failure cheap.

Of an unchanged agent, the repeats of one result can change places between both sides, however many they are. So a test
of them has the false alarms that it states, beside a test of the other result too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from wedgehog.reports.gate.levels import of_two_levels
from wedgehog.reports.gate.turn_bounds import Pair
from wedgehog.reports.played_cells import PlayedCell

NUMBERS = (
    *("unanswered", "paid_calls", "usd", "turn_s", "turn_least_s", "other_turns_s", "other_turns_least_s"),
    *("recovery_calls", "recovery_usd", "start_s", "start_least_s"),
)


@dataclass(frozen=True)
class AlikeRepeats:
    """Repeats of a cell on both sides."""

    before: PlayedCell
    after: PlayedCell
    of: str = ""
    """`failed repeats`, where passed ones are compared too."""
    doubt: str = ""
    """Why a higher number may be no fault of the agent; it warns then."""
    failed: bool = False
    """Whether all of them failed, on both sides."""


def alike_repeats(pairs: Iterable[Pair], *, better: bool) -> Iterator[AlikeRepeats]:
    """Of each pair the passed repeats, and the failed ones; else all repeats, where one side only passed.

    The numbers are tested for being higher now, or (`better`) lower. At two levels others pass, so nothing is taken of
    results that vary.
    """
    for before, after in pairs:
        if of_two_levels(before, after) and (_varies(before) or _varies(after)):
            continue
        both_passed, both_failed = _passed(before) and _passed(after), _failed(before) and _failed(after)
        if both_passed:
            passed = _only_passed(before), _only_passed(after)
            yield AlikeRepeats(*passed, doubt=_of_answers(*passed, better=better))
        if both_failed:
            of = "failed repeats" if _passed(before) or _passed(after) else ""
            failed = _only_failed(before), _only_failed(after)
            fewer = _of_answers(*failed, better=True) if better else ""
            doubt = fewer or _of_violations(before, after, better=better)
            yield AlikeRepeats(*failed, of, doubt, failed=True)
        if not both_passed and not both_failed and before.decided and after.decided:
            yield AlikeRepeats(before, after, doubt=_of_results(before, after, better=better))


def _of_answers(before: PlayedCell, after: PlayedCell, *, better: bool) -> str:
    """An answer costs more than an error in its place, and takes longer; so less is not better, nor is more worse.

    Some repeats that answer less are enough to doubt what is saved. To excuse what is worse, all must answer more.
    """
    if not before.unanswered or not after.unanswered:
        return ""
    if better:
        return "it answers fewer messages now" if fmean(after.unanswered) > fmean(before.unanswered) else ""
    return "it answers more messages now" if max(after.unanswered) < min(before.unanswered) else ""


def _of_violations(before: PlayedCell, after: PlayedCell, *, better: bool) -> str:
    """What fails by less than before may go on further, and what fails by more may end sooner."""
    if better:
        new = sorted(set(after.violated) - set(before.violated))
        return f"it violates {', '.join(new)} now" if new else ""
    lost = sorted(set(before.violated) - set(after.violated))
    return f"it no longer violates {', '.join(lost)}" if lost else ""


def _of_results(before: PlayedCell, after: PlayedCell, *, better: bool) -> str:
    """One side passed and the other failed: a number goes the way of the results, or is in doubt."""
    if _passed(after):
        return "" if better else "it passes now"
    if better:
        return "it fails now"
    return "it fails now, which is known" if after.worst == "known" else ""


def _varies(cell: PlayedCell) -> bool:
    return 0 < _passed(cell) < cell.decided


def _passed(cell: PlayedCell) -> int:
    return cell.results.get("passed", 0)


def _failed(cell: PlayedCell) -> int:
    return cell.decided - _passed(cell)


def _only_passed(cell: PlayedCell) -> PlayedCell:
    """The cell with its passed repeats alone."""
    return _part(cell, 0, {"passed": _passed(cell)})


def _only_failed(cell: PlayedCell) -> PlayedCell:
    """The cell with its failed repeats alone, known failures included."""
    return _part(cell, 1, {name: number for name, number in cell.results.items() if name != "passed"})


def _part(cell: PlayedCell, which: int, results: Mapping[str, int]) -> PlayedCell:
    if not _varies(cell):
        return cell
    kept: dict[str, Any] = {name: _parts(cell, name)[which] for name in NUMBERS}
    return replace(cell, results=results, **kept)


def _parts(cell: PlayedCell, name: str) -> tuple[Sequence[float], Sequence[float]]:
    """The numbers of passed repeats, which stand first, and those of the others.

    Both are empty if it is not known of which repeats they are.
    """
    values = getattr(cell, name)
    passed = _passed(cell) if len(values) == cell.decided else cell.passed_with.get(name)
    return ((), ()) if passed is None else (tuple(values[:passed]), tuple(values[passed:]))
