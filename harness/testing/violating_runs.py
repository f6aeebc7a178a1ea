"""Runs with one thing wrong: good turns around a single break, which one invariant must call red and no other may."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st

from wedgehog.harness.record.history import History
from wedgehog.harness.testing.breaking import BoundValue, Violation
from wedgehog.harness.testing.valid_runs import Draw, begin, recovery, some_turns
from wedgehog.harness.testing.violating_calls import CALLS
from wedgehog.harness.testing.violating_tools import TOOLS
from wedgehog.harness.testing.violating_turns import TURNS

BREAKS: Mapping[str, Violation] = {**CALLS, **TOOLS, **TURNS}
"""How each invariant is broken, each way with the bounds that it needs."""


@dataclass(frozen=True, slots=True)
class ViolatingRun:
    """A history, the invariant that it violates, and the bounds under which it does."""

    history: History
    invariant: str
    parameters: Mapping[str, BoundValue] = field(default_factory=dict)


@st.composite
def violating_runs(draw: Draw, invariant: str) -> ViolatingRun:
    """Runs that violate `invariant` and nothing else."""
    play = begin(draw)
    some_turns(play, least=0)
    parameters = BREAKS[invariant](play)
    if invariant != "session_recovers":
        recovery(play)
    return ViolatingRun(play.tell.seal(), invariant, parameters)
