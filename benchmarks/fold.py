"""What the reports of a large campaign cost: `python -m benchmarks.fold`.

A made-up campaign of 50 scenarios and ten agents: each tenth run is a retry storm of twelve attempts, others answer in
two to eight calls, and some leave a turn unanswered. All reports are written from its folder: the page, JUnit,
Markdown, CSV and Parquet. The bare baseline reads the same files and parses each line as JSON, and nothing more.

Each measurement has a process of its own: CPU seconds, user and system, and the largest memory of the process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import random
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.gauge import machine, write
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.history import History
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import CampaignStore
from wedgehog.harness.record.verdict import fail, passed
from wedgehog.harness.testing.history_builder import HistoryBuilder
from wedgehog.reports.facts import keep_facts

RUNS: Final = 10_000
SCENARIOS: Final = tuple(f"scenario-{number:02d}" for number in range(50))
AGENTS: Final = tuple(f"agent-{number}" for number in range(10))
INVARIANTS: Final = ("turn_deadline", "session_recovers", "tool_call_pairing", "paid_call_bound", "retry_discipline")
STORM_S: Final = 0.05
ATTEMPTS: Final = 12


def answered(draw: random.Random, calls: int) -> History:
    """A run whose message is answered after some calls; so is the next message."""
    tell = HistoryBuilder()
    tell.message()
    for step in range(1, calls):
        (token,) = tell.reply(tell.wait(draw.random()).ask(step), tools=[True], took_s=draw.random())
        tell.runs(token)
    tell.answer_step(calls)
    return _recovered(tell.end())


def storm(draw: random.Random) -> History:
    """A run whose every reply stalls; the agent gives up after twelve attempts."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(ATTEMPTS):
        tell.stall(tell.wait(draw.random()).ask(), waits_s=STORM_S)
    return _recovered(tell.fails())


def _recovered(tell: HistoryBuilder) -> History:
    tell.message("recovery")
    tell.answer_step(1)
    return tell.end().seal()


def made_up(scenario: str, agent: str, repeat: int) -> tuple[Judgement, Sequence[Event]]:
    """One run: its judgement and its events; the same for the same names."""
    draw = random.Random(f"{scenario} {agent} {repeat}")  # noqa: S311  no secret: made-up times
    stormy = draw.random() < 0.1
    history = storm(draw) if stormy else answered(draw, draw.choice((1, 1, 2, 4, 8)))
    says = f"step 1.1 was paid {ATTEMPTS} times, 4 allowed"
    judged = Judgement(scenario, agent, "embedded", "fail" if stormy else "pass", repeat=repeat)
    bad = [event for event in history.events if event.kind == "reply_started"]
    verdicts = tuple(
        (fail(says, bad) if stormy and name == "paid_call_bound" else passed()).named(name) for name in INVARIANTS
    )
    violated = ("paid_call_bound",) if stormy else ()
    return replace(judged, verdicts=verdicts, violated=violated, says=says if stormy else ""), history.events


def make(out: Path, runs: int) -> Path:
    """Write a made-up campaign of so many runs, and return its folder."""
    store = CampaignStore(out, datetime(2025, 5, 1, 12, 0, tzinfo=UTC), "madeup")
    families = {name: f"family-{number // 10}" for number, name in enumerate(SCENARIOS)}
    store.describe({"families": families, "seed": 0})
    for number in range(runs):
        rest, agent = divmod(number, len(AGENTS))
        repeat, scenario = divmod(rest, len(SCENARIOS))
        judged, events = made_up(SCENARIOS[scenario], AGENTS[agent], repeat + 1)
        run = store.run(judged.scenario, judged.agent, judged.repeat)
        for event in events:
            run.write(event)
        run.close(judged)
        keep_facts(run.folder)
    return store.folder


def fold(folder: Path) -> None:
    """Write every report of a campaign."""
    from wedgehog.reports import write_folder

    write_folder(folder, parquet=True)


def bare(folder: Path) -> None:
    """Read the same files and parse every line."""
    for path in sorted(folder.rglob("verdicts.json")):
        json.loads(path.read_bytes())
        for line in path.with_name("history.jsonl").read_bytes().splitlines():
            json.loads(line)


@dataclass(frozen=True)
class Cost:
    """CPU seconds, and the largest resident memory in MiB."""

    cpu_s: float
    memory_mib: float


def _measured(work: Callable[[Path], None], folder: Path) -> Cost:
    began = time.process_time()
    work(folder)
    return Cost(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def measured(work: Callable[[Path], None], folder: Path) -> Cost:
    """The cost of one function in a process of its own, imports included."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (work, folder))


def main() -> None:
    """Measure, and write a table."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("--runs", type=int, default=RUNS)
    told.add_argument("--rounds", type=int, default=3, help="measurements of each, which take turns")
    told.add_argument("--into", type=Path, help="a document with marks for the table")
    options = told.parse_args()
    with tempfile.TemporaryDirectory() as out:
        result = _table(make(Path(out), options.runs), options)
    print(result)
    if options.into:
        write(options.into, "fold", result)


def _table(folder: Path, options: argparse.Namespace) -> str:
    rounds = [(measured(fold, folder), measured(bare, folder)) for _ in range(options.rounds)]
    all_reports, only_read = (_middle(costs) for costs in zip(*rounds, strict=True))
    ratio = median(whole.cpu_s / read.cpu_s for whole, read in rounds)
    page_mb = (folder / "report.html").stat().st_size / 1e6
    day, python = time.strftime("%Y-%m-%d"), platform.python_version()
    return f"""Measured on {day}: {machine()}; Python {python}. Medians of {options.rounds} rounds, which took turns.

| {options.runs:,} made-up runs | CPU seconds | memory |
| --- | ---: | ---: |
| all reports, with Parquet; a page of {page_mb:.1f} MB | {all_reports.cpu_s:.1f} | {all_reports.memory_mib:.0f} MiB |
| only reading the same files and parsing each line | {only_read.cpu_s:.1f} | {only_read.memory_mib:.0f} MiB |
| ratio | {ratio:.1f} | |
"""


def _middle(costs: Sequence[Cost]) -> Cost:
    return Cost(median(it.cpu_s for it in costs), median(it.memory_mib for it in costs))


if __name__ == "__main__":
    main()
