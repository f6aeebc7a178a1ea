"""What a user does."""

from dataclasses import dataclass

from wedgehog.harness.faults.base import Need, fault
from wedgehog.harness.faults.process_fault import ActorFault, Hands


@fault("abort", family="actor")
@dataclass(frozen=True, slots=True)
class Abort(ActorFault):
    """The user stops the turn, as the agent's spec says a user does."""

    @property
    def needs(self) -> tuple[Need, ...]:
        """A way to stop a turn."""
        return ("abort",)

    async def act(self, hands: Hands) -> None:
        """Stop it."""
        await hands.demand("abort")
