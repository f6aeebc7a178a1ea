"""Draws a story: what the user and the model say, and one to four faults in it. Every choice can be shrunk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wedgehog.harness.scenario.model import AGENT
from wedgehog.harness.search.cells import Cell
from wedgehog.harness.search.draw import Choices
from wedgehog.harness.search.drawn_scenario import Drawer, Palette
from wedgehog.harness.search.scripts import Drawn

FAULTS = (2, 3, 4)
"""How many faults a story has. With more of them two that break an agent together meet sooner; shrinking removes the
others."""
OTHER_MOMENTS = ("tool", "session", "after_s")
"""Keys of places that are not attempts of a call."""


@dataclass
class Stories:
    """Draws from these cells. A fault is chosen first and then its place, so that no fault is drawn more often."""

    cells: Sequence[Cell]
    palette: Palette
    sizes: Sequence[int] = FAULTS
    """How many faults a story may have."""
    _by_fault: dict[str, list[Cell]] = field(init=False)

    def __post_init__(self) -> None:
        """Sort the cells by fault."""
        self._by_fault = {}
        for cell in self.cells:
            self._by_fault.setdefault(cell.fault, []).append(cell)

    def draw(self, choices: Choices, name: str) -> tuple[list[Cell], Drawn]:
        """The cells of a story, and its scenario."""
        chosen = [self._cell(choices) for _ in range(choices.choose(self.sizes))]
        document = Drawer(choices, self.palette).scenario(chosen, name)
        return chosen, {**document, "faults": one_attempt_each(document["faults"])}

    def _cell(self, choices: Choices) -> Cell:
        return choices.choose(self._by_fault[choices.choose(list(self._by_fault))])


def one_attempt_each(faults: Sequence[Mapping[str, Any]]) -> list[Drawn]:
    """The same faults; those on one call fire on its attempts in turn, once each, as only one can fire on a reply.

    >>> one_attempt_each([{"do": "cut"}, {"do": "stall"}])
    [{'do': 'cut'}, {'do': 'stall', 'at': {'attempt': 2}}]
    """
    attempts: dict[tuple[object, ...], list[Drawn]] = {}
    found: list[Drawn] = []
    for line in map(dict, faults):
        at = line.get("at", {})
        if line.get("link") != AGENT and not any(key in at for key in OTHER_MOMENTS):
            earlier = attempts.setdefault((line.get("link"), at.get("turn"), at.get("step")), [])
            if earlier:
                earlier[-1].pop("times", None)
                line["at"] = {**at, "attempt": len(earlier) + 1}
            earlier.append(line)
        if line not in found:
            found.append(line)
    return found
