"""Which faults meet in a scenario of a search in virtual time: each alone first, then the pairs that can tell most.

Conversations without a fault come first, then the most usual faults, then pairs of these, then all others.

The effect of a fault alone shows which second fault is worth a scenario, and where. If the agent asks again, the second
fault can meet that attempt; if it recovers, the next call. A fault that ends its turn can matter to the next turn. A
fault that changes nothing alone rarely matters, and one that breaks the agent alone hides the effect of the other one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, Literal, NamedTuple

from wedgehog.harness.faults.base import fault_named
from wedgehog.harness.search.cells import NO_FAULT
from wedgehog.harness.search.draw import SeededChoices
from wedgehog.harness.search.player import Behaviour, Played

Where = Literal["anywhere", "one call", "one call after a tool", "next call", "next turn"]
"""Where the second fault of a pair strikes: the next attempt of the first one's call, the next call, a later turn."""
VARIED_FROM = 2
"""From the second pair of equal kinds on, a pair is also played at drawn places and with drawn values."""
AGAIN = 2
"""How many pairs of equal kinds come before each fault is tried alone again, at other places."""
QUIET, BREAKS = 2, 1000
"""How many ranks later a pair comes for each fault that changes nothing alone, or breaks the agent alone."""
LONG_S = 1.0
"""A turn that takes longer has waited for something."""
PLAIN = f"{NO_FAULT}, plain"
"""The key of a conversation without anything."""
FREQUENT = 5
"""Faults that are at least so usual are combined before the others are tried alone."""
EVERY_FAULT = (0, 1)
"""The share of a process that searches alone: the first of one."""
MANY = (2, 3, 4)
"""How many faults a scenario has once every pair was tried."""


class Planned(NamedTuple):
    """The faults of the next scenarios."""

    faults: tuple[str, ...]
    where: Where = "anywhere"
    scenarios: int = 1
    """The first one is the simplest; others have drawn places and values."""


class Alone(NamedTuple):
    """What the agents did in one scenario with one fault."""

    behaviour: tuple[Behaviour, ...]
    failed: bool
    unclear: bool
    silence: float

    @classmethod
    def read(cls, words: Sequence[Any]) -> "Alone":
        """The same, from JSON."""
        behaviour, failed, unclear, silence = words
        return cls(tuple(_behaviour(*it) for it in behaviour), failed, unclear, silence)


def _behaviour(verdict: str, violated: list[str], outcomes: list[str], calls: list[str], again: bool) -> Behaviour:
    return Behaviour(verdict, tuple(violated), tuple(outcomes), tuple(calls), again)


@dataclass
class FaultOrder:
    """The order of one search; equal seeds and equal agents give equal orders."""

    faults: Sequence[str]
    seed: str
    begin: int = 0
    """How many ordered scenarios earlier searches played, or other processes will play."""
    step: int = 1
    """From one ordered scenario of this process to its next one."""
    taken: int = 0
    """How many ordered scenarios were taken since."""
    alone: Mapping[str, Sequence[Alone]] = field(default_factory=dict)
    """What earlier searches saw of each fault alone; these are not tried alone again first."""
    share: tuple[int, int] = EVERY_FAULT
    """Which of how many shares of the faults this process tries alone first."""
    _alone: dict[str, list[Alone]] = field(init=False)
    _first: list[str] = field(init=False)
    _others: list[str] = field(init=False)
    """Faults that are tried alone after pairs of the most usual ones."""

    def __post_init__(self) -> None:
        self._alone = {fault: list(seen) for fault, seen in self.alone.items()}
        mine, shares = self.share
        untried = [fault for fault in list(self.faults)[mine::shares] if fault not in self.alone]
        usual_ones = sorted(filter(_is_frequent, untried), key=usual, reverse=True)
        self._first = [*filter(_is_none, untried), *usual_ones]
        self._others = [fault for fault in untried if fault not in self._first]

    @property
    def tries_alone(self) -> bool:
        """Whether a fault is left that is tried alone first."""
        return bool(self._first or self._others)

    def next(self, number: int) -> Planned:
        """What the next scenarios have."""
        if self._first:
            return Planned((self._first.pop(0),))
        if (planned := self._at_its_turn(self._usual_pairs)) is not None:
            return planned
        if self._others:
            return Planned((self._others.pop(0),))
        if (planned := self._at_its_turn(self._pairs)) is not None:
            return planned
        draw = SeededChoices(f"{self.seed} {number}")
        left = [fault for fault in self.faults if self._kind(fault) is not None] or list(self.faults)
        return Planned(tuple(draw.choose(left) for _ in range(draw.choose(MANY))), scenarios=2)

    def saw(self, faults: Sequence[str], played: Played) -> None:
        """Learn from a scenario with one fault."""
        if len(faults) == 1:
            one = Alone(played.behaviour, played.failed, played.unclear, played.measures.silence)
            self._alone.setdefault(faults[0], []).append(one)

    def learned(self) -> dict[str, list[Alone]]:
        """What was seen of each fault alone, without what was known from the start."""
        return {fault: seen for fault, seen in self._alone.items() if fault not in self.alone}

    def _at_its_turn(self, pairs: Sequence[Planned]) -> Planned | None:
        """The pair whose turn it is in this process; None: it is not among these."""
        turn = self.begin + self.taken * self.step
        if turn >= len(pairs):
            return None
        self.taken += 1
        return pairs[turn]

    @cached_property
    def _usual_pairs(self) -> Sequence[Planned]:
        """One pair of each two kinds of behaviour; none while processes share the faults."""
        if self.share != EVERY_FAULT:
            return []
        return [pair for rank, pair in self._ranked(list(filter(_is_frequent, self.faults))) if rank <= 1]

    @cached_property
    def _pairs(self) -> Sequence[Planned]:
        """Every pair at every place that makes sense: usual faults first, and one of each two kinds of behaviour."""
        usual_ones = set(self._usual_pairs)
        return [*self._usual_pairs, *(pair for _, pair in self._ranked(self.faults) if pair not in usual_ones)]

    def _ranked(self, faults: Sequence[str]) -> list[tuple[int, Planned]]:
        """The pairs of these faults, the best rank first, and there the pairs of one turn."""
        known = [fault for fault in faults if self._decided(fault) is not None]
        shuffled = SeededChoices(f"{self.seed} pairs").shuffled(list(product(known, known)))
        seen: dict[object, int] = {}
        ranked = [(AGAIN, Planned((fault,), scenarios=3)) for fault in faults]
        for pair in sorted(shuffled, key=lambda pair: -sum(map(usual, pair))):
            for where, later in self._places(*pair):
                alike = (where, self._as_first(pair[0], where), self._as_second(pair[1]))
                rank = seen[alike] = seen.get(alike, 0) + 1
                ranked.append((rank + later + self._later(pair), Planned(pair, where, 1 if rank < VARIED_FROM else 2)))
        return sorted(ranked, key=lambda it: (it[0], it[1].where == "next turn"))

    def _places(self, first: str, second: str) -> Iterator[tuple[Where, int]]:
        """Where the second one can meet what the first one does, and how many ranks later that is tried.

        A call after a tool comes first: the agent has more to lose there.
        """
        if _is_none(second):
            return
        did = self._did(first)
        if _is_none(first) or did.asked_again:
            yield from (("one call after a tool", 0), ("one call", 1))
        if did.outcomes[:1] == ("answered",):
            yield "next call", 0
        if not _is_none(first):
            yield "next turn", 0

    def _as_first(self, fault: str, where: Where) -> object:
        """What counts of the first fault: all for another attempt, less for a next call, its end for a next turn."""
        did = self._did(fault)
        if where == "next turn":
            return did.outcomes[:1], did.asked_again
        if where == "next call":
            return did.calls[:1] and did.calls[0].partition(" ")[0], did.asked_again
        return self._kind(fault)

    def _as_second(self, fault: str) -> object:
        """What counts of the second fault: only that the turn ends with an error, if it ends at once."""
        did = self._did(fault)
        return did.asked_again if did.outcomes[:1] == ("surfaced",) and not did.asked_again else self._kind(fault)

    def _later(self, pair: Sequence[str]) -> int:
        breaks = sum(any(played.failed for played in self._alone[fault]) for fault in pair)
        return BREAKS * breaks + QUIET * sum(self._kind(fault) == self._kind(PLAIN) for fault in pair)

    def _kind(self, fault: str) -> object:
        """What it does alone, in the simplest scenario that decided something; None if none did."""
        played = self._decided(fault)
        return (played.behaviour, played.silence > LONG_S) if played is not None else None

    def _did(self, fault: str) -> Behaviour:
        """What the first agent did under it alone."""
        played = self._decided(fault)
        return played.behaviour[0] if played is not None else Behaviour("")

    def _decided(self, fault: str) -> Alone | None:
        return next((it for it in self._alone.get(fault, []) if not it.unclear and it.behaviour), None)


def usual(fault: str) -> int:
    """How usual a fault is, whatever is said of its kind behind its name."""
    known = fault_named(fault.partition(" ")[0])
    return 0 if known is None else known.usual


def _is_frequent(fault: str) -> bool:
    """Whether it belongs to what happens to every agent: a stall, a refusal, a lost connection, an abort."""
    return usual(fault) >= FREQUENT


def _is_none(fault: str) -> bool:
    return fault.startswith(NO_FAULT)
