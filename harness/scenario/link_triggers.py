"""Triggers on other links than the model's: a query, a chat service, a pipe, a server of the user's own."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from wedgehog.harness.faults.base import Fault, WireFault, registered
from wedgehog.harness.faults.chat_fault import ChatFault
from wedgehog.harness.scenario.trigger import CHAT, NEEDS_CHAT, STORE, Misfit, Moment, Phase, Trigger, chat_carries

ChatRequest = Literal["poll", "send", "edit", "typing"]


@dataclass(frozen=True, slots=True)
class AtQuery(Trigger):
    """A byte of the database's reply to the turn's query of this number."""

    query: int = 1
    byte: int | None = None
    refuses: ClassVar[str] = "`{key}` means nothing beside `query`"

    def _misfit(self, fault: Fault, link: str) -> Misfit | None:
        if link != STORE:
            return f"`query` counts what our database is asked: write `link: {STORE}`", ("at", "query")
        return Trigger._misfit(self, fault, link)


@dataclass(frozen=True, slots=True)
class AtChat(Trigger):
    """A request to the chat service: a byte of its response, of the request itself if `phase` says, or a refusal.

    The request is the poll that brings the turn's message, a message of the agent (`send`), a change of one (`edit`),
    or a sign that it writes (`typing`).
    """

    chat: ChatRequest | None = None
    phase: Phase | None = None
    byte: int | None = None
    refuses: ClassVar[str] = (
        "`{key}` is a place in a model's reply, a tool or the database: count bytes, or write `phase: request`"
    )

    def _misfit(self, fault: Fault, link: str) -> Misfit | None:
        if link != CHAT or self.phase == "connect":
            return NEEDS_CHAT
        if self.phase not in (None, "headers", "request"):
            return self.refuses.format(key="phase"), ("at", "phase")
        return chat_carries(fault, self.step) or self._not_of_a_request(fault)

    def _not_of_a_request(self, fault: Fault) -> Misfit | None:
        if isinstance(fault, ChatFault) and self.byte is not None:
            return f"{fault.name} refuses a request whole: leave `byte` out", ("at", "byte")
        if self.chat == "poll" and self.in_request:
            return "a poll is under way before its message is: only what is sent has `phase: request`", ("at", "phase")
        if isinstance(fault, WireFault) and fault.closes_port:
            return f"{fault.name} fires on connections: write `phase: connect` instead of `chat`", ("at", "chat")
        return None


@dataclass(frozen=True, slots=True)
class AtPipe(Trigger):
    """A byte of stdout (stdin: `phase: request`) of a process, counted from the turn's start or a tool's beacon."""

    tool: int | None = None
    when: Moment = "started"
    phase: Phase | None = None
    byte: int | None = None
    refuses: ClassVar[str] = (
        "a pipe has only bytes, `byte: n` of its stdout, with `phase: request` of its stdin, and no `{key}`"
    )

    def _misfit(self, fault: Fault, link: str) -> Misfit | None:
        if not isinstance(fault, WireFault) or fault.closes_port:
            wire = registered("wire").items()
            fit = (name for name, cls in wire if issubclass(cls, WireFault) and not cls.closes_port)
            return f"{fault.name} is nothing that happens to a pipe: on {link} there are {', '.join(fit)}", ("do",)
        if self.phase not in (None, "request"):
            return self.refuses.format(key="phase"), ("at", "phase")
        steps = "a pipe has no steps: count its bytes, or name a tool", ("at", "step")
        return steps if self.tool is None and self.step > 1 else None


@dataclass(frozen=True, slots=True)
class AtBackend(Trigger):
    """A byte to the agent (`phase: request`: to the server) of a connection to a server of the user's own.

    It counts from the connection's first use in the turn, or from the next bytes after a tool's beacon.
    """

    tool: int | None = None
    when: Moment = "started"
    phase: Phase | None = None
    byte: int | None = None
    refuses: ClassVar[str] = (
        "a connection has only bytes, `byte: n` to the agent, with `phase: request` to the server, and no `{key}`"
    )

    def _misfit(self, fault: Fault, link: str) -> Misfit | None:
        if not isinstance(fault, WireFault):
            return f"{fault.name} is nothing that happens to bytes: on {link} there are wire faults", ("do",)
        if self.phase not in (None, "request"):
            return self.refuses.format(key="phase"), ("at", "phase")
        steps = "a connection has no steps: count its bytes, or name a tool", ("at", "step")
        return steps if self.tool is None and self.step > 1 else None
