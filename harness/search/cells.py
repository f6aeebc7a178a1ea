"""What the search covers first: every fault at every place that fits it. The next cell covers most soonest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Literal

from pydantic import ValidationError

from wedgehog.harness.faults.base import Fault, parameters, registered
from wedgehog.harness.scenario.model import FaultConfig
from wedgehog.harness.search.draw import SeededChoices
from wedgehog.harness.search.values import value_for

CallKind = Literal["first call", "call after a tool", "call of a later turn"]
STEPS: Mapping[CallKind, Mapping[str, int]] = {
    "first call": {},
    "call after a tool": {"step": 2},
    "call of a later turn": {"turn": 2},
}
"""The calls at which a fault fires, with their positions in a drawn scenario."""
PLACES: Mapping[str, Mapping[str, Any]] = {
    "call": {},
    **{it: {"phase": it} for it in ("connect", "request", "headers", "body", "middle", "terminal", "linger")},
    "tool started": {"tool": 1},
    "tool done": {"tool": 1, "when": "done"},
    "session written": {"session": "written"},
    "time": {"after_s": 0.2},
}
"""Triggers, by the name that a report shows."""
TIMES: tuple[Literal["always"] | int, ...] = (1, "always")


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault on one link at one place of one call, once or on every attempt."""

    fault: str
    link: str
    place: str
    step: CallKind
    times: Literal["always"] | int

    def line(self, do: object) -> dict[str, Any]:
        """Its line in a scenario's `faults`."""
        at = {**STEPS[self.step], **PLACES[self.place]}
        line: dict[str, Any] = {"do": do}
        line |= {"at": at} if at else {}
        line |= {"link": self.link} if self.link != "llm" else {}
        return line | ({"times": self.times} if self.times != 1 else {})

    @property
    def pairs(self) -> Iterator[tuple[object, object]]:
        """What it covers: each two of its values."""
        return combinations((("fault", self.fault), ("place", self.place), ("step", self.step), self.times), 2)

    def __str__(self) -> str:
        """`cut at middle, call after a tool, always`."""
        often = "" if self.times == 1 else f", {self.times}" if self.times == "always" else f", {self.times} times"
        return f"{self.fault} at {self.place}, {self.step}{often}"


def cells(links: Sequence[str]) -> list[Cell]:
    """Every cell that a scenario may contain, on these links."""
    found = []
    for name, cls in registered().items():
        do = drawn_fault(SeededChoices(name), cls)
        for link, place, step, times in product(_links(cls, do, links), PLACES, STEPS, TIMES):
            cell = Cell(name, link, place, step, times)
            if _legal(cell, do):
                found.append(cell)
    return found


def drawn_fault(draw: Any, cls: type[Fault]) -> object:
    """A fault's `do:` with its needed parameters drawn; the main one is drawn also where it has a default."""
    known = parameters(cls)
    if not known:
        return cls.name
    main = next(iter(known))
    needed = {name: it for name, it in known.items() if name == main or it.is_needed}
    return {cls.name: {name: value_for(draw, it.schema) for name, it in needed.items()}}


def _links(cls: type[Fault], do: object, links: Sequence[str]) -> Sequence[str]:
    aim = FaultConfig.model_construct(do=do).fault.aim
    wanted = aim.links if aim.links is not None else ("llm", *(link for link in links if link.startswith("tool:")))
    return [link for link in wanted if link in links]


def _legal(cell: Cell, do: object) -> bool:
    try:
        FaultConfig.model_validate(cell.line(do))
    except ValidationError:
        return False
    return True


class Coverage:
    """The pairs that were covered, and the cell that covers most of what is left in the least time."""

    def __init__(self, wanted: Sequence[Cell], tried: Sequence[Cell] = ()) -> None:
        """`tried`: what an earlier search covered."""
        self.left = list(wanted)
        self.tried = list(tried)
        self._pairs = {pair for cell in tried for pair in cell.pairs}
        self._seconds: dict[str, float] = {}

    def next(self, within_s: float) -> Cell | None:
        """Take the best cell that is expected to end within this time; None if there is none."""
        fitting = [cell for cell in self.left if self.expected_s(cell.fault) <= within_s]
        if not fitting:
            return None
        best = max(fitting, key=self._worth)
        self.left.remove(best)
        self._pairs.update(best.pairs)
        self.tried.append(best)
        return best

    @property
    def all_pairs(self) -> bool:
        """Whether no cell that is left covers a new pair."""
        return not any(pair not in self._pairs for cell in self.left for pair in cell.pairs)

    def saw(self, cell: Cell) -> bool:
        """A cell was tried in no order of ours; whether it was new."""
        if cell not in self.left:
            return False
        self.left.remove(cell)
        self.tried.append(cell)
        return True

    def put_back(self, cell: Cell) -> None:
        """It was not tried after all."""
        self.tried.remove(cell)
        self.left.append(cell)

    def took(self, cell: Cell, seconds: float) -> None:
        """Learn how long a fault takes."""
        self._seconds[cell.fault] = max(self._seconds.get(cell.fault, 0.0), seconds)

    def expected_s(self, fault: str) -> float:
        """How long its cells take, as far as is known."""
        return self._seconds.get(fault, 1.0)

    def _worth(self, cell: Cell) -> float:
        fresh = sum(pair not in self._pairs for pair in cell.pairs)
        return (fresh + 0.01) / (1.0 + self.expected_s(cell.fault))
