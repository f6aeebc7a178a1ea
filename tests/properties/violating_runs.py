"""Runs with one violation: valid turns around it; one invariant must fail and no other may."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.properties.valid_runs import BoundValue, Draw, Violation, begin, recovery, some_turns
from tests.properties.violating_files import FILES
from tests.properties.violating_sessions import SESSIONS
from tests.properties.violating_strict import STRICT
from tests.properties.violating_tools import TOOLS
from tests.properties.violating_turns import CALLS_AND_TURNS
from wedgehog.harness.record.history import History

BREAKS: Mapping[str, tuple[Violation, ...]] = {**CALLS_AND_TURNS, **TOOLS, **FILES, **STRICT, **SESSIONS}
"""The ways to violate each invariant."""


@dataclass(frozen=True, slots=True)
class ViolatingRun:
    """A history, the invariant that it violates, and the bounds under which it does."""

    history: History
    invariant: str
    parameters: Mapping[str, BoundValue] = field(default_factory=dict)


@st.composite
def violating_runs(draw: Draw, invariant: str) -> ViolatingRun:
    """Runs that violate `invariant` and nothing else."""
    play = begin(draw, keeps=invariant == "memory_loss_told")
    some_turns(play, least=0)
    violate: Violation = draw(st.sampled_from(BREAKS[invariant]))
    violate(play)
    if invariant != "session_recovers" and not play.recovered:
        recovery(play)
    return ViolatingRun(play.tell.seal(), invariant, play.bounds)
