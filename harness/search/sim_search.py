"""The search in virtual time: forks of one worker process search, and each failure is confirmed in a fresh process."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.simulated.sim_player import LAST_WORDS, SimPlayer, why_not_in_virtual_time
from wedgehog.harness.run.skip_reasons import why_skipped
from wedgehog.harness.search.capabilities import Capabilities
from wedgehog.harness.search.cells import SearchCell
from wedgehog.harness.search.corpus import Corpus, Finding
from wedgehog.harness.search.draw import SeededChoices
from wedgehog.harness.search.drawn_scenario import Drawer
from wedgehog.harness.search.found import Watcher
from wedgehog.harness.search.in_one_process import CPU_LIMIT_S
from wedgehog.harness.search.player import Measures, Played
from wedgehog.harness.search.scripts import Drawn
from wedgehog.harness.search.search import Objective, Search
from wedgehog.harness.search.search_job import SearchJob

STUCK = f"in one scenario it computed for {CPU_LIMIT_S} s: it loops without waiting, or reads too slowly"


@dataclass(frozen=True)
class Simulated:
    """What is searched in virtual time."""

    worker: SimPlayer
    agents: tuple[tuple[AgentSpec, ControlFacts], ...]
    most: int | None = None
    """How many scenarios are drawn at most."""


class SimSearch(Search):
    """One search on one agent, or on two that should do alike."""

    beside = 0  # in virtual time no run waits

    def __init__(
        self,
        simulated: Simulated,
        play: Callable[[Drawn], Awaitable[Played]],
        capabilities: Capabilities,
        corpus: Corpus,
        watcher: Watcher,
        clock: Clock,
        *,
        seed: int,
        ends_s: float,
        objective: Objective | None = None,
    ) -> None:
        """`play` plays a scenario in a fresh process."""
        self._simulated = simulated
        self._playable: dict[SearchCell, bool] = {}
        super().__init__(play, capabilities, corpus, watcher, clock, seed=seed, ends_s=ends_s, objective=objective)
        self._workers = 0

    async def _search(self, jobs: int) -> None:
        self._jobs, self._first, self._ordered = jobs, self._drawn, self._corpus.ordered
        self._each_alone = asyncio.Barrier(jobs)
        await super()._search(jobs)

    async def _work(self) -> None:
        """Let one fork search. Several first share the faults to try each alone, which tells all of them the order."""
        job, self._workers = self._workers, self._workers + 1
        most = self._simulated.most
        at = _Place(job, None if most is None else (most + job) // self._jobs)
        if self._jobs > 1:
            await self._search_on(at, (job, self._jobs))
            await self._each_alone.wait()
        await self._search_on(at)

    async def _search_on(self, at: "_Place", share: tuple[int, int] | None = None) -> None:
        """Let a fork search from here on; one that a scenario holds up is followed by another."""
        over = False
        while not over and at.left != 0 and self._left_s > 0:
            heard = _Heard(self, at.left)
            over = await heard.until_its_end(self._job(at, share))
            at.left = heard.left
            at.batches += heard.batches + (not over)
            at.ordered += heard.ordered + (not over)

    def _job(self, at: "_Place", share: tuple[int, int] | None) -> SearchJob:
        return SearchJob(
            self._simulated.agents,
            tuple(self.all_cells),
            self._capabilities,
            tuple(self.result.findings),
            self._seed,
            self._first + at.job + at.batches * self._jobs,
            self._jobs,
            self._left_s,
            at.left,
            self._objective,
            self._ordered + at.job + at.ordered * self._jobs,
            self._corpus.alone,
            share,
        )

    def _can_play(self, cell: SearchCell) -> bool:
        """Whether every agent can take part in it in virtual time. Which call it is and how often do not matter."""
        alike = replace(cell, step="first call", times=1)
        if alike not in self._playable:
            self._playable[alike] = self._is_playable(alike)
        return self._playable[alike]

    def _is_playable(self, cell: SearchCell) -> bool:
        _, scenario = Drawer(SeededChoices(str(cell)), self._capabilities).read([cell], "drawn")
        return scenario is not None and not any(
            why_not_in_virtual_time(scenario, agent) or why_skipped(scenario, agent, control)
            for agent, control in self._simulated.agents
        )

    # ---- what a fork says

    def heard_played(self, words: Mapping[str, Any]) -> list[SearchCell]:
        """Count a scenario; returns the cells that it tried first."""
        chosen = [self.all_cells[number] for number in words["played"]]
        self._watcher.tries(" + ".join(map(str, chosen)))
        fresh = [cell for cell in dict.fromkeys(chosen) if self.coverage.saw(cell)]
        if words.get("skipped"):
            self.result.skipped += 1
            return fresh
        self.result.tried += 1
        judgements = tuple(Judgement(**{**it, "violated": tuple(it["violated"])}) for it in words.get("judgements", ()))
        played = Played(words.get("document", {}), judgements, 0.0, (), Measures(**words["measures"]))
        if played.failed:
            self._count_again(played)
        elif played.unclear:
            self.result.unclear.append(played)
        if self._objective is not None:
            self._rank(chosen, played)
        return fresh

    def _count_again(self, played: Played) -> None:
        known = next((finding for finding in self.result.findings if finding.explains(played)), None)
        if known is not None:
            known.again += 1

    def heard_stuck(self, document: Drawn) -> None:
        """Keep a scenario that does not end."""
        self.result.tried += 1
        agents = " or ".join(agent.name for agent, _ in self._simulated.agents)
        one = Judgement(document["name"], agents, "sim", "error", says=STUCK)
        self.result.unclear.append(Played(document, (one,), float(CPU_LIMIT_S)))

    async def heard_found(self, words: dict[str, Any]) -> None:
        """Play a failure in a fresh process, then keep it."""
        one = Judgement("", words["agent"], "sim", "fail", tuple(words["violated"]), says=words["says"])
        played = Played(words["document"], (one,), 0.0)
        finding = Finding(**{**words, "violated": one.violated, "path": self._corpus.new_path(played)})
        self.result.findings.append(finding)
        self._corpus.save(finding)
        if await self._confirm(finding, played):
            self._merge(finding)
            if finding in self.result.findings:
                self._watcher.found(finding)

    def heard_batch(self, fresh: list[SearchCell], *, ordered: bool, alone: Mapping[str, Any]) -> None:
        """Write down what a batch tried."""
        self._corpus.keep_batch(fresh, ordered=ordered, alone=alone)


@dataclass
class _Place:
    """Where one of the jobs of a search is."""

    job: int
    left: int | None
    """How many scenarios it may play yet."""
    batches: int = 0
    ordered: int = 0


class _Heard:
    """What one fork said so far."""

    def __init__(self, search: SimSearch, left: int | None) -> None:
        self._search, self.left = search, left
        self.batches = self.ordered = 0
        self._fresh: list[SearchCell] = []

    async def until_its_end(self, job: SearchJob) -> bool:
        """Listen; whether it searched to the end. Raises AgentError if it ended by an error of ours."""
        said = False
        async with self._search._simulated.worker.asked(job) as lines:
            async for line in lines:
                said, words = True, json.loads(line)
                if "over" in words:
                    return True
                await self._take(words)
        if not said:
            raise AgentError(f"the process of the search ended; {LAST_WORDS}")
        return False

    async def _take(self, words: dict[str, Any]) -> None:
        if "played" in words:
            self.left = None if self.left is None else self.left - 1
            self._fresh += self._search.heard_played(words)
        elif "stuck" in words:
            self.left = None if self.left is None else max(0, self.left - 1)
            self._search.heard_stuck(words["stuck"])
        elif "found" in words:
            await self._search.heard_found(words["found"])
        elif "batch" in words:
            self.batches, self.ordered = self.batches + 1, self.ordered + words["ordered"]
            self._search.heard_batch(self._fresh, ordered=words["ordered"], alone=words["alone"])
            self._fresh = []
