"""What people do."""

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.process_fault import ActorFault, Hands


@fault("abort", family="actor")
class Abort(ActorFault):
    """The user stops the turn, as the agent's spec says a user does."""

    needs = ("abort",)

    async def act(self, hands: Hands) -> None:
        """Stop it."""
        await hands.demand("abort")


@fault("give_up", family="actor")
class GiveUp(ActorFault):
    """The front end gives up: the client connection is closed, and the agent's service is left alone."""

    links = ("channel",)
    says = "is something the front end does"
    needs = ("front_end",)

    async def act(self, hands: Hands) -> None:
        """Close the connection."""
        await hands.demand("give_up")
