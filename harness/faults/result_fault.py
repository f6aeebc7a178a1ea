"""Base of tool result faults: they change a result before the tool host sends it, or refuse the call."""

from collections.abc import Mapping
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
    """It is never sent; the server goes on."""
    copies: int = 1
    """How often the response is written."""
    broken: bool = False
    """The response is cut in its middle and framed as if it were whole."""
    bytes: int = 0
    """The text is padded to this many bytes; 0: no padding."""
    empty: bool = False
    """It has no content at all."""
    by_protocol: bool = False
    """The response is a JSON-RPC error with this text, and no result."""
    image: bool = False
    """It has a small picture beside its text."""


@dataclass(frozen=True, slots=True)
class CallRefusal:
    """The HTTP response with which a tool server refuses a request; no tool runs.

    `{origin}` in a header stands for the server's own address, which only the server knows.
    """

    status: int
    headers: Mapping[str, str]
    body: str


class ResultFault(Fault):
    """A pure function from a tool's result to another one."""

    __slots__ = ()
    aim = Aim(("tool:mcp",), "is something our tool host does")
    strikes_at_once: ClassVar[bool] = False
    """It fires as soon as the call has come; else when the faulty response is written."""
    proof: ClassVar[str] = "the tool host wrote it so"
    refuses_requests: ClassVar[bool] = False
    """Whether it can also be aimed at every request, by `phase: connect`."""

    def on_result(self, result: Result) -> Result:
        """The faulty result."""
        raise NotImplementedError

    def on_call(self) -> CallRefusal | None:
        """The response with which the call is refused before it begins; None: the tool runs."""
        return None

    def on_request(self, *, authorized: bool) -> CallRefusal | None:
        """The response with which any request to the server is refused, `initialize` too; None: it has an answer.

        `authorized`: the request carries an `Authorization` header.
        """
        return None
