"""Plays drawn scenarios on the agents of a search, and reads what each showed."""

import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.campaign.selection import Entry, check_invariant
from wedgehog.harness.record.history import History
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.ledger import played_ledger
from wedgehog.harness.record.store import read_run
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.views import Call
from wedgehog.harness.run.judging.judge import CONSEQUENCES
from wedgehog.harness.scenario.scenario_file import load_scenario
from wedgehog.harness.search.scripts import Drawn

MANY = 8
"""Later calls than this make no other behaviour."""
TOO_MANY_REQUESTS = 429
"""Agents treat it unlike other refusals; those are alike if their first digit is."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What `--worst` makes as great as it can: dollars, paid calls, and the longest turn in seconds."""

    cost: float = 0.0
    calls: int = 0
    silence: float = 0.0

    def __str__(self) -> str:
        """`simulated cost $0.0044, 3 paid calls, the longest turn took 12.5 s`."""
        paid = "1 paid call" if self.calls == 1 else f"{self.calls:,} paid calls"
        return f"simulated cost ${self.cost:.2g}, {paid}, the longest turn took {self.silence:.1f} s"


class Behaviour(NamedTuple):
    """What an agent did in a scenario, in few words; equal for runs in which it did alike."""

    verdict: str
    violated: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    """How each turn ended."""
    calls: tuple[str, ...] = ()
    """How each model call went, as the agent saw it: `refused with 429`, `cut`, `end`."""
    asked_again: bool = False
    """Whether it made a call a second time."""


@dataclass(frozen=True, slots=True)
class Played:
    """What one scenario showed, on each agent in turn."""

    document: Drawn
    judgements: tuple[Judgement, ...]
    seconds: float
    behaviour: tuple[Behaviour, ...] = ()
    """Of each agent that took part."""
    measures: Measures = Measures()

    @property
    def failed(self) -> bool:
        """Whether it is a finding: a failure, or of two agents one that fails and one that passes."""
        verdicts = [judgement.verdict for judgement in self.judgements]
        return "fail" in verdicts and (len(verdicts) == 1 or "pass" in verdicts)

    @property
    def unclear(self) -> bool:
        """Whether nothing was decided."""
        return any(judgement.verdict in ("error", "inconclusive") for judgement in self.judgements)

    @property
    def failure(self) -> tuple[str, tuple[str, ...]]:
        """The agent that fails, and the invariants that it violates: causes, or consequences if there is no cause."""
        one = next(judgement for judgement in self.judgements if judgement.verdict == "fail")
        causes = tuple(name for name in one.violated if name not in CONSEQUENCES)
        return one.agent, causes or one.violated

    @property
    def says(self) -> str:
        """The sentence of the failure."""
        return next((judgement.says for judgement in self.judgements if judgement.verdict == "fail"), "")


class Player:
    """Writes a scenario to a file, plays it on each agent, and keeps the folders of failures."""

    def __init__(
        self,
        play: Callable[[Entry], Awaitable[Judgement]],
        agents: Sequence[AgentSpec],
        run_folder: Callable[[str, str], Path],
        drawn: Path,
    ) -> None:
        """`drawn` is the folder of the scenario files."""
        self._play, self._agents, self._run_folder, self._drawn = play, agents, run_folder, drawn
        drawn.mkdir(parents=True, exist_ok=True)

    async def play(self, document: Drawn) -> Played:
        """Play a scenario on every agent, one after the other.

        Raises:
            BadFileError: it is no legal scenario.
        """
        path = self._drawn / f"{document['name']}.yaml"
        path.write_text(as_yaml(document), encoding="utf-8")
        file = load_scenario(path, check_invariant)
        started_s = time.monotonic()
        judgements, behaviour, measures = [], [], Measures()
        for agent in self._agents:
            judgement = await self._play(Entry(file, agent))
            folder = self._run_folder(file.scenario.name, agent.name)
            judgements.append(judgement)
            if not judgement.skipped and judgement.verdict != "error":
                history = read_run(folder).history
                behaviour.append(behaviour_of(judgement, history))
                measures = measures_of(history)
            if judgement.verdict in ("pass", "nothing"):
                shutil.rmtree(folder)
        seconds = time.monotonic() - started_s
        return Played(document, tuple(judgements), seconds, tuple(behaviour), measures)


def as_yaml(document: Drawn) -> str:
    """A scenario file."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)


def behaviour_of(judgement: Judgement, history: History) -> Behaviour:
    """What the agent did, in few words."""
    return Behaviour(
        judgement.verdict,
        judgement.violated,
        tuple(outcome_of(turn, history).kind for turn in history.turns),
        tuple(_went(call) for call in history.calls[:MANY]),
        any(len(step.calls) > 1 for turn in history.turns for step in turn.steps),
    )


def _went(call: Call) -> str:
    """How a call went, as its agent saw it."""
    if call.refused is not None:
        status = call.refused.status
        return f"refused with {status if status == TOO_MANY_REQUESTS else status // 100}"
    if call.ended is None or call.whole:
        return "open" if call.ended is None else "damaged" if call.damaged else call.ended.stop
    part = " after a block" if call.progressed else " in its words" if call.ended.text_delivered else ""
    return f"{'left by the agent' if call.hung_up else call.ended.how}{part}"


def measures_of(history: History) -> Measures:
    """What `--worst` compares."""
    bill = played_ledger(history)
    ended = [(turn.stimulus.at_s, turn.end.at_s) for turn in history.turns if turn.stimulus and turn.end]
    longest_s = max((end - begin for begin, end in ended), default=0.0)
    return Measures(bill.cost_usd or 0.0, bill.paid_calls, longest_s)
