"""How often the gate is wrong, and what it finds: `python -m benchmarks.gate` (docs/gate.md has the numbers).

`benchmarks/gate_turns.json` keeps what was measured in really played campaigns of one unchanged agent: per campaign and
scenario the numbers of ten repeats. `python -m benchmarks.gate --collect RUNS` writes it from run folders.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations, product
from pathlib import Path
from typing import Any, Final

from wedgehog.reports.campaign_folder import load
from wedgehog.reports.gate.differences import differences, exit_code
from wedgehog.reports.gate.tested_numbers import TOGETHER
from wedgehog.reports.played_cells import Key, PlayedCell, cells_of

KEPT: Final = Path(__file__).with_name("gate_turns.json")
TURN: Final = ("turn_s", "turn_least_s")
OTHERS: Final = ("other_turns_s", "other_turns_least_s")
TIMES: Final = (*TURN, *OTHERS, "start_s", "start_least_s")
RECOVERY: Final = {"recovery_calls": 1.0, "recovery_usd": 0.000018}
"""What the same agent paid in runs of later; the campaigns were played before it was kept."""
THREE_CALLS: Final = 3.0
NUMBERS: Final = ("paid_calls", "usd", *RECOVERY, *TIMES)
CELLS: Final = 40
PAIRS: Final = 200
SLOWER: Final = 1.3
SLOWER_PAIRS: Final = 100
MUCH_SLOWER: Final = 5.0
ALIKE: Final = "s"
ALIKE_REPEATS: Final = 2000
SIMULATED: Final = (
    (2.0, 0.05, 8),
    (2.0, 0.05, 10),
    (2.0, 0.08, 10),
    (2.0, 0.1, 10),
    (2.0, 0.1, 14),
    (1.0, 0.05, 10),
    (1.0, 0.08, 10),
)
"""Turns in seconds, how much they vary between repeats, and how many repeats."""

Side = dict[Key, PlayedCell]


def collect(runs: Path) -> None:
    """Keep the numbers of every campaign below `runs`."""
    folders = sorted(path.parent for path in runs.glob("*/campaign.json") if not path.parent.is_symlink())
    kept = [{scenario: _numbers(cell) for (scenario, _), cell in cells_of(load(folder)).items()} for folder in folders]
    whole = [campaign for campaign in kept if campaign and all(len(it["turn_s"]) == 10 for it in campaign.values())]
    KEPT.write_text(json.dumps(whole, separators=(",", ":")).replace("},{", "},\n{") + "\n", encoding="utf-8")


def _numbers(cell: PlayedCell) -> dict[str, object]:
    numbers = {name: [round(value, 6) for value in getattr(cell, name)] for name in NUMBERS}
    return {"results": dict(cell.results)} | numbers


def kept_campaigns() -> list[Side]:
    """The played campaigns."""
    said = json.loads(KEPT.read_text(encoding="utf-8"))
    return [{(name, "mine"): _cell(name, numbers) for name, numbers in campaign.items()} for campaign in said]


def _cell(name: str, numbers: Mapping[str, Any]) -> PlayedCell:
    kept = {key: [value] * len(numbers["turn_s"]) for key, value in RECOVERY.items()} | numbers
    return PlayedCell(name, "mine", numbers["results"], **{key: tuple(kept[key]) for key in NUMBERS})


def first(side: Side, repeats: int) -> Side:
    """The first repeats of each cell; all of them with their verdicts."""
    if all(cell.decided == repeats for cell in side.values()):
        return side
    return {key: _part(cell, range(repeats)) for key, cell in side.items()}


def _part(cell: PlayedCell, chosen: Sequence[int]) -> PlayedCell:
    values = {name: tuple(getattr(cell, name)[index] for index in chosen) for name in NUMBERS}
    return replace(cell, results={"passed": len(chosen)}, **values)


def regrouped(side: Side, repeats: int, times: int) -> Side:
    """The same runs as `times` as many scenarios with fewer repeats."""
    parts = ((cell, number) for cell in side.values() for number in range(times))
    made = ((f"{cell.scenario}-{n}", _part(cell, range(n * repeats, (n + 1) * repeats))) for cell, n in parts)
    return {(name, "mine"): replace(cell, scenario=name) for name, cell in made}


def resampled(pool: Mapping[str, PlayedCell], draw: random.Random, repeats: int, noise: float = 0.0) -> Side:
    """A campaign of 40 cells: each draws its repeats from all that was measured of a scenario, with more noise."""
    names, side = sorted(pool), {}
    for number in range(CELLS):
        cell = pool[names[number % len(names)]]
        drawn = _part(cell, [draw.randrange(cell.decided) for _ in range(repeats)])
        side[f"s{number}", "mine"] = _noisy(replace(drawn, scenario=f"s{number}"), draw, noise)
    return side


def _noisy(cell: PlayedCell, draw: random.Random, noise: float) -> PlayedCell:
    if not noise:
        return cell
    factors = [draw.lognormvariate(0.0, noise) for _ in cell.turn_s]
    times = {name: tuple(map(_product, getattr(cell, name), factors)) for name in TIMES}
    calls, usd = _counts(cell.paid_calls, factors), tuple(map(_product, cell.usd, factors))
    others = [draw.lognormvariate(0.0, noise) for _ in cell.turn_s]
    recovery = _counts(cell.recovery_calls, others), tuple(map(_product, cell.recovery_usd, others))
    return replace(cell, paid_calls=calls, usd=usd, **dict(zip(RECOVERY, recovery, strict=True)), **times)


def _counts(values: Sequence[float], factors: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(max(1, round(value * factor))) for value, factor in zip(values, factors, strict=True))


def _product(value: float, factor: float) -> float:
    return value * factor


def pooled(campaigns: Sequence[Side]) -> dict[str, PlayedCell]:
    """All repeats of all campaigns, by scenario."""
    found = {}
    for key, cell in campaigns[0].items():
        values = {name: tuple(v for side in campaigns for v in getattr(side[key], name)) for name in NUMBERS}
        found[key[0]] = replace(cell, results={"passed": len(values["turn_s"])}, **values)
    return found


def false_alarms(pairs: Iterable[tuple[Side, Side]]) -> tuple[int, int]:
    """In how many of the pairs of an unchanged agent the gate fails, and the number of pairs."""
    codes = [exit_code(differences(before, after)) for before, after in pairs]
    return sum(code == 1 for code in codes), len(codes)


def slower(cell: PlayedCell) -> PlayedCell:
    """The same cell with turns that take 30 % longer."""
    return _longer(cell, TURN, SLOWER)


def others_slower(cell: PlayedCell) -> PlayedCell:
    """The same cell with a recovery message, and turns beside the longest, that take five times as long."""
    return _longer(cell, OTHERS, MUCH_SLOWER)


def _longer(cell: PlayedCell, names: Iterable[str], times: float) -> PlayedCell:
    return replace(cell, **{name: tuple(value * times for value in getattr(cell, name)) for name in names})


def recovery_dearer(cell: PlayedCell) -> PlayedCell:
    """The same cell with a recovery message that costs three times as much."""
    return _longer(cell, RECOVERY, THREE_CALLS)


def found_all_slower(pool: Mapping[str, PlayedCell], draw: random.Random, repeats: int) -> tuple[int, float]:
    """In how many of 100 pairs the gate fails if all turns take 30 % longer, and how many of the 40 cells it names."""
    found, named = 0, 0
    for _ in range(SLOWER_PAIRS):
        before, after = (resampled(pool, draw, repeats) for _ in range(2))
        worse = [it for it in differences(before, {k: slower(c) for k, c in after.items()}) if it.kind == "worse"]
        found += bool(worse)
        named += sum(it.scenario != TOGETHER for it in worse)
    return found, named / SLOWER_PAIRS


def found_slower(
    pool: Mapping[str, PlayedCell],
    draw: random.Random,
    repeats: int,
    slowed: str = ALIKE,
    change: Callable[[PlayedCell], PlayedCell] = slower,
) -> int:
    """In how many of 100 pairs the gate names the one of 40 cells that changed."""
    found, chosen = 0, f"s{sorted(pool).index(slowed)}"
    for _ in range(SLOWER_PAIRS):
        before, after = (resampled(pool, draw, repeats) for _ in range(2))
        key = (chosen, "mine")
        after[key] = change(after[key])
        found += any(it.kind == "worse" and it.scenario == chosen for it in differences(before, after))
    return found


def alike(cell: PlayedCell, spread: float, draw: random.Random, turn_s: float = 2.0) -> dict[str, PlayedCell]:
    """A pool of turns, and of starts and other turns of 0.3 s, with a known spread and without waits."""

    def times(typical_s: float) -> tuple[float, ...]:
        return tuple(typical_s * draw.lognormvariate(0.0, spread) for _ in range(ALIKE_REPEATS))

    made = replace(cell, scenario=ALIKE, results={"passed": ALIKE_REPEATS})
    constant = {"paid_calls": 1.0, "usd": 0.0, **RECOVERY}
    made = replace(made, **{name: (value,) * ALIKE_REPEATS for name, value in constant.items()})
    for names, typical_s in ((TURN, turn_s), (OTHERS, 0.3), (("start_s", "start_least_s"), 0.3)):
        made = replace(made, **dict.fromkeys(names, times(typical_s)))
    return {ALIKE: made}


Row = tuple[str, Callable[[random.Random], object]]
"""What is measured, and how."""


def rows(campaigns: Sequence[Side]) -> Iterator[Row]:
    """Every row of the tables."""
    pool = pooled(campaigns)
    yield from _alarms_of_played(campaigns)
    for noise, repeats in product((0.0, 0.3), (1, 3, 10)):
        yield f"false alarms, 40 cells, {repeats} repeats, noise {noise:.0%}", partial(_alarms, pool, repeats, noise)
    dearer = {name: _longer(cell, RECOVERY, THREE_CALLS) for name, cell in pool.items()}
    for repeats in (1, 3, 10):
        says = f"the same with recoveries of 3 calls, {repeats} repeats, noise 30%"
        yield says, partial(_alarms, dearer, repeats, 0.3)
    for slowed in ("stall-once", "slow-2"):
        yield (
            f"30 % slower, played turns of {slowed}, 10 repeats",
            partial(found_slower, pool, repeats=10, slowed=slowed),
        )
    yield from _found_in_simulated(next(iter(pool.values())))


def _alarms_of_played(campaigns: Sequence[Side]) -> Iterator[Row]:
    for repeats in (1, 3, 10):
        cut = [first(side, repeats) for side in campaigns]
        yield f"false alarms, pairs of played campaigns, {repeats} repeats", partial(_alarms_of_all, cut)
    for repeats, times in ((1, 4), (2, 5)):
        split = [regrouped(side, repeats, times) for side in campaigns]
        yield f"the same as {6 * times} scenarios of {repeats} repeats", partial(_alarms_of_all, split)


def _alarms_of_all(campaigns: Sequence[Side], draw: random.Random) -> tuple[int, int]:
    return false_alarms(permutations(campaigns, 2))


def _alarms(pool: Mapping[str, PlayedCell], repeats: int, noise: float, draw: random.Random) -> tuple[int, int]:
    sides = ((resampled(pool, draw, repeats, noise), resampled(pool, draw, repeats, noise)) for _ in range(PAIRS))
    return false_alarms(sides)


def _found_in_simulated(cell: PlayedCell) -> Iterator[Row]:
    for turn_s, spread, repeats in SIMULATED:
        says = f"30 % slower, turns of {turn_s:g} s, spread {spread:.0%}, {repeats} repeats"
        yield (
            says,
            lambda draw, it=(spread, turn_s, repeats): found_slower(alike(cell, it[0], draw, it[1]), draw, it[2]),
        )
    for spread in (0.05, 0.3):
        says = f"others 5 times slower, spread {spread:.0%}, 10 repeats"
        yield says, lambda draw, it=spread: found_slower(alike(cell, it, draw), draw, 10, change=others_slower)
    for repeats in (3, 10):
        says = f"recovery 3 times dearer, {repeats} repeats"
        yield says, lambda draw, it=repeats: found_slower(alike(cell, 0.05, draw), draw, it, change=recovery_dearer)
    for spread, repeats in ((0.05, 1), (0.05, 3), (0.1, 1), (0.1, 3)):
        says = f"all 30 % slower, spread {spread:.0%}, {repeats} repeats"
        yield says, lambda draw, it=(spread, repeats): found_all_slower(alike(cell, it[0], draw), draw, it[1])


def main() -> None:
    """Print the rows; each has draws of its own, so that one alone is the same."""
    options = argparse.ArgumentParser()
    options.add_argument("--collect", type=Path)
    options.add_argument("--only", default="", metavar="TEXT", help="only rows whose name has this text")
    chosen = options.parse_args()
    if chosen.collect:
        collect(chosen.collect)
    campaigns = kept_campaigns()
    print(f"{len(campaigns)} campaigns played, {len(campaigns[0])} scenarios, 10 repeats each")
    for name, measure in rows(campaigns):
        if chosen.only in name:
            print(f"{name}:", measure(random.Random(name)), flush=True)  # noqa: S311  a simulation


if __name__ == "__main__":
    main()
