"""No fault of a plan: the user says something while the agent is still at work on what was said before."""

from dataclasses import dataclass

from wedgehog.harness.faults.process_fault import Hands, ProcessFault


@dataclass(frozen=True, slots=True)
class Speak(ProcessFault):
    """The message of `turn` is handed over. It has no name in a scenario: a turn's `during` means it."""

    turn: int

    async def act(self, hands: Hands) -> None:
        """Give the message."""
        await hands.speak(self.turn)


Speak.name, Speak.family = "message", "actor"
