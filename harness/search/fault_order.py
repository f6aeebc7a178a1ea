"""Which faults meet in a story of a search in virtual time: each alone first, then the pairs that can tell most.

What a fault does alone says with which others it is worth a story. One that an agent gets over (it asks again, or hangs
up) can break it together with a second one. One that changes nothing rarely does, and one that breaks it alone hides
what the other one does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

from wedgehog.harness.search.cells import NO_FAULT
from wedgehog.harness.search.draw import SeededChoices
from wedgehog.harness.search.player import Played

TOGETHER = 2
"""So many stories with a pair each time that it is taken."""
AGAIN = 2
"""So many pairs of equal kinds come before each fault is tried alone again, at other places."""
LONG_S = 1.0
"""A turn that takes longer has waited for something."""
PLAIN = f"{NO_FAULT}, plain"
"""The key of a conversation without anything."""
MANY = (2, 3, 4)
"""How many faults a story has once every pair was tried."""


@dataclass
class FaultOrder:
    """The order of one search; equal seeds and equal agents give equal orders."""

    faults: Sequence[str]
    seed: str
    _alone: dict[str, list[Played]] = field(default_factory=dict)
    _pairs: list[tuple[str, ...]] | None = None
    _first: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self._first = list(self.faults)

    def next(self, number: int) -> tuple[tuple[str, ...], int]:
        """The faults of the next stories, and how many stories these are."""
        if self._first:
            return (self._first.pop(0),), 1
        if self._pairs is None:
            self._pairs = self._ordered()
        if self._pairs:
            pair = self._pairs.pop(0)
            return pair, min(len(pair), TOGETHER)
        draw = SeededChoices(f"{self.seed} {number}")
        left = [fault for fault in self.faults if self._kind(fault) is not None] or list(self.faults)
        return tuple(draw.choose(left) for _ in range(draw.choose(MANY))), TOGETHER

    def saw(self, faults: Sequence[str], played: Played) -> None:
        """Learn from a story with one fault."""
        if len(faults) == 1:
            self._alone.setdefault(faults[0], []).append(played)

    def _ordered(self) -> list[tuple[str, ...]]:
        """Every pair in both orders: one of each two kinds of faults first, then what is left, best first."""
        draw = SeededChoices(f"{self.seed} pairs")
        kinds = {fault: kind for fault in self.faults if (kind := self._kind(fault)) is not None}
        every = [pair for pair in product(kinds, kinds) if not all(map(_is_none, pair))]
        seen: dict[tuple[object, ...], int] = {}
        ranked: list[tuple[int, int, int, tuple[str, ...]]] = []
        for fault in self.faults:
            ranked += [(0, 0, AGAIN, (fault,))] * 2
        for pair in draw.shuffled(every):
            of_kinds = tuple(kinds[fault] for fault in pair)
            seen[of_kinds] = seen.get(of_kinds, 0) + 1
            quiet = sum(kind == self._kind(PLAIN) for kind in of_kinds)
            ranked.append((self._breaks(pair), quiet, seen[of_kinds], pair))
        return [pair for *_, pair in sorted(ranked, key=lambda it: it[:3])]

    def _kind(self, fault: str) -> object:
        """What it does alone, in the simplest story that decided something; None if none did."""
        decided = [played for played in self._alone.get(fault, []) if not played.unclear and played.behaviour]
        return (decided[0].behaviour, decided[0].measures.silence > LONG_S) if decided else None

    def _breaks(self, pair: Sequence[str]) -> int:
        return sum(any(played.failed for played in self._alone.get(fault, ())) for fault in pair)


def _is_none(fault: str) -> bool:
    return fault.startswith(NO_FAULT)
