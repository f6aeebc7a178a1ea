"""The search: draws scenarios within a budget of time, and shrinks every failure by replay.

First every pair of fault, place, call, repetition and script is covered, quick ones first. Then faults are combined
on scenarios whose behaviour was new. With an objective the greatest scenarios are varied instead. Failures
are shrunk beside that, those whose replay is quick first.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Literal

from wedgehog.harness.record.clock import Clock
from wedgehog.harness.scenario.document import BadFileError
from wedgehog.harness.search.capabilities import Capabilities
from wedgehog.harness.search.cells import SearchCell, cells
from wedgehog.harness.search.corpus import Corpus, Finding, read_scenario
from wedgehog.harness.search.coverage import Coverage
from wedgehog.harness.search.draw import Choices, SeededChoices
from wedgehog.harness.search.drawn_scenario import MOST_FAULTS, Drawer
from wedgehog.harness.search.found import Found, Watcher
from wedgehog.harness.search.long_runs import BESIDE, LongRuns
from wedgehog.harness.search.player import Played
from wedgehog.harness.search.scripts import Drawn
from wedgehog.harness.search.simplify import Trials, measure, shows, shrink

Objective = Literal["cost", "calls", "silence"]
KEPT = 5
"""With an objective, how many of the greatest scenarios are varied."""


class Search:
    """One search on one agent, or on two that should do alike."""

    beside = BESIDE

    def __init__(
        self,
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
        """`ends_s` is the end of the budget on the clock."""
        self._play, self._capabilities, self._corpus, self._watcher = play, capabilities, corpus, watcher
        self._clock, self._seed, self._ends_s, self._objective = clock, seed, ends_s, objective
        done = set(corpus.cells)
        known = {cell.bare for cell in done}
        fitting = cells(capabilities.links, capabilities.fits)
        left = [cell for cell in fitting if cell not in known and self._can_play(cell)]
        self.coverage = Coverage(left, sorted(done, key=str), capabilities.scripts)
        self.all_cells = [*self.coverage.tried, *self.coverage.left]
        self.result = Found()
        self._drawn = len(corpus.lines)
        self._budget_s = ends_s - clock.now()
        self._jobs = 1
        self._long_runs = LongRuns(clock)
        self._to_shrink: list[Finding] = []
        self._to_measure: list[Finding] = []
        self._shrinking = 0
        self._promising: list[list[SearchCell]] = []
        self._behaviours: set[tuple[object, ...]] = set()
        self._combinations = {tuple(sorted({cell["fault"] for cell in line["cells"]})) for line in corpus.lines}
        self._names = 0

    async def run(self, jobs: int) -> Found:
        """Search until the budget is used, or is cancelled; what was found is on disk at any time."""
        searching = asyncio.create_task(self._search(jobs))
        end = asyncio.create_task(self._clock.sleep(max(0.0, self._left_s)))
        try:
            await asyncio.wait({searching, end}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._long_runs.most = 0  # a run may take long to end: none begins beside it now
            for task in (searching, end):
                task.cancel()
            await asyncio.wait({searching, end})
            self.result.untried = [finding for finding in self.result.findings if not finding.confirmed]
            self.result.findings = [finding for finding in self.result.findings if finding.confirmed]
        if not searching.cancelled():
            searching.result()
        return self.result

    async def _search(self, jobs: int) -> None:
        self._jobs = jobs
        await self._known()
        try:
            async with asyncio.TaskGroup() as group:
                self._long_runs.most = self.beside * jobs
                self._long_runs.begin = lambda: group.create_task(self._work())
                for _ in range(jobs):
                    self._long_runs.begin()
        except ExceptionGroup as several:
            raise several.exceptions[0] from None

    @property
    def _left_s(self) -> float:
        return self._ends_s - self._clock.now()

    async def _known(self) -> None:
        """Play what earlier searches found."""
        for path in self._corpus.known:
            document = read_scenario(path)
            played = await self._played({**document, "name": self._name()}, path.stem)
            if played is None:
                continue
            if played.failed:
                finding = Finding(*played.failure, document, played.says, path, confirmed=True, whole=True)
                self.result.findings.append(finding)
                self._watcher.found(finding)
            elif not played.unclear and not any(one.skipped for one in played.judgements):
                self.result.gone.append(path.stem)
                self._watcher.gone(path.stem)

    async def _work(self) -> None:
        """Search or shrink, until the time is over or nothing is left to do, or a long run is over."""
        while True:
            if self._long_runs.one_too_many():
                return
            if (failure := self._next_failure()) is not None:
                await self._simplify(failure)
            elif (chosen := self._choose()) is not None:
                await self._try(chosen)
            else:
                return

    async def _try(self, chosen: list[SearchCell]) -> None:
        drawer = Drawer(SeededChoices(f"{self._seed} {self._drawn}"), self._capabilities)
        self._drawn += 1
        document = drawer.scenario(chosen, self._name())
        try:
            played = await self._played(document, " + ".join(map(str, chosen)))
        except asyncio.CancelledError:
            self._not_tried(chosen)
            raise
        if played is not None:
            await self._learn(chosen, played)

    def _choose(self) -> list[SearchCell] | None:
        """One cell while pairs of its values are new, then single and combined ones in turn."""
        left_s = self._left_s
        if left_s <= 0:
            return None
        combine = self.coverage.all_pairs and self._drawn % 2 == 1
        if not combine and (cell := self.coverage.next(left_s)) is not None:
            return [cell]
        quick = [cell for cell in self.all_cells if self.coverage.expected_s(cell) < left_s]
        return self._combined(SeededChoices(f"{self._seed} combine {self._drawn}"), quick) if quick else None

    def _combined(self, draw: Choices, quick: Sequence[SearchCell]) -> list[SearchCell]:
        """Two faults that were not combined yet; else, or with an objective, a promising one varied."""
        faults = sorted({cell.fault for cell in quick})
        fresh = [pair for pair in combinations(faults, 2) if pair not in self._combinations]
        if fresh and self._objective is None:
            pair = draw.choose(fresh)
            self._combinations.add(pair)
            return [draw.choose([cell for cell in quick if cell.fault == fault]) for fault in pair]
        base = draw.choose(self._promising) if self._promising else []
        kept = [cell for cell in base if draw.choose((True, True, False))][: MOST_FAULTS - 1]
        return [*kept, *(draw.choose(quick) for _ in range(draw.between(1, max(1, 2 - len(kept)))))]

    def _not_tried(self, chosen: Sequence[SearchCell]) -> None:
        if len(chosen) == 1 and chosen[0] in self.coverage.tried:
            self.coverage.put_back(chosen[0])

    async def _learn(self, chosen: list[SearchCell], played: Played) -> None:
        self._corpus.keep(chosen, played)
        if len(chosen) == 1:
            self.coverage.took(chosen[0], played.seconds)
        if all(judgement.skipped for judgement in played.judgements):
            self.result.skipped += 1
            return
        self.result.tried += 1
        if self._objective is not None:
            self._rank(chosen, played)
        elif played.behaviour not in self._behaviours:
            self._behaviours.add(played.behaviour)
            self._promising.append(chosen)
        if played.failed:
            await self._failure(played)
        elif played.unclear:
            self.result.unclear.append(played)

    def _rank(self, chosen: list[SearchCell], played: Played) -> None:
        """Keep the greatest few, and vary only them."""
        objective = str(self._objective)
        self.result.greatest.append(played)
        self.result.greatest.sort(key=lambda one: -getattr(one.measures, objective))
        del self.result.greatest[KEPT:]
        if played in self.result.greatest:
            self._promising = [*self._promising, chosen][-KEPT:]
        if played is self.result.greatest[0]:
            self._corpus.save_greatest(played, objective)

    # ---- failures

    async def _failure(self, played: Played) -> None:
        known = next((finding for finding in self.result.findings if finding.explains(played)), None)
        if known is not None:
            known.again += 1
            return
        path = self._corpus.new_path(played)
        finding = Finding(*played.failure, played.document, played.says, path)
        self.result.findings.append(finding)
        self._corpus.save(finding)
        if not await self._confirm(finding, played):
            return
        self._watcher.found(finding)
        self.coverage.broken |= finding.faults
        finding.seconds = played.seconds
        self._to_shrink.append(finding)

    def _next_failure(self) -> Finding | None:
        """A failure to make simpler: half of the jobs do that, and all of them in the last third of the time."""
        late = self._left_s < self._budget_s / 3
        if self._left_s <= 0 or (not late and self._shrinking >= max(1, self._jobs // 2)):
            return None
        waiting = self._to_shrink or self._to_measure
        quickest = min(waiting, key=lambda finding: finding.seconds, default=None)
        if quickest is not None:
            waiting.remove(quickest)
        return quickest

    async def _simplify(self, finding: Finding) -> None:
        """Shrink it; or find its breaking point, if it is at its smallest."""
        self._shrinking += 1
        try:
            if finding.whole:
                await self._play_trials(finding, measure(finding))
                return
            await self._play_trials(finding, shrink(finding))
            self._merge(finding)
            if finding in self.result.findings:
                self._to_measure.append(finding)
        finally:
            self._shrinking -= 1

    async def _confirm(self, finding: Finding, played: Played) -> bool:
        """Play it once more; what does not fail again is no finding."""
        with self._long_runs.second_try():
            shown = await self._shows(finding, played.document)
        if not shown:
            self.result.findings.remove(finding)
            self.result.unsteady.append(played)
            finding.path.unlink(missing_ok=True)
            return False
        finding.confirmed = True
        return True

    async def _shows(self, finding: Finding, document: Drawn) -> bool:
        """Whether a scenario fails as the finding does; then it is the finding's scenario."""
        played = await self._played({**document, "name": self._name()}, f"shrinking {finding.path.stem}")
        if not shows(finding, played):
            return False
        self._corpus.save(finding)
        return True

    async def _play_trials(self, finding: Finding, trials: Trials) -> None:
        """Play each trial; the scenario that the finding has at the end is on disk."""
        with suppress(StopIteration):
            candidate = next(trials)
            while True:
                candidate = trials.send(await self._shows(finding, candidate))
        self._corpus.save(finding)

    def _merge(self, finding: Finding) -> None:
        """Two that became the same scenario's failure are one."""
        for other in self.result.findings:
            same = (other.agent, other.violated, other.faults) == (finding.agent, finding.violated, finding.faults)
            if other is not finding and same:
                other.again += 1 + finding.again
                self.result.findings.remove(finding)
                finding.path.unlink(missing_ok=True)
                return

    # ---- playing

    async def _played(self, document: Drawn, what: str) -> Played | None:
        self._watcher.tries(what)
        try:
            async with self._long_runs.watched():
                return await self._play(document)
        except BadFileError:  # a combination that the scenario reader refuses
            return None

    def _name(self) -> str:
        self._names += 1
        return f"drawn-{self._names}"

    def _can_play(self, cell: SearchCell) -> bool:
        """Whether a scenario with this cell, which fits the agent's capabilities, can be played in this search."""
        return True
