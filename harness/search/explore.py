"""Searches with Hypothesis in one process: it draws scenarios, plays each at once, and shrinks a failure.

Hypothesis shrinks the choices of which a scenario is made. What it leaves is then shrunk as a scenario file is, line by
line, and the breaking point is looked for.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from wedgehog.harness.search.cells import SearchCell
from wedgehog.harness.search.corpus import Finding
from wedgehog.harness.search.draw import Choices, HypothesisChoices, SimplestChoices
from wedgehog.harness.search.fault_order import EVERY_FAULT, Alone, FaultOrder, Planned
from wedgehog.harness.search.planned_scenarios import PlannedScenarios
from wedgehog.harness.search.player import Played
from wedgehog.harness.search.scripts import Drawn
from wedgehog.harness.search.simplify import Trials, measure, shows, shrink

NAME = "drawn"


class Heard(Protocol):
    """Gets the events of a search."""

    def played(self, cells: Sequence[SearchCell], played: Played) -> None:
        """A drawn scenario was played."""
        ...

    def batch(self, *, ordered: bool, alone: Mapping[str, Sequence[Alone]]) -> None:
        """A batch is over: whether it was an ordered one, and what a fault did alone. No later search plays these."""
        ...

    def found(self, finding: Finding) -> None:
        """A new failure, as small as it can be made."""
        ...


class OverError(BaseException):
    """The search ends now. It is no Exception, so that Hypothesis does not take it for a failure."""


class IllegalError(Exception):
    """What was drawn is no legal scenario."""


class FailureShownError(Exception):
    """The failure that is being shrunk shows; Hypothesis looks for a smaller example that raises this."""


@dataclass
class Explorer:
    """One search. Equal seeds draw equal scenarios in every process."""

    play: Callable[[Drawn], Played | None]
    """Plays a scenario; None: it is no legal one. It raises OverError when the budget is used."""
    scenarios: PlannedScenarios
    known: list[Finding]
    seed: str
    heard: Heard
    objective: str | None = None
    begin: int = 0
    step: int = 1
    """Its first ordered batch, and from one to the next; other processes play those between."""
    alone: Mapping[str, Sequence[Alone]] = field(default_factory=dict)
    """What earlier searches saw of each fault alone."""
    share: tuple[int, int] = EVERY_FAULT
    """Which of how many shares of the faults it tries alone first."""
    home: str | None = None
    """The folder in which Hypothesis may keep files; None: its own choice."""
    _finding: Finding | None = None
    _planned: Planned = field(init=False)
    _drawn: set[str] = field(default_factory=set)
    """What was played already, whatever its seed."""
    _order: FaultOrder = field(init=False)

    def __post_init__(self) -> None:
        faults, alone = self.scenarios.faults, self.alone
        self._order = FaultOrder(faults, self.seed, self.begin, self.step, alone=alone, share=self.share)

    @property
    def tries_alone(self) -> bool:
        """Whether the next batch has a fault alone that no search has tried."""
        return self._order.tries_alone

    def batch(self, number: int, most: int | None = None) -> None:
        """Draw and play scenarios with the next faults, at most so many. Raises OverError.

        A new failure ends the batch; it is shrunk and reported.
        """
        self._finding = None
        before = self._order.taken
        self._planned = self._order.next(number)
        scenarios = self._planned.scenarios
        try:
            self._draw(number, scenarios if most is None else min(scenarios, most))
            self._shrink()
        finally:
            self._tell()
            ordered = self._order.taken > before
            self.heard.batch(ordered=ordered, alone={} if ordered else self._learned())

    def give_up(self) -> bool:
        """Report the failure that is being shrunk, as it is now. Returns whether there is one."""
        self._tell()
        return self._finding is not None

    def _learned(self) -> dict[str, list[Alone]]:
        learned, faults = self._order.learned(), self._planned.faults
        return {fault: learned[fault] for fault in faults if fault in learned and len(faults) == 1}

    def _draw(self, number: int, most: int) -> None:
        """Play the simplest scenario, or let Hypothesis draw several and shrink the choices of one that fails."""
        if most > 1:
            self._draw_several(number, most)
            return
        try:
            with suppress(FailureShownError):  # no choice of the simplest one can be shrunk
                self._scenario(*self._drawn_by(SimplestChoices(), number))
        except IllegalError:
            self._draw_several(number, most)

    def _drawn_by(self, choices: Choices, number: int) -> tuple[list[SearchCell], Drawn]:
        cells, document = self.scenarios.draw(choices, NAME, self._planned)
        return cells, {**document, "seed": f"{self.seed} {number}"}

    def _draw_several(self, number: int, most: int) -> None:
        import hypothesis
        from hypothesis import strategies as st

        if self.home is not None:
            hypothesis.configuration.set_hypothesis_home_dir(self.home)
        phases = (hypothesis.Phase.generate, hypothesis.Phase.target, hypothesis.Phase.shrink)

        @st.composite
        def drawn_scenario(draw: Callable[[Any], Any]) -> tuple[list[SearchCell], Drawn]:
            return self._drawn_by(HypothesisChoices(draw), number)

        @hypothesis.settings(
            max_examples=most,
            deadline=None,
            database=None,
            phases=phases,
            report_multiple_bugs=False,
            suppress_health_check=list(hypothesis.HealthCheck),
            verbosity=hypothesis.Verbosity.quiet,
        )
        @hypothesis.seed(f"{self.seed} {number}")
        @hypothesis.given(drawn_scenario())
        def scenarios(drawn: tuple[list[SearchCell], Drawn]) -> None:
            try:
                played = self._scenario(*drawn)
            except IllegalError:
                hypothesis.reject()
            if played is not None and self.objective is not None:
                hypothesis.target(float(getattr(played.measures, self.objective)), label=self.objective)

        try:
            scenarios()
        except (FailureShownError, hypothesis.errors.Flaky):
            if self._finding is None:
                raise

    def _scenario(self, cells: list[SearchCell], document: Drawn) -> Played | None:
        """Play it; None: it was played before. Raises FailureShownError and IllegalError."""
        if self._finding is not None:
            if self._shows(self._finding, document):
                raise FailureShownError
            return None
        if (words := str({**document, "seed": None})) in self._drawn:
            return None
        self._drawn.add(words)
        played = self.play(document)
        if played is None:
            raise IllegalError
        self.heard.played(cells, played)
        self._order.saw(self._planned.faults, played)
        if played.failed and not self._is_known(played):
            self._finding = Finding(*played.failure, played.document, played.says, Path())
            raise FailureShownError
        return played

    def _is_known(self, played: Played) -> bool:
        known = next((finding for finding in self.known if finding.explains(played)), None)
        if known is not None:
            known.again += 1
        return known is not None

    def _shows(self, finding: Finding, document: Drawn) -> bool:
        """Whether a scenario fails as the finding does; then it is the finding's scenario."""
        return shows(finding, self.play(document))

    def _tell(self) -> None:
        if self._finding is not None:
            self.known.append(self._finding)
            self.heard.found(self._finding)

    def _shrink(self) -> None:
        finding = self._finding
        if finding is None:
            return
        for trials in (shrink(finding), measure(finding)):
            self._play_trials(finding, trials)

    def _play_trials(self, finding: Finding, trials: Trials) -> None:
        with suppress(StopIteration):
            candidate = next(trials)
            while True:
                candidate = trials.send(self._shows(finding, candidate))
