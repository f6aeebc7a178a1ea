"""Base of faults of the chat service: it refuses what an agent asks of it."""

from dataclasses import dataclass

from wedgehog.harness.faults.base import Aim, Fault


@dataclass(frozen=True, slots=True)
class ChatRefusal:
    """A response with which the chat service refuses a request, in the form of Telegram's bot API."""

    code: int
    description: str
    retry_after: int | None = None
    """Whole seconds."""


class ChatFault(Fault):
    """It refuses one request of the agent: a poll that would bring the turn's message, or something that it sends."""

    __slots__ = ()
    aim = Aim(("chat",), "is something that the chat service does", (None,), "counts requests: leave `phase` out")

    def on_request(self) -> ChatRefusal:
        """The response in the place of what was asked for."""
        raise NotImplementedError
