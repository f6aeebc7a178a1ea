"""A message in the middle of a turn; no name in a scenario means it, only a turn's `during`."""

from dataclasses import dataclass

from wedgehog.harness.faults.process_fault import Hands, ProcessFault


@dataclass(frozen=True, slots=True)
class Speak(ProcessFault):
    """The message of `turn` is sent while the agent still works on an earlier one."""

    turn: int

    async def act(self, hands: Hands) -> None:
        """Send the message."""
        await hands.speak(self.turn)


Speak.name, Speak.family = "message", "actor"
