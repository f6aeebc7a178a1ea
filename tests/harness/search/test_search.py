"""The search on made-up agents: what it finds, how it shrinks, what it keeps, and when it ends."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from rich.console import Console

from wedgehog.harness.campaign.options import Options
from wedgehog.harness.campaign.selection import check_invariant
from wedgehog.harness.commands.fuzz import Fuzz, FuzzOptions
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.scenario.document import BadFileError
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.scenario_file import load_scenario
from wedgehog.harness.search.capabilities import Capabilities
from wedgehog.harness.search.cells import SearchCell, cells
from wedgehog.harness.search.corpus import Corpus, Finding, fault_names
from wedgehog.harness.search.coverage import Coverage
from wedgehog.harness.search.drawn_scenario import items
from wedgehog.harness.search.found import Found
from wedgehog.harness.search.long_runs import LONG_S
from wedgehog.harness.search.player import Measures, Played
from wedgehog.harness.search.scripts import Drawn
from wedgehog.harness.search.search import Objective, Search

CAPABILITIES = Capabilities(shell=True, turns=2, links=("llm", "agent"))
Fails = Callable[[Drawn], tuple[str, ...]]


NAMES = {"no fault", "status", "cut", "stall", "empty_reply", "latency", "refusal", "abort", "kill", "second message"}
"""Some faults of each family. A search weighs all cells that are left before each run: most tests need no more."""


@cache
def every_cell() -> list[SearchCell]:
    return cells(CAPABILITIES.links)


@pytest.fixture(autouse=True)
def _few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [cell for cell in every_cell() if cell.fault in NAMES]
    monkeypatch.setattr("wedgehog.harness.search.search.cells", lambda links, fits: [*filter(fits, few)])


class Watched:
    """Takes notes."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def tries(self, what: str) -> None:
        """Every scenario is told."""

    def found(self, finding: Finding) -> None:
        self.seen.append(finding.path.stem)

    def gone(self, name: str) -> None:
        self.seen.append(f"gone {name}")


class Agent:
    """An agent that violates what `fails` says of a scenario; each run takes a second of a made-up clock."""

    def __init__(self, fails: Fails) -> None:
        self.fails, self.s = fails, 0.0
        self.enough: Callable[[], bool] = lambda: False
        """Ends the search's budget."""
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self.s

    def wall(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        waker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.s + seconds, waker))
        await waker

    async def play(self, document: Drawn) -> Played:
        try:
            Scenario.model_validate(document)
        except ValidationError as wrong:
            raise BadFileError(Path("x.yaml"), None, str(wrong)) from None
        self.s += 10_000 if self.enough() else 1
        for due_s, waker in self._sleepers:
            if due_s <= self.s and not waker.done():
                waker.set_result(None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        violated = self.fails(document)
        one = Judgement(document["name"], "a", "embedded", "fail" if violated else "pass", violated, says="it broke")
        return Played(document, (one,), 0.01, (violated, len(document["faults"])), Measures(len(repr(document)), 1, 0))


def search(agent: Agent, folder: Path, runs: int, objective: Objective | None = None) -> Search:
    return Search(
        agent.play, CAPABILITIES, Corpus(folder), Watched(), agent, seed=0, ends_s=agent.s + runs, objective=objective
    )


async def searched(fails: Fails, folder: Path, runs: int, *, again: bool = False) -> Found:
    """What a search finds in so many runs, or until all that it found is shrunk and measured (and met `again`)."""
    agent = Agent(fails)
    it = search(agent, folder, runs)

    def enough() -> bool:
        found = it.result.findings
        idle = not (it._to_shrink or it._to_measure or it._shrinking)
        return idle and bool(found) and all(one.whole and (one.again or not again) for one in found)

    agent.enough = enough
    return await it.run(1)


def needs(*names: str) -> Fails:
    """Broken by these faults together."""
    return lambda document: ("paid_call_bound",) if set(names) <= fault_names(document) else ()


async def test_a_bug_that_needs_one_fault_is_found_and_shrunk_to_it(tmp_path: Path):
    """One turn, one reply, one fault without a parameter that it does not need."""
    found = await search(Agent(needs("cut")), tmp_path, 400).run(2)
    (finding,) = found.findings
    assert finding.whole
    assert fault_names(finding.document) == {"cut"}
    assert len(finding.document["turns"]) == 1 and len(list(items(finding.document["turns"][0]))) == 1
    assert finding.document["faults"] == [{"do": "cut"}]
    assert finding.again > 0, "other scenarios show the same and are counted, not told again"


async def shrunk_to(one: str, other: str, folder: Path) -> bool:
    """Whether a search for a bug that needs both faults ends with a scenario of these two."""
    found = await searched(needs(one, other), folder, 1500, again=True)
    (finding,) = found.findings
    return fault_names(finding.document) == {one, other} and len(finding.document["faults"]) == 2


async def test_a_bug_that_needs_two_faults_is_shrunk_to_those(tmp_path: Path):
    """All single faults pass; two of them together break it."""
    assert await shrunk_to("status", "stall", tmp_path)


@pytest.mark.parametrize(("one", "other"), [("cut", "kill"), ("empty_reply", "abort")])
async def test_a_bug_that_needs_two_faults_is_found_among_all_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: str, other: str
):
    """No test's choice of faults helps."""
    monkeypatch.setattr("wedgehog.harness.search.search.cells", lambda links, fits: [*filter(fits, every_cell())])
    assert await shrunk_to(one, other, tmp_path)


async def test_what_is_saved_is_an_ordinary_scenario_file(tmp_path: Path):
    """With the sentence of its failure."""
    found = await searched(needs("cut"), tmp_path, 400)
    path = found.findings[0].path
    scenario = load_scenario(path).scenario
    assert (scenario.name, path.parent.name) == (path.stem, "found")
    assert "it broke" in scenario.why


async def test_two_bugs_are_two_findings(tmp_path: Path):
    """Known by the violated invariants and the faults."""

    def fails(document: Drawn) -> tuple[str, ...]:
        names = fault_names(document)
        return ("turn_deadline",) if "stall" in names else ("error_surfaced",) if "status" in names else ()

    found = await search(Agent(fails), tmp_path, 500).run(2)
    assert {(it.violated, it.faults) for it in found.findings} == {
        (("turn_deadline",), frozenset({"stall"})),
        (("error_surfaced",), frozenset({"status"})),
    }


async def test_the_number_at_which_the_verdict_turns_is_found(tmp_path: Path):
    """A stall of more than 10 s. The saved scenario stalls longer, because at the very point another clock may pass."""

    def fails(document: Drawn) -> tuple[str, ...]:
        for line in document["faults"]:
            do = line["do"]
            name = do if isinstance(do, str) else next(iter(do))
            given = "forever" if isinstance(do, str) else do[name].get("for_s", "forever") if name == "stall" else 0
            if name == "stall" and (given == "forever" or given > 10):
                return ("turn_deadline",)
        return ()

    found = await searched(fails, tmp_path, 500)
    (finding,) = found.findings
    (line,) = finding.document["faults"]
    assert line["do"] == "stall" or line["do"]["stall"]["for_s"] > 12
    fails_at = float(finding.breaks_at.rpartition(" ")[2])
    assert "stall.for_s: passes at " in finding.breaks_at and 10 < fails_at < 11.5


async def test_the_fewest_repetitions_that_break_it_are_found(tmp_path: Path):
    """Three refusals are answered, four are not."""

    def fails(document: Drawn) -> tuple[str, ...]:
        often = [line.get("times", 1) for line in document["faults"] if "status" in line["do"]]
        return ("session_recovers",) if any(it == "always" or it > 3 for it in often) else ()

    found = await searched(fails, tmp_path, 500)
    assert found.findings[0].document["faults"][0]["times"] == 4
    assert "times of status: passes at 3, fails at 4" in found.findings[0].breaks_at


async def test_a_failure_that_a_second_try_does_not_show_is_no_finding(tmp_path: Path):
    """It is counted apart, and leaves no file."""
    once = iter([("turn_deadline",)])
    found = await search(Agent(lambda document: next(once, ())), tmp_path, 200).run(1)
    assert not found.findings and len(found.unsteady) == 1
    assert not list((tmp_path / "found").iterdir())


async def test_the_next_search_goes_on_where_the_last_one_ended(tmp_path: Path):
    """Nothing is tried twice, and what was found is played first."""
    first = search(Agent(needs("cut")), tmp_path, 120)
    await first.run(1)
    tried = {str(cell) for cell in first.coverage.tried}
    second = search(Agent(needs("cut")), tmp_path, 60)
    assert not tried - {str(cell) for cell in second.all_cells}
    assert len(second.coverage.left) < len(first.all_cells)
    result = await second.run(1)
    assert [finding.faults for finding in result.findings] == [{"cut"}]


async def test_a_found_scenario_that_passes_now_is_told(tmp_path: Path):
    """The bug was mended."""
    await searched(needs("cut"), tmp_path, 300)
    mended = search(Agent(lambda document: ()), tmp_path, 300)
    result = await mended.run(1)
    assert not result.findings and len(result.gone) == 1
    assert mended._watcher.seen == [f"gone {result.gone[0]}"]  # type: ignore[attr-defined]


async def test_a_scenario_that_the_end_of_the_budget_cut_off_was_not_tried(tmp_path: Path):
    """The next search tries it."""
    one = search(Agent(lambda document: ()), tmp_path, 3)
    await one.run(1)
    assert len(one.coverage.tried) == 3
    assert len(Corpus(tmp_path).lines) == 3


async def test_a_cut_last_line_of_a_killed_search_is_passed_over(tmp_path: Path):
    """All others are read."""
    await search(Agent(lambda document: ()), tmp_path, 3).run(1)
    with (tmp_path / "tried.jsonl").open("a") as out:
        out.write('{"cells": [{"fau')
    assert len(Corpus(tmp_path).lines) == 3


async def test_with_an_objective_the_greatest_scenarios_are_kept(tmp_path: Path):
    """And varied: the greatest is greater than any single fault's."""
    found = await search(Agent(lambda document: ()), tmp_path, 600, objective="cost").run(1)
    assert 0 < len(found.greatest) <= 5
    assert len(found.greatest[0].document["faults"]) > 1
    saved = load_scenario(Corpus(tmp_path).greatest_path("cost"), check_invariant)
    assert saved.scenario.name == "greatest-cost" and len(saved.scenario.faults) > 1


async def test_equal_seeds_make_equal_searches(tmp_path: Path):
    """With one job."""
    drawn = []
    for name in ("a", "b"):
        it = search(Agent(lambda document: ()), tmp_path / name, 200)
        await it.run(1)
        drawn.append([yaml.safe_dump(line["cells"]) for line in it._corpus.lines])
    assert drawn[0] == drawn[1]


async def test_a_run_that_takes_long_does_not_keep_others_waiting(tmp_path: Path):
    """It mostly waits: with one job another run begins beside it, and none when it is over."""
    agent = Agent(lambda document: ())
    most, open_runs = [0, 0], set[str]()

    async def play(document: Drawn) -> Played:
        first = not open_runs and not agent.s
        open_runs.add(document["name"])
        most[first] = max(most[first], len(open_runs))
        for _ in range(2 * int(LONG_S) if first else 0):
            await agent.play(document)
            most[1] = max(most[1], len(open_runs))
        played = await agent.play(document)
        open_runs.discard(document["name"])
        most[0] = 0 if first else most[0]
        return played

    it = search(agent, tmp_path, 60)
    it._play = play
    await it.run(1)
    assert most == [1, 2]


async def test_when_the_budget_is_used_no_run_begins_beside_one_that_takes_long_to_end(tmp_path: Path):
    """The search ends with its results, and not with an error."""
    agent, begun = Agent(lambda document: ()), list[str]()

    async def play(document: Drawn) -> Played:
        begun.append(document["name"])
        try:
            while True:
                await agent.play(document)
        finally:
            for _ in range(2 * int(LONG_S)):
                await agent.play(document)

    it = search(agent, tmp_path, 5)
    it._play = play
    await it.run(1)
    assert len(begun) == 1


def test_the_first_stall_that_is_tried_begins_in_a_reply_that_has_begun():
    """Agents wait longer for a first byte than for the next one, so an endless stall there takes a whole turn."""
    cell = Coverage([cell for cell in every_cell() if cell.fault == "stall"]).next(within_s=60)
    assert cell is not None and (cell.place, cell.times) == ("body", "always")


def test_a_failure_of_one_of_two_agents_is_a_difference():
    """Both red is none."""

    def played(*verdicts: Any) -> Played:
        return Played({}, tuple(Judgement("s", f"a{n}", "e", it) for n, it in enumerate(verdicts)), 1.0)

    assert played("fail").failed and played("pass", "fail").failed
    assert not played("fail", "fail").failed
    assert not played("fail", "inconclusive").failed


async def test_a_failure_without_a_second_try_is_not_reported(tmp_path: Path):
    """The budget ended before it; its file stays, and the next search plays it first."""
    found = await search(Agent(lambda document: ("turn_deadline",)), tmp_path, 1).run(1)
    assert not found.findings and len(found.untried) == 1
    assert found.untried[0].path.is_file()


@pytest.mark.parametrize(
    ("world", "objective", "stops"), [("live", None, True), ("live", "calls", False), ("sim", None, False)]
)
def test_only_a_live_search_for_failures_stops_turns_whose_verdict_is_certain(
    tmp_path: Path, world: Any, objective: Any, stops: bool
):
    """The greatest bill is that of a whole turn, and in virtual time a whole turn takes no time."""
    asked = FuzzOptions((), (), 1.0, tmp_path, objective)
    assert Fuzz(asked, Options(tmp_path), Console()).campaign_options(world).until_certain is stops
