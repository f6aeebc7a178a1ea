"""How often the gate is wrong about campaigns that are really played: `python -m benchmarks.gate_campaigns OUT`.

It plays an agent whose runs vary by chance (`benchmarks/gate_agent`) with `wedgehog run`, in virtual time or live, and
the same agent with turns that take 30 % longer in one scenario. Each pair of campaigns goes through a baseline's file.
Campaigns that `OUT` already has are not played again.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Final

from wedgehog.reports.campaign_folder import StoredCampaign, load
from wedgehog.reports.gate.baseline import Baseline, read_baseline, updated, write_baseline
from wedgehog.reports.gate.difference import Difference
from wedgehog.reports.gate.differences import differences
from wedgehog.reports.played_cells import cells_of

AGENT: Final = Path(__file__).with_name("gate_agent")
SLOWER: Final = 1.3
SLOWED: Final = "fox"
FLAKY: Final = "shrew"
REPEATS: Final = 10
PAIRS: Final = 200
SEEDS: Final = {1.0: 0, SLOWER: 500_000}
Pair = tuple[StoredCampaign, StoredCampaign]


def played(out: Path, world: str, number: int, slower: float) -> Iterator[StoredCampaign]:
    """So many campaigns, each of another seed."""
    for index in range(1, number + 1):
        folder = out / world / ("slow" if slower > 1 else "base") / str(index)
        if not (folder / "latest" / "summary.csv").exists():
            _play(folder, world, 1000 * index + SEEDS[slower], slower)
        yield load((folder / "latest").resolve())


def _play(into: Path, world: str, seed: int, slower: float) -> None:
    where = ("--world", "sim") if world == "sim" else ("--network", "embedded", "-j", "6")
    what = ("run", AGENT / "scenarios", "--agent", AGENT / "agent.yaml", "--repeat", REPEATS, "--seed", seed)
    command = [Path(sys.executable).with_name("wedgehog"), *what, *where, "--out", into, "-q"]
    env = {**os.environ, "SLOWER": str(slower)}
    subprocess.run([str(word) for word in command], env=env, check=False, stdout=subprocess.DEVNULL)


def parts(campaign: StoredCampaign, repeats: int) -> Iterator[StoredCampaign]:
    """The same runs as campaigns of fewer repeats."""
    for first in range(1, REPEATS - repeats + 2, repeats):
        chosen = range(first, first + repeats)
        yield replace(campaign, runs=tuple(run for run in campaign.runs if run.judgement.repeat in chosen))


def pairs(campaigns: Sequence[StoredCampaign], repeats: int, draw: random.Random) -> Iterator[Pair]:
    """At most 200 pairs, each of two campaigns that were played apart."""
    ordered = list(permutations(campaigns, 2))
    if repeats == REPEATS:
        yield from draw.sample(ordered, min(PAIRS, len(ordered)))
        return
    cut = {id(it): list(parts(it, repeats)) for it in campaigns}
    for before, after in draw.choices(ordered, k=PAIRS):
        yield draw.choice(cut[id(before)]), draw.choice(cut[id(after)])


def worse(before: StoredCampaign, after: StoredCampaign) -> list[Difference]:
    """What the gate calls worse, by a baseline's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "baseline.yaml")
        write_baseline(updated(Baseline(), before, cells_of(before), prune=False), path)
        stored = read_baseline(path)
    return [it for it in differences(stored.played, cells_of(after), stored.false_alarms) if it.kind == "worse"]


def is_first_failure(it: Difference) -> bool:
    """Whether it is the verdict of a scenario that never failed in the baseline: then one failed repeat is worse."""
    return it.scenario == FLAKY and it.says.startswith("passed")


def rows(base: Sequence[StoredCampaign], slow: Sequence[StoredCampaign], draw: random.Random) -> Iterable[str]:
    """The lines of the table."""
    for repeats in (1, 3, REPEATS):
        found = [worse(*pair) for pair in pairs(base, repeats, draw)]
        alarms = [[it for it in each if not is_first_failure(it)] for each in found]
        first = sum(any(map(is_first_failure, each)) for each in found)
        yield f"{repeats} repeats: {sum(map(bool, alarms))} false alarms in {len(found)} pairs; first failures: {first}"
        yield from (f"  {it.where}: {it.says}" for each in alarms for it in each)
    both = list(zip(base, slow, strict=False))
    caught = [[it.says for it in worse(*pair) if it.scenario == SLOWED] for pair in both]
    yield f"{SLOWED} 30 % slower: {sum(map(bool, caught))} of {len(both)}"
    crossed = [(before, after) for before in base for after in slow]
    named = sum(any(it.scenario == SLOWED for it in worse(*pair)) for pair in crossed)
    yield f"{SLOWED} 30 % slower, each with each: {named} of {len(crossed)}"


def main() -> None:
    """Play what is missing, and print the lines."""
    options = argparse.ArgumentParser()
    options.add_argument("out", type=Path)
    options.add_argument("--world", choices=("sim", "live"), default="sim")
    options.add_argument("--campaigns", type=int, default=15)
    options.add_argument("--slow", type=int, default=20)
    chosen = options.parse_args()
    base = list(played(chosen.out, chosen.world, chosen.campaigns, 1.0))
    slow = list(played(chosen.out, chosen.world, chosen.slow, SLOWER))
    print(f"{chosen.world}: {len(base)} campaigns, and {len(slow)} of the slower agent")
    for line in rows(base, slow, random.Random(chosen.world)):  # noqa: S311  a choice of pairs
        print(line, flush=True)


if __name__ == "__main__":
    main()
