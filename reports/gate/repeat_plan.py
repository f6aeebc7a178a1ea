"""How many repeats can decide: what a campaign of this size, beside this baseline, can find."""

import random
import statistics
from collections.abc import Collection, Iterator, Sequence
from math import exp, log

from wedgehog.reports.gate.baseline import Baseline
from wedgehog.reports.gate.quantities import QUANTITIES, Quantity
from wedgehog.reports.gate.rank_test import rank_test, repeats_needed
from wedgehog.reports.played_cells import Key, PlayedCell
from wedgehog.reports.words import many, seconds

SLOWER = 1.3
POWER = 0.95
TRIALS = 300
MOST = 30
"""The most repeats of both sides in a plan."""
LEAST_TO_MEASURE = 3


def plan_lines(baseline: Baseline, cells: Collection[Key], repeat: int, world: str = "") -> Iterator[str]:
    """What `--repeat` repeats of these cells can decide in `world` (empty: that of the baseline), in a few lines."""
    known = [cell for key, cell in baseline.played.items() if key in cells]
    if not known:
        none = f"none of {many(len(cells), 'result')} is in the baseline"
        yield f"{none}: each that passes only warns, and each that fails is worse"
        return
    tests, rate = _tests(known, baseline.quantities(world)), baseline.false_alarms
    yield (
        f"{many(len(known), 'result')} with a baseline, {len(cells) - len(known)} without: {tests} numbers to compare, "
        f"with a false alarm in at most {rate:.1%} of campaigns"
    )
    kept = min(cell.decided for cell in known)
    yield _for_test(kept, repeat, tests, rate)
    both = repeats_needed(tests, rate)
    if kept < (both or 0):
        yield f"with {both} repeats in the baseline and {both} now, the test decides all of them"
    if not baseline.compares_times(world):
        yield f"the baseline is of the world {baseline.world}, and this campaign of {world}: times are not compared"
        return
    floor = baseline.floors.turn_s
    yield _for_latency(known, tests, rate, QUANTITIES["turn_s"].floor if floor is None else floor)


def _tests(known: Sequence[PlayedCell], compared: Sequence[Quantity]) -> int:
    """One for each number that the baseline has of a cell, and one for each number of all cells of an agent."""
    alone = sum(bool(it.of(cell)) and not it.together for cell in known for it in compared)
    together = 0
    for agent in {cell.agent for cell in known}:
        cells = [cell for cell in known if cell.agent == agent]
        together += sum(_is_compared_together(it, cells) for it in compared)
    return alone + together


def _is_compared_together(quantity: Quantity, cells: Sequence[PlayedCell]) -> bool:
    """Whether these cells of an agent have a test of all of them; one cell alone has it only for a start."""
    have = sum(bool(quantity.of(cell)) for cell in cells)
    return quantity.pooled and have >= (1 if quantity.together else 2)


def _for_test(kept: int, repeat: int, tests: int, rate: float) -> str:
    least = repeats_needed(tests, rate, kept)
    has = f"the baseline has {many(kept, 'repeat')} of each (at least)"
    if least is None:
        return f"{has}: no --repeat decides by the test; only a difference beyond the margin counts"
    able = "decides by the test" if repeat >= least else "finds in one scenario alone only what is beyond the margin"
    return f"{has}: --repeat {repeat} {able}; --repeat {least} is enough to decide"


def _for_latency(known: Sequence[PlayedCell], tests: int, rate: float, floor: float) -> str:
    measured = [(cell, spread) for cell in known if (spread := _spread(cell.turn_s)) is not None]
    if not measured:
        return f"how long turns vary is not known: the baseline needs {LEAST_TO_MEASURE} repeats or more for that"
    sized = [(floor / statistics.median(cell.turn_s), spread) for cell, spread in measured]
    over = [(least, spread) for least, spread in sized if least <= SLOWER - 1]
    ignored = f"{SLOWER - 1:.0%} of {{}} is less than the floor of {seconds(floor)}"
    if not over:
        return f"a turn that takes {SLOWER - 1:.0%} longer is not found: {ignored.format('each')}"
    below = len(measured) - len(over)
    short = f", but not in {below} of {many(len(measured), 'result')}: {ignored.format('their turns')}"
    least, spread = (statistics.median(values) for values in zip(*over, strict=True))
    return _found(spread, rate / tests, least) + (short if below else "")


def _found(spread: float, limit: float, least: float) -> str:
    needed = next((n for n in range(2, MOST + 1) if power(n, spread, limit, least) >= POWER), None)
    of = f"turns vary by {spread:.1%} between repeats: a turn that takes {SLOWER - 1:.0%} longer is found in"
    if needed is None:
        return f"{of} fewer than 19 of 20 campaigns, even with {MOST} repeats of both sides"
    return f"{of} 19 of 20 campaigns with {needed} repeats of both sides"


def _spread(times: Sequence[float]) -> float | None:
    """The standard deviation of the logarithms: 0.05 is 5 %."""
    if len(times) < LEAST_TO_MEASURE or min(times) <= 0:
        return None
    return statistics.stdev([log(value) for value in times])


def power(repeats: int, spread: float, limit: float, least: float = 0.0) -> float:
    """How often the test finds slower turns, with so many repeats of both sides and this spread.

    `least` is the floor: smaller differences of the medians do not count; 1 is the turn itself.
    """
    draw = random.Random(f"{repeats} {spread}")  # noqa: S311  a simulation

    def side(shift: float) -> list[float]:
        return [exp(shift + draw.gauss(0.0, spread)) for _ in range(repeats)]

    pairs = [(side(0.0), side(log(SLOWER))) for _ in range(TRIALS)]
    over = (pair for pair in pairs if statistics.median(pair[1]) - statistics.median(pair[0]) >= least)
    return sum(rank_test(*pair).p <= limit for pair in over) / TRIALS
