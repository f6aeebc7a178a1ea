"""What a fault of a tool's result works with: the result as the tool host is about to give it."""

from dataclasses import dataclass
from typing import ClassVar

from wedgehog.harness.faults.base import Aim, Fault


@dataclass(frozen=True, slots=True)
class Result:
    """One answer of our tool host to one call. Seconds are real ones."""

    text: str
    is_error: bool = False
    delay_s: float = 0.0
    lost: bool = False
    """It is never sent, while the server lives on."""
    copies: int = 1
    """How often the response is written."""
    broken: bool = False
    """The response is cut in its middle and framed as if it were whole."""
    bytes: int = 0
    """The text is padded to so many bytes; 0: it is as long as its words."""


class ResultFault(Fault):
    """What becomes of a tool's result: a pure function from the result to another one."""

    __slots__ = ()
    # Whether it has struck as soon as the call is there, or only once the harmed response has been written.
    strikes_at_once: ClassVar[bool] = False
    proof: ClassVar[str] = "the tool host wrote it so"

    @property
    def aim(self) -> Aim:
        """On our tool host."""
        return Aim(("tool:mcp",), "is something our tool host does")

    def on_result(self, result: Result) -> Result:
        """The harmed result."""
        raise NotImplementedError
