"""One difference between two sides, and what kind it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

DifferenceKind = Literal["worse", "undecided", "maybe", "known", "new", "gone", "better"]
"""`maybe`: the numbers differ, and the repeats are too few to decide, or it waited for a processor.
`known`: it fails, which the spec excuses; before, it passed, or failed without that excuse."""
KINDS: tuple[DifferenceKind, ...] = ("worse", "undecided", "maybe", "known", "new", "gone", "better")
KIND_SIGNS: Mapping[DifferenceKind, str] = {
    "worse": "✗",
    "undecided": "?",
    "maybe": "~",
    "known": "~",
    "new": "+",
    "gone": "-",
    "better": "✓",
}
KIND_WORDS: Mapping[DifferenceKind, str] = {kind: kind for kind in KINDS} | {"maybe": "not sure"}


@dataclass(frozen=True)
class Difference:
    """One difference of one scenario and agent, in a sentence."""

    scenario: str
    agent: str
    kind: DifferenceKind
    says: str
    weight: float = 0.0
    """Larger is worse; orders the differences of one kind."""

    @property
    def where(self) -> str:
        """`scenario, agent`; what is of no agent has only its place."""
        return f"{self.scenario}, {self.agent}" if self.agent else self.scenario
