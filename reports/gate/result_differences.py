"""How the results of a cell differ from those before: passed or failed, how often, and by what."""

from collections.abc import Iterator, Mapping
from statistics import fmean

from wedgehog.reports.gate.difference import Difference, DifferenceKind
from wedgehog.reports.gate.levels import by_level
from wedgehog.reports.gate.rank_test import rank_test
from wedgehog.reports.gate.tested_numbers import FEW
from wedgehog.reports.gate.turn_bounds import (
    fails_whatever_the_bound,
    has_larger_bound,
    is_cut_by_another_bound,
    says_although,
    says_another_bound,
)
from wedgehog.reports.played_cells import UNDECIDED, Key, PlayedCell

FAILED_BY_CHANCE = 0.01
"""A scenario that failed before too is worse if its failures rise by chance at most so often. Each is tested alone."""
_KINDS: Mapping[str, DifferenceKind] = {"failed": "worse", "known": "known", "passed": "better"}
"""By the result that a cell has now, if it had another one before."""


def one_sided(
    before: Mapping[Key, PlayedCell],
    after: Mapping[Key, PlayedCell],
    skipped_before: Mapping[Key, str],
    skipped: Mapping[Key, str],
) -> Iterator[Difference]:
    """Cells that only one side has. What the other side skipped, with this reason, has no verdict there.

    So what the later side skipped is undecided: the agent may have lost what the scenario needs, its tools for example.
    And what the earlier side skipped is new, also if it fails now: a skip was no better.
    """
    for key, cell in after.items():
        if key not in before:
            yield from _new(cell, skipped_before.get(key, ""))
    for key, cell in before.items():
        if key in after:
            continue
        if key in skipped:
            yield _difference(cell, "undecided", f"skipped now, before {cell.reads()}: {skipped[key]}", 0.0)
        else:
            yield _difference(cell, "gone", f"not played now; before {cell.reads()}", 0.0)


def _new(cell: PlayedCell, skipped: str) -> Iterator[Difference]:
    if skipped and cell.decided:
        because = "" if cell.worst == "passed" else _because(cell, cell.worst)
        yield _difference(cell, "new", f"skipped before ({skipped}); now {cell.reads()}{because}", 0.0)
    elif cell.results.get("failed"):
        yield _difference(cell, "worse", f"new, and {cell.reads()}{_because(cell, 'failed')}", 900.0)
    elif not cell.undecided:
        yield _difference(cell, "new", f"no earlier result; now {cell.reads()}", 0.0)
    yield from _undecided(cell)


def result_differences(before: PlayedCell, after: PlayedCell) -> Iterator[Difference]:
    """How the results of one cell differ."""
    yield from (by_level(it, before, after) for it in _result_differences(before, after))


def _result_differences(before: PlayedCell, after: PlayedCell) -> Iterator[Difference]:
    yield from _undecided(after)
    if not after.decided:
        return
    if not before.decided:
        yield _decided_now(before, after)
        return
    is_cut = is_cut_by_another_bound(before, after)
    if is_cut:
        yield _by_two_bounds(before, after)
    if is_cut and not fails_whatever_the_bound(before, after):
        return
    if before.worst != after.worst:
        yield _another_result(before, after)
    elif after.worst in ("known", "failed"):
        yield from _other_violations(before, after)
    if before.worst == after.worst == "failed":
        yield from () if is_cut else _another_share(before, after)


def _decided_now(before: PlayedCell, after: PlayedCell) -> Difference:
    """Before no repeat had a verdict. So a failure is worse than all that is known, and a pass is new."""
    failed = bool(after.results.get("failed"))
    because = _because(after, "failed") if failed else ""
    says = f"undecided before ({before.reads()}); now {after.reads()}{because}"
    return _difference(after, "worse" if failed else "new", says, 900.0 if failed else 0.0)


def _another_result(before: PlayedCell, after: PlayedCell) -> Difference:
    """The worst result of the repeats is another one. A failure of some repeats can stay away by chance."""
    kind = _KINDS[after.worst]
    was_some = bool(before.results.get("failed") and before.results.get("passed"))
    if kind == "better" and was_some and _chance(before, after, better=True) > FAILED_BY_CHANCE:
        return _difference(after, "maybe", _shares(before, after), 600.0)
    because = "" if kind == "better" else _because(after, after.worst)
    return _difference(after, kind, f"{before.reads()} → {after.reads()}{because}", 1000.0)


def _another_share(before: PlayedCell, after: PlayedCell) -> Iterator[Difference]:
    """Both failed, and now another share of the repeats. A smaller share that chance can explain has no line."""
    better = _failed_more(after, before)
    if _chance(before, after, better=better) <= FAILED_BY_CHANCE:
        because = "" if better else _because(after, "failed")
        yield _difference(after, "better" if better else "worse", f"{_shares(before, after)}{because}", 850.0)
    elif _failed_more(before, after):
        yield _difference(after, "maybe", _shares(before, after), 850.0)


def _by_two_bounds(before: PlayedCell, after: PlayedCell) -> Difference:
    """A turn was over the smaller of two bounds.

    What fails by the larger bound fails by the smaller one too. So the share of the side with the larger bound would
    be at least as large by the smaller one: it can show that this side is the worse one, and never that it is better.
    """
    better = has_larger_bound(before, after)
    if _chance(before, after, better=better) <= FAILED_BY_CHANCE:
        because = "" if better else _because(after, "failed")
        kind: DifferenceKind = "better" if better else "worse"
        return _difference(after, kind, f"{_shares(before, after)}{says_although(before, after)}{because}", 850.0)
    more = not better and _failed_more(before, after)
    says = f"{_shares(before, after)}{says_although(before, after)}" if more else says_another_bound(before, after)
    return _difference(after, "maybe", f"{says}{_because(after, 'failed')}", 950.0)


def _failed_more(one: PlayedCell, other: PlayedCell) -> bool:
    """Whether a larger share of the other side failed."""
    return fmean(one.failures) < fmean(other.failures)


def _chance(before: PlayedCell, after: PlayedCell, *, better: bool) -> float:
    """How likely at least so many more failures are (`better`: fewer), if the agent is the same."""
    return (rank_test(after.failures, before.failures) if better else rank_test(before.failures, after.failures)).p


def _shares(before: PlayedCell, after: PlayedCell) -> str:
    """`failed 1 of 10 → 6 of 10 (p = 0.029; at most 0.01 decides)`."""
    p = _chance(before, after, better=_failed_more(after, before))
    undecided = "" if p <= FAILED_BY_CHANCE else f"; at most {FAILED_BY_CHANCE} decides"
    old, new = (f"{sum(cell.failures):.0f} of {cell.decided}" for cell in (before, after))
    return f"failed {old} → {new} (p = {p:.2g}{undecided})"


def _other_violations(before: PlayedCell, after: PlayedCell) -> Iterator[Difference]:
    """Both failed, and now in each failed repeat by what no repeat violated before."""
    is_told = after.always_violated is not None
    new = sorted(set(after.violated if after.always_violated is None else after.always_violated) - set(before.violated))
    if not before.violated:
        yield from _by_what_is_not_kept(after)
        return
    if not new:
        yield from _sometimes_also(before, after)
        return
    says = f"failed by {', '.join(before.violated)} before, now also by {', '.join(new)}"
    if after.worst == "known":
        yield _difference(after, "known", f"{says}{_because(after, 'known')}", 800.0)
    elif not is_told:
        yield _difference(after, "maybe", f"{says} (an older baseline does not say in how many repeats)", 800.0)
    else:
        fewest = min(before.results.get("failed", 0), after.results.get("failed", 0))
        sure = fewest >= FEW or (before.as_expected is True and after.as_expected is False)
        yield _difference(after, "worse" if sure else "maybe", f"{says}{_because(after, 'failed')}", 800.0)


def _by_what_is_not_kept(after: PlayedCell) -> Iterator[Difference]:
    """Both failed, and before by no violation: as in an old or an edited baseline, or by a pass that was no success."""
    if after.violated:
        says = f"failed before by no violation that is kept, now by {', '.join(after.violated)}"
        yield _difference(after, "known" if after.worst == "known" else "maybe", says, 700.0)


def _sometimes_also(before: PlayedCell, after: PlayedCell) -> Iterator[Difference]:
    """Some failed repeats, not all, violate what no repeat violated before: it may be chance."""
    some = sorted(set(after.violated) - set(before.violated))
    if some:
        says = f"failed by {', '.join(before.violated)} before, now in some repeats also by {', '.join(some)}"
        yield _difference(after, "known" if after.worst == "known" else "maybe", says, 700.0)


def _undecided(cell: PlayedCell) -> Iterator[Difference]:
    if cell.undecided:
        result = next(name for name in reversed(UNDECIDED) if cell.results.get(name))
        yield _difference(cell, "undecided", f"{cell.reads()}{_because(cell, result)}", 0.0)


def _because(cell: PlayedCell, result: str) -> str:
    said = cell.says.get(result, "")
    return f": {said}" if said else ""


def _difference(cell: PlayedCell, kind: DifferenceKind, says: str, weight: float) -> Difference:
    return Difference(cell.scenario, cell.agent, kind, says, weight)
