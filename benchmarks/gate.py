"""How often the gate is wrong, and what it finds: `python -m benchmarks.gate` (docs/gate.md has the numbers).

`benchmarks/gate_turns.json` keeps what was measured in really played campaigns of one unchanged agent: per campaign and
scenario the numbers of ten repeats. `python -m benchmarks.gate --collect RUNS` writes it from run folders.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any, Final

from wedgehog.reports.campaign_folder import load
from wedgehog.reports.differences import TOGETHER, differences, exit_code
from wedgehog.reports.played_cells import Key, PlayedCell, cells_of

KEPT: Final = Path(__file__).with_name("gate_turns.json")
TURN: Final = ("turn_s", "turn_least_s")
TIMES: Final = (*TURN, "start_s", "start_least_s")
NUMBERS: Final = ("paid_calls", "usd", *TIMES)
CELLS: Final = 40
PAIRS: Final = 200
SLOWER: Final = 1.3
SLOWER_PAIRS: Final = 100

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
    return PlayedCell(name, "mine", numbers["results"], **{key: tuple(numbers[key]) for key in NUMBERS})


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
    calls = tuple(float(max(1, round(value * factor))) for value, factor in zip(cell.paid_calls, factors, strict=True))
    return replace(cell, paid_calls=calls, usd=tuple(map(_product, cell.usd, factors)), **times)


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
    return replace(cell, **{name: tuple(v * SLOWER for v in getattr(cell, name)) for name in TURN})


def found_all_slower(pool: Mapping[str, PlayedCell], draw: random.Random, repeats: int) -> tuple[int, float]:
    """In how many of 100 pairs the gate fails if all turns take 30 % longer, and how many of the 40 cells it names."""
    found, named = 0, 0
    for _ in range(SLOWER_PAIRS):
        before, after = (resampled(pool, draw, repeats) for _ in range(2))
        worse = [it for it in differences(before, {k: slower(c) for k, c in after.items()}) if it.kind == "worse"]
        found += bool(worse)
        named += sum(it.scenario != TOGETHER for it in worse)
    return found, named / SLOWER_PAIRS


def found_slower(pool: Mapping[str, PlayedCell], draw: random.Random, repeats: int, slowed: str) -> int:
    """In how many of 100 pairs the gate names the one of 40 cells whose turns take 30 % longer."""
    found, chosen = 0, f"s{sorted(pool).index(slowed)}"
    for _ in range(SLOWER_PAIRS):
        before, after = (resampled(pool, draw, repeats) for _ in range(2))
        key = (chosen, "mine")
        after[key] = slower(after[key])
        found += any(it.kind == "worse" and it.scenario == chosen for it in differences(before, after))
    return found


def alike(name: str, pool: Mapping[str, PlayedCell], spread: float, draw: random.Random) -> dict[str, PlayedCell]:
    """A pool of turns of 2 s, and starts of 0.3 s, with a known spread."""
    starts = tuple(0.3 * draw.lognormvariate(0.0, spread) for _ in range(2000))
    times = tuple(2.0 * draw.lognormvariate(0.0, spread) for _ in range(2000))
    cell = next(iter(pool.values()))
    made = replace(cell, scenario=name, results={"passed": 2000}, **dict.fromkeys(TURN, times))
    made = replace(made, start_s=starts, start_least_s=starts)
    return {name: replace(made, paid_calls=(1.0,) * 2000, usd=(0.0,) * 2000)}


def main() -> None:
    """Print both tables."""
    options = argparse.ArgumentParser()
    options.add_argument("--collect", type=Path)
    chosen = options.parse_args()
    if chosen.collect:
        collect(chosen.collect)
    campaigns = kept_campaigns()
    pool, draw = pooled(campaigns), random.Random(1)  # noqa: S311  a simulation
    print(f"{len(campaigns)} campaigns played, {len(campaigns[0])} scenarios, 10 repeats each")
    for repeats in (1, 3, 10):
        played = ((first(a, repeats), first(b, repeats)) for a, b in permutations(campaigns, 2))
        print(f"false alarms, pairs of played campaigns, {repeats} repeats:", *false_alarms(played))
    for repeats, times in ((1, 4), (2, 5)):
        split = ((regrouped(a, repeats, times), regrouped(b, repeats, times)) for a, b in permutations(campaigns, 2))
        print(f"the same as {6 * times} scenarios of {repeats} repeats:", *false_alarms(split))
    for noise in (0.0, 0.3):
        for repeats in (1, 3, 10):
            pairs = (
                (resampled(pool, draw, repeats, noise), resampled(pool, draw, repeats, noise)) for _ in range(PAIRS)
            )
            print(f"false alarms, 40 cells, {repeats} repeats, noise {noise:.0%}:", *false_alarms(pairs))
    for slowed in ("stall-once", "slow-2"):
        print(f"30 % slower, played turns of {slowed}, 10 repeats:", found_slower(pool, draw, 10, slowed))
    for spread, repeats in ((0.05, 8), (0.05, 10), (0.08, 10), (0.1, 10), (0.1, 13), (0.15, 20)):
        made = alike("s", pool, spread, draw)
        print(f"30 % slower, spread {spread:.0%}, {repeats} repeats:", found_slower(made, draw, repeats, "s"))
    for spread, repeats in ((0.05, 1), (0.05, 3), (0.1, 1), (0.1, 3)):
        said = found_all_slower(alike("s", pool, spread, draw), draw, repeats)
        print(f"all 30 % slower, spread {spread:.0%}, {repeats} repeats:", *said)


if __name__ == "__main__":
    main()
