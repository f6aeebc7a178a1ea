"""What a search tries next: the cell that covers most of what is left in the least time."""

from collections.abc import Sequence
from dataclasses import replace

from wedgehog.harness.faults.base import fault_named
from wedgehog.harness.scenario.fault_config import AGENT
from wedgehog.harness.search.cells import NO_FAULT, SearchCell
from wedgehog.harness.search.scripts import SCRIPTS, ScriptKind

FIRST = 10
"""A fault that was not tried yet counts as so many new pairs; conversations without a fault come before all others."""


class Coverage:
    """The pairs that were covered, and the cell that covers most of what is left in the least time."""

    def __init__(
        self, wanted: Sequence[SearchCell], tried: Sequence[SearchCell] = (), scripts: Sequence[ScriptKind] = ()
    ) -> None:
        """`tried`: what an earlier search covered; `scripts`: what the model may say in the turn of a fault."""
        self.left = dict.fromkeys(wanted)
        """In order; a dict finds one of a thousand cells at once."""
        self.tried = list(tried)
        self.broken: set[str] = set()
        """Faults that violate an invariant: another scenario with one of them rarely shows anything new."""
        self._scripts = scripts
        self._pairs = {pair for cell in tried for pair in cell.pairs}
        self._seconds: dict[str, float] = {NO_FAULT: 0.0}
        self._values = {value for cell in tried for value in (cell.fault, cell.place)}
        self._all = False

    def next(self, within_s: float) -> SearchCell | None:
        """Take the best cell that is expected to end within this time, with a script; None if there is none."""
        fitting = [(cell, takes_s) for cell in self.left if (takes_s := self.expected_s(cell)) <= within_s]
        if not fitting:
            return None
        best, _ = max(fitting, key=self._worth)
        del self.left[best]
        best = best if best.script else replace(best, script=self._script(best))
        self._pairs.update(best.pairs)
        self._values.update((best.fault, best.place))
        self.tried.append(best)
        return best

    @property
    def all_pairs(self) -> bool:
        """Whether no cell that is left covers a new pair."""
        self._all = self._all or all(cell.pairs <= self._pairs for cell in self.left)
        return self._all

    def saw(self, cell: SearchCell) -> bool:
        """A cell was tried in no order of ours; whether it was new."""
        if cell not in self.left:
            return False
        del self.left[cell]
        self.tried.append(cell)
        return True

    def put_back(self, cell: SearchCell) -> None:
        """It was not tried after all."""
        self.tried.remove(cell)
        self.left[cell.bare] = None

    def took(self, cell: SearchCell, seconds: float) -> None:
        """Learn how long a fault takes."""
        own_s = SCRIPTS[cell.script] if cell.script else 0.0
        self._seconds[cell.fault] = max(self._seconds.get(cell.fault, 0.0), seconds - own_s)

    def expected_s(self, cell: SearchCell) -> float:
        """How long it takes, as far as is known."""
        own_s = SCRIPTS[cell.script] if cell.script else 0.0
        return self._seconds.get(cell.fault, 1.0) + own_s

    def _worth(self, fitting: tuple[SearchCell, float]) -> float:
        """What is new in a cell for its time: a value that no scenario had yet counts more than a pair."""
        cell, takes_s = fitting
        if cell.fault == NO_FAULT:
            return FIRST**4 / (1.0 + takes_s)
        unseen: float = cell.place not in self._values
        if cell.fault not in self._values:
            unseen += 1 + self._usual(cell)
        worth = (len(cell.pairs - self._pairs) + FIRST * unseen + 0.01) / (1.0 + takes_s)
        return worth / 4 if cell.fault in self.broken else worth

    def _usual(self, cell: SearchCell) -> float:
        """More than nothing for a usual fault."""
        known = fault_named(cell.fault)
        if known is None or not known.usual:
            return 0.0
        often = cell.times == "always" and cell.link != AGENT
        return known.usual + 0.5 * often + 0.5 * (cell.place == known.usual_at)

    def _fresh(self, cell: SearchCell) -> int:
        return len(cell.pairs - self._pairs)

    def _script(self, cell: SearchCell) -> ScriptKind | None:
        """The kind of script with the most new pairs; the quickest of these."""
        options = [replace(cell, script=script) for script in self._scripts]
        return max(options, key=lambda it: self._fresh(it) / (4.0 + self.expected_s(it))).script if options else None
