"""No fault of a plan: the user says something while the agent is still at work on what was said before."""

from dataclasses import dataclass

from wedgehog.harness.faults.process_fault import ProcessFault


@dataclass(frozen=True, slots=True)
class Speak(ProcessFault):
    """The message of `turn` is handed over. It has no name in a scenario: a turn's `during` means it."""

    turn: int


Speak.name, Speak.family = "message", "actor"
