"""What a user does."""

from dataclasses import dataclass

from wedgehog.harness.faults.base import Fault, fault


@fault("abort", family="actor")
@dataclass(frozen=True, slots=True)
class Abort(Fault):
    """The user stops the turn, as the agent's spec says a user does."""
