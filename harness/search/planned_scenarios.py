"""Draws a scenario: what the user and the model say, and where the given faults fire in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wedgehog.harness.scenario.fault_config import AGENT
from wedgehog.harness.scenario.trigger import Phase
from wedgehog.harness.search.capabilities import Capabilities
from wedgehog.harness.search.cells import SearchCell, kinds_of
from wedgehog.harness.search.draw import Choices
from wedgehog.harness.search.drawn_scenario import Drawer
from wedgehog.harness.search.fault_order import Planned, Where, usual
from wedgehog.harness.search.scripts import Drawn

OTHER_MOMENTS = ("tool", "session", "after_s")
"""Keys of places that are not attempts of a call."""

WISHES: Mapping[Where, Sequence[Mapping[str, object]]] = {
    "anywhere": (),
    "one call": ({"step": "first call"}, {"step": "first call"}),
    "one call after a tool": ({"step": "call after a tool"}, {"step": "call after a tool"}),
    "next call": ({"step": "first call"}, {"step": "call after a tool"}),
    "next turn": ({"step": "first call", "times": "always"}, {"step": "call of a later turn"}),
}
"""Values of the cells of a pair. Most turns fail under a fault on each attempt; the next turn begins after that."""
PHASES: Sequence[Phase] = ("headers", "middle", "terminal")
"""Where a usual fault can do different things: its agent has nothing of the reply, a part, or nearly all of it."""


@dataclass
class PlannedScenarios:
    """Draws from these cells."""

    cells: Sequence[SearchCell]
    capabilities: Capabilities
    _by_fault: dict[str, list[SearchCell]] = field(init=False)
    """By fault; conversations without one are apart, by their kind of script."""

    def __post_init__(self) -> None:
        self._by_fault = {}
        for cell in self.cells:
            self._by_fault.setdefault(cell.key, []).append(cell)
        for fault, cells in list(self._by_fault.items()):
            self._by_fault |= dict(_kinds(fault, cells))

    @property
    def faults(self) -> list[str]:
        """Every fault, and every kind of conversation without one; then the faults' own kinds."""
        return list(self._by_fault)

    def draw(self, choices: Choices, name: str, planned: Planned) -> tuple[list[SearchCell], Drawn]:
        """The cells of a scenario with these faults, and its scenario."""
        wishes = WISHES[planned.where] or [{}] * len(planned.faults)
        chosen = [choices.choose(self._fitting(*it)) for it in zip(planned.faults, wishes, strict=True)]
        document = Drawer(choices, self.capabilities).scenario(chosen, name)
        lines = one_attempt_each(document["faults"])
        return [replace(cell, value=None) for cell in chosen], {
            **document,
            "faults": [_later(choices, line, lines) for line in lines],
        }

    def _fitting(self, fault: str, wish: Mapping[str, object]) -> Sequence[SearchCell]:
        """The fault's cells that are as wished; each wish that none of them fulfils is dropped."""
        found: Sequence[SearchCell] = self._by_fault[fault]
        for name, value in wish.items():
            found = [cell for cell in found if getattr(cell, name) == value] or found
        return found


def _kinds(fault: str, cells: Sequence[SearchCell]) -> Iterator[tuple[str, list[SearchCell]]]:
    """The same fault with each other kind of its main parameter; a usual one at each place of a reply too."""
    for value in kinds_of(cells[0].fault)[1:]:
        yield f"{fault} {value}", [replace(cell, value=value) for cell in cells]
    for place in PHASES if usual(fault) else ():
        if at_place := [cell for cell in cells if cell.place == place]:
            yield f"{fault} at {place}", at_place


def _later(choices: Choices, line: Drawn, lines: Sequence[Drawn]) -> Drawn:
    """What is done to the agent at a call may be done at the attempt after the other faults of that call."""
    at = line.get("at", {})
    if line.get("link") != AGENT or any(key in at for key in OTHER_MOMENTS) or not choices.choose((True, False)):
        return line
    others = sum(other.get("link") != AGENT and _call(other) == _call(line) for other in lines)
    return {**line, "at": {**at, "attempt": others + 1}} if others else line


def _call(line: Mapping[str, Any]) -> tuple[object, ...]:
    at = line.get("at", {})
    return at.get("turn"), at.get("step"), at.get("on")


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
            earlier = attempts.setdefault((line.get("link"), *_call(line)), [])
            if earlier:
                earlier[-1].pop("times", None)
                line["at"] = {**at, "attempt": len(earlier) + 1}
            earlier.append(line)
        if line not in found:
            found.append(line)
    return found
