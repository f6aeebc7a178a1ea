"""What a user does."""

from dataclasses import dataclass

from wedgehog.harness.faults.base import Aim, Need, fault
from wedgehog.harness.faults.process_fault import ActorFault, Hands


@fault("give_up", family="actor")
@dataclass(frozen=True, slots=True)
class GiveUp(ActorFault):
    """The front end gives up: the client connection is closed, and the agent's service is left alone."""

    @property
    def aim(self) -> Aim:
        """Between the user and the agent's service."""
        return Aim(("channel",), "is something the front end does")

    @property
    def needs(self) -> tuple[Need, ...]:
        """A front end."""
        return ("front_end",)

    async def act(self, hands: Hands) -> None:
        """Close the connection."""
        await hands.demand("give_up")
