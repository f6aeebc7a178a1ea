"""Runs that mostly wait, played more at once than the machine has processors."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.campaign.campaign import Campaign
from wedgehog.harness.campaign.options import NoProgress, Options
from wedgehog.harness.campaign.selection import Entry, stock_folder
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.scenario.scenario_file import load_scenario

AT_ONCE = 5
JOBS = f"--jobs={AT_ONCE}"
TRIES = 4

Found = dict[tuple[str, str], Judgement]
"""What came of each scenario with each agent."""


def entry(scenario: str, spec: Path) -> Entry:
    """A scenario of the catalogue with an agent."""
    return Entry(load_scenario(stock_folder() / "catalogue" / f"{scenario}.yaml"), load_spec(spec))


def play(entries: Iterable[Entry], options: Options) -> Found:
    """Play them in one campaign of this process, and those that a busy machine left undecided again, one by one."""
    found: Found = {}
    left = list(entries)
    for number in range(TRIES):
        jobs = 1 if number else options.jobs
        there = replace(options, out=options.out / str(number), jobs=jobs, most_doubted=0)  # most are to fail
        played = asyncio.run(Campaign(left, there, NoProgress(), lambda line: None).play())
        found |= {(it.scenario, it.agent): it for it in played}
        left = [it for it in left if _undecided(found[it.file.scenario.name, it.agent.name])]
        if not left:
            break
    return found


def _undecided(judged: Judgement) -> bool:
    """Whether a busy machine left an invariant undecided, also where another one is violated, or only at `strict`."""
    at_strict = any(it.startswith("undecided at level strict") for it in judged.remarks)
    return at_strict or any(it.overload for it in judged.verdicts if it.status == "inconclusive")
