"""Draws a story: what the user and the model say, and where the given faults fire in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wedgehog.harness.scenario.fault_config import AGENT
from wedgehog.harness.search.cells import Cell
from wedgehog.harness.search.draw import Choices
from wedgehog.harness.search.drawn_scenario import Drawer, Palette
from wedgehog.harness.search.scripts import Drawn

OTHER_MOMENTS = ("tool", "session", "after_s")
"""Keys of places that are not attempts of a call."""


@dataclass
class Stories:
    """Draws from these cells."""

    cells: Sequence[Cell]
    palette: Palette
    _by_fault: dict[str, list[Cell]] = field(init=False)
    """By fault; conversations without one are apart, by their kind of script."""

    def __post_init__(self) -> None:
        self._by_fault = {}
        for cell in self.cells:
            self._by_fault.setdefault(cell.key, []).append(cell)

    @property
    def faults(self) -> list[str]:
        """Every fault that a story may have, and every kind of conversation without one."""
        return list(self._by_fault)

    def draw(self, choices: Choices, name: str, faults: Sequence[str]) -> tuple[list[Cell], Drawn]:
        """The cells of a story with these faults, and its scenario."""
        chosen = [choices.choose(self._by_fault[fault]) for fault in faults]
        document = Drawer(choices, self.palette).scenario(chosen, name)
        lines = one_attempt_each(document["faults"])
        return chosen, {**document, "faults": [_later(choices, line, lines) for line in lines]}


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
