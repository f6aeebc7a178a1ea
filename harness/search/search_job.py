"""The search in virtual time, in a fork of the worker process: it draws, plays, shrinks, and says so in lines."""

import json
import os
import socket
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.search.capabilities import Capabilities
from wedgehog.harness.search.cells import SearchCell
from wedgehog.harness.search.corpus import Finding
from wedgehog.harness.search.explore import Explorer, OverError
from wedgehog.harness.search.fault_order import EVERY_FAULT, Alone
from wedgehog.harness.search.in_one_process import InOneProcess
from wedgehog.harness.search.planned_scenarios import PlannedScenarios
from wedgehog.harness.search.player import Played
from wedgehog.harness.search.scripts import Drawn
from wedgehog.harness.sim.frozen import real_s
from wedgehog.harness.sim.world import SimWorld


@dataclass(frozen=True)
class SearchJob:
    """What one fork of the worker process has to search."""

    agents: tuple[tuple[AgentSpec, ControlFacts], ...]
    cells: tuple[SearchCell, ...]
    capabilities: Capabilities
    known: tuple[Finding, ...]
    seed: int
    first: int
    """The number of the first batch."""
    step: int
    """From one batch's number to the next one's."""
    budget_s: float
    most: int | None
    """How many scenarios are played at most."""
    objective: str | None = None
    ordered: int = 0
    """The number of its first ordered batch."""
    alone: Mapping[str, Sequence[Alone]] = field(default_factory=dict)
    """What is known of each fault alone."""
    share: tuple[int, int] | None = None
    """Try only this one of so many shares of the faults, each alone; None: search."""

    def serve(self, world: SimWorld, line: socket.socket) -> None:
        """Search until the budget is used or the other end hangs up."""
        with line.makefile("w", encoding="utf-8") as out, tempfile.TemporaryDirectory() as own:
            told = _Lines(out, self.cells, every=self.objective is not None)
            ends_s = real_s() + self.budget_s

            def stuck(document: Drawn) -> None:
                if not explorer.give_up():
                    told.stuck(document)
                os._exit(1)

            one = InOneProcess(world, self.agents, stuck)

            def play(document: Drawn) -> Played | None:
                if real_s() > ends_s:
                    raise OverError
                return one.play(document)

            scenarios = PlannedScenarios(self.cells, self.capabilities)
            known, seed = list(self.known), str(self.seed)
            parts = self.ordered, self.step, self.alone, self.share or EVERY_FAULT
            explorer = Explorer(play, scenarios, known, seed, told, self.objective, *parts, home=own)
            try:
                self._batches(explorer, told)
            except OverError:
                told.say(over=True)

    def _batches(self, explorer: Explorer, told: "_Lines") -> None:
        number = self.first
        while (self.most is None or told.count < self.most) and (self.share is None or explorer.tries_alone):
            explorer.batch(number, None if self.most is None else self.most - told.count)
            number += self.step
        raise OverError


class _Lines:
    """Writes what a search does as lines of JSON."""

    def __init__(self, out: TextIO, cells: Sequence[SearchCell], *, every: bool) -> None:
        """`every`: write each scenario, because the greatest is wanted."""
        self._every = every
        self._out, self._numbers = out, {cell: number for number, cell in enumerate(cells)}
        self.count = 0

    def say(self, **words: Any) -> None:
        """Write one line."""
        try:
            self._out.write(json.dumps(words) + "\n")
            self._out.flush()
        except OSError:
            raise OverError from None

    def played(self, cells: Sequence[SearchCell], played: Played) -> None:
        """A scenario was played; of one that failed or was not decided, what was said."""
        self.count += 1
        words: dict[str, Any] = {"played": [self._numbers[cell] for cell in cells], "measures": asdict(played.measures)}
        if all(one.skipped for one in played.judgements):
            words["skipped"] = True
        elif played.unclear or played.failed:
            words |= {"document": played.document, "judgements": [_short(one) for one in played.judgements]}
        elif self._every:
            words["document"] = played.document
        self.say(**words)

    def stuck(self, document: Drawn) -> None:
        """A scenario does not end."""
        self.say(stuck=document)

    def batch(self, *, ordered: bool, alone: Mapping[str, Sequence[Alone]]) -> None:
        """A batch is over."""
        self.say(batch=True, ordered=ordered, alone=alone)

    def found(self, finding: Finding) -> None:
        """A new failure."""
        self.say(found={**asdict(finding), "path": ""})


def _short(judgement: Judgement) -> dict[str, Any]:
    names = ("scenario", "agent", "network", "verdict", "says", "violated")
    return {name: getattr(judgement, name) for name in names}
