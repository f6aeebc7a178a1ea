"""What a user does."""

from dataclasses import dataclass

from wedgehog.harness.faults.base import Fault, fault


@fault("give_up", family="actor")
@dataclass(frozen=True, slots=True)
class GiveUp(Fault):
    """The front end gives up: the client connection is closed, and the agent's service is left alone."""
