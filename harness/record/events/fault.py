"""Faults: armed, fired, healed."""

from wedgehog.harness.record.events.base import Event


class FaultArmed(Event):
    """A fault of the plan waits for its trigger. `fault` is its index in the plan."""

    fault: int
    name: str
    link: str


class FaultFired(Event):
    """A fault fired, with the proof."""

    fault: int
    name: str
    link: str
    turn: int
    step: int | None
    """None, like `attempt`, if the fault hit the next request and it is unknown which one that was."""
    attempt: int | None
    call: int | None
    proof: str
    bytes: int | None = None
    """Bytes of the reply's body, or of the request, that passed before the fault; None where that has no meaning."""
    slows: bool = False
    """Whether every byte arrives in the end, so that the fault prevents no request."""
    whole_link: bool = False
    """Whether it met every connection of its link."""
    of_memory: bool = False
    """Whether it struck the agent's own database."""
    of_disk: bool = False
    """Whether nothing could be stored from then on."""
    of_form: bool = False
    """Whether the reply was not in the form in which the agent reads answers or tool calls."""
    invents: str = ""
    """The words that the model made up in the place of an answer."""


class FaultUnproven(Event):
    """A fault was armed for this call without proof that it fired; how much the agent received is unknown."""

    fault: int
    name: str
    call: int


class FaultHealed(Event):
    """The fault was removed."""

    fault: int
    name: str
