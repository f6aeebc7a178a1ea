"""The breaking point: the number in a scenario's faults at which the verdict turns, found by halving."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wedgehog.harness.faults.base import parameters, registered
from wedgehog.harness.search.drawn_scenario import fault_of
from wedgehog.harness.search.scripts import Drawn

NEAR = 0.1
"""Halving ends when the two numbers differ by less than this share of the greater one."""
MOST_S = 60.0
"""A fault that lasts for ever counts as one of this many seconds."""
ALWAYS = 16
"""A fault on every attempt counts as one on this many."""


@dataclass
class Threshold:
    """One number of one fault, between a value that passes and one that fails."""

    document: Drawn
    where: tuple[str | int, ...]
    label: str
    whole: bool
    """Whether it is a count."""
    fails: float
    endless: bool = False
    """Whether the finding's own value has no end: then `fails` is tried first."""
    passes: float = 0.0
    _asked: float = 0.0
    _told: int = 0

    def next(self) -> Drawn | None:
        """The scenario to try next; None when the point is known."""
        if self.endless and not self._told:
            return self._asking(self.fails)
        middle = (self.passes + self.fails) / 2
        middle = float(int(middle)) if self.whole else round(middle, 3)
        near = self.fails - self.passes <= (1 if self.whole else self.fails * NEAR)
        return None if near or middle in (self.passes, self.fails) else self._asking(middle)

    def _asking(self, value: float) -> Drawn:
        self._asked = value
        found = copy.deepcopy(self.document)
        inner: Any = found
        for key in self.where[:-1]:
            inner = inner[key]
        inner[self.where[-1]] = int(value) if self.whole else value
        return found

    def tell(self, *, failed: bool) -> None:
        """The verdict of the scenario that was tried."""
        self._told += 1
        if failed:
            self.fails = self._asked
        else:
            self.passes = self._asked

    @property
    def says(self) -> str:
        """`stall.for_s: passes at 1.2, fails at 1.3`; empty if nothing was tried."""
        if not self._told:
            return ""
        if self.passes == self.fails:
            return f"{self.label}: passes at {self.passes:g}, and fails without an end"
        if not self.passes:
            return f"{self.label}: fails down to {self.fails:g}"
        return f"{self.label}: passes at {self.passes:g}, fails at {self.fails:g}"


def thresholds(document: Drawn) -> Iterator[Threshold]:
    """The numbers of a scenario's faults: seconds, repetitions and bytes."""
    for index, line in enumerate(document["faults"]):
        do, name = line["do"], fault_of(line)
        given = do[name] if isinstance(do, dict) and isinstance(do[name], dict) else {}
        fault = registered()[name]
        for key, parameter in parameters(fault).items():
            if key in fault.without_threshold:
                continue
            value = given.get(key, None if parameter.is_needed else parameter.default)
            if parameter.seconds and (value == "forever" or (isinstance(value, int | float) and value > 0)):
                most = MOST_S if value == "forever" else float(value)
                written = {**line, "do": {name: {**given, key: value}}}
                whole = {**document, "faults": [*document["faults"][:index], written, *document["faults"][index + 1 :]]}
                yield Threshold(
                    whole, ("faults", index, "do", name, key), f"{name}.{key}", False, most, value == "forever"
                )
        if line.get("times", 1) != 1:
            most = ALWAYS if line["times"] == "always" else int(line["times"])
            yield Threshold(
                document, ("faults", index, "times"), f"times of {name}", True, most, line["times"] == "always"
            )
        if line.get("at", {}).get("byte", 0) > 0:
            yield Threshold(document, ("faults", index, "at", "byte"), f"byte of {name}", True, line["at"]["byte"])
