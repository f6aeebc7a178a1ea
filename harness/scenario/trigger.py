"""When a fault fires, by kind of trigger: plain data, which can be shrunk and replayed."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from wedgehog.fake_llm.edit_kinds import MIDDLE
from wedgehog.fake_llm.observer import BEFORE_HEAD, Point
from wedgehog.fake_llm.script.main_call import COMPACTING
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.fake_llm.script.side_conversations import SIDE, SUBAGENT
from wedgehog.harness.faults.base import Fault, WireFault
from wedgehog.harness.faults.chat_fault import ChatFault
from wedgehog.harness.faults.process_fault import ProcessFault
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.faults.result_fault import ResultFault
from wedgehog.harness.faults.token_fault import TokenFault

HOST = "tool:mcp"
PIPE = "ipc:mcp"
STORE = "store:db"
CHAT = "chat"
CHANNEL = "channel"
"""From the agent's user to its service."""
BACKEND = "tcp:"
"""How the name of a link to a server of the user's own begins."""

Phase = Literal["connect", "request", "headers", "body", "middle", "terminal", "linger"]
Moment = Literal["started", "done"]
Misfit = tuple[str, tuple[str, ...]]
"""What is wrong, and the key of the fault at which it is wrong."""

COMPACTION = "compaction"
"""The calls of a turn, or of a later one, that ask for a summary in the place of messages."""
CALLS = ("main", "background", COMPACTION, SUBAGENT)
"""What `on` may name beside the declared conversations."""

NEEDS_CHAT = (
    f"`chat: poll`, `send`, `edit` or `typing` goes with `link: {CHAT}`, `phase: connect` or `after_s` without it",
    ("at",),
)
_BY_STEP = "write the `step` of a request in place of `tool`, or `do: down`"
_COUNTED_AT = {
    "llm": "`phase: request` for the upload, or `headers`",
    HOST: "`tool: 1`",
    STORE: "`query: 1`",
    CHAT: "`chat: send`",
}
"""Where a fault that counts the bytes of one connection fires, by link."""
_OF_A_LINK = "`phase: connect`, at `after_s` or at a `tool`"
_WITHOUT_MODEL = (CHANNEL, "tool:web")
"""Links on which no reply of the model is held."""
_IN_A_REPLY = "`{}` is a place in a model's reply, and {} carries none"


@dataclass(frozen=True, slots=True)
class Trigger:
    """A moment of a turn. Turn, step and attempt count from 1; `after_s` delays it."""

    turn: int = 1
    step: int = 1
    attempt: int = 1
    after_s: float | None = None
    refuses: ClassVar[str] = "`{key}` says at which end of a tool call: write `tool: 1` beside it, or leave it out"
    """What a user reads at a key that this kind of trigger does not have."""

    @property
    def in_request(self) -> bool:
        """Whether the fault hits bytes of a request."""
        return getattr(self, "phase", None) == "request"

    @property
    def before_request(self) -> bool:
        """Whether the fault must be armed before the request comes."""
        return self.in_request or isinstance(self, BeforeRequest)

    @property
    def first_byte(self) -> int:
        """The byte that it means of what it is aimed at."""
        return getattr(self, "byte", None) or 0

    def byte_in(self, reply: Point) -> int | None:
        """The byte that it means of the body of a model's reply, or BEFORE_HEAD; None: there is no such place."""
        return BEFORE_HEAD

    def misfit(self, fault: Fault, link: str) -> Misfit | None:
        """Why this fault can never fire here; None where it can."""
        on_all = isinstance(fault, WireFault) and fault.reach == "link" and link in (HOST, STORE, CHAT)
        if on_all and getattr(self, "byte", None):
            said = f"{fault.name} applies to all of {link}, and begins with its next byte: leave `byte` out"
            return said, ("at", "byte")
        if isinstance(fault, ReplyFault) and (key := self._not_of_an_answer(fault)):
            said = f"{fault.name} changes the whole answer: leave `{key}` out, and name its call: `at: {{turn: 1}}`"
            return said, ("at", key)
        if isinstance(fault, TokenFault) and self != type(self)(turn=self.turn, attempt=self.attempt):
            return f"{fault.name} fires at token requests: write `at: {{turn: 1}}`, and which `attempt`", ("at",)
        return self._misfit(fault, link)

    def _not_of_an_answer(self, fault: ReplyFault) -> str:
        """A key with which no answer of the model can be chosen; empty if there is none."""
        keys = ("tool", "session", "byte", "after_s", "phase")
        given = {key: getattr(self, key, None) for key in keys}
        known = (None, "headers", "middle") if fault.counts_events else (None, "headers")
        return next((key for key in keys if given[key] not in known), "")

    def _misfit(self, fault: Fault, link: str) -> Misfit | None:
        if isinstance(fault, ResultFault):
            connects = ", or `phase: connect` for every request of the turn" if fault.refuses_requests else ""
            return f"{fault.name} fires at a tool call: write `at: {{tool: 1}}` with its turn and step{connects}", (
                "at",
            )
        return NEEDS_CHAT if link == CHAT else None


@dataclass(frozen=True, slots=True)
class AfterStart(Trigger):
    """`after_s` after the turn's start."""

    def _misfit(self, fault: Fault, link: str) -> Misfit | None:
        return chat_carries(fault, self.step) if link == CHAT else Trigger._misfit(self, fault, link)


@dataclass(frozen=True, slots=True)
class SessionIdle(Trigger):
    """The middle of the pause before the turn's message."""

    session: Literal["idle"] | None = None
    refuses: ClassVar[str] = "no request and no tool runs while the session is idle: leave `{key}` out"

    def _misfit(self, fault: Fault, link: str) -> Misfit | None:
        key = next((key for key in ("step", "attempt") if getattr(self, key) > 1), "")
        key = key or ("after_s" if self.after_s is not None else "")
        if key:
            return self.refuses.format(key=key), ("at", key)
        if isinstance(fault, ProcessFault) and fault.hits == "worker":
            return None
        said = "`session: idle` strikes the worker, the process that asks the model for the agent: write `whom: worker`"
        return said, ("do",)


@dataclass(frozen=True, slots=True)
class AtCall(Trigger):
    """A request for the model: `on` says whether of the conversation or beside it."""

    model_name: str | None = None
    on: str = "main"

    def in_turn(self, turn: int) -> bool:
        """Whether it may mean a call of this turn: the turn in which an agent compacts is not known."""
        return turn == self.turn or (self.on == COMPACTION and turn > self.turn)

    def names(self, place: CallPosition) -> bool:
        """Whether `on` and `step` name a request at this place."""
        if self.on == "main":
            return not place.background and place.step == self.step
        if self.on == "background":
            return bool(place.background) and (place.side is None or place.side.name == SIDE)
        if self.on == COMPACTION:
            return place.background in COMPACTING
        return place.side is not None and place.side.name == self.on and place.step == self.step

    def precedes(self, place: CallPosition) -> bool:
        """Whether `on` names the conversation of a request at this place, and `step` this one or one before it."""
        if self.on == "main":
            return not place.background and place.step >= self.step
        return place.side is not None and place.side.name == self.on and place.step >= self.step


@dataclass(frozen=True, slots=True)
class AtReply(AtCall):
    """A place in the model's reply: a byte, the end of an event, or a phase; none of them: before the head."""

    byte: int | None = None
    event: int | None = None
    phase: Phase | None = None

    @property
    def edited_event(self) -> int | None:
        """The event that an edit of the stream changes."""
        return MIDDLE if self.phase == "middle" else self.event

    def byte_in(self, reply: Point) -> int | None:
        """As above; without byte, event or phase it is before the head."""
        ends, body = reply.frame_ends, reply.body
        if self.byte is not None:
            return self.byte if body < 0 or self.byte < body else None
        if self.event is not None and not ends and not reply.stream:
            return max(0, body // 2)  # a fallback that does not stream is struck in its middle
        if self.event is not None:
            return (0, *ends)[self.event] if self.event <= len(ends) else None
        places = {
            "body": 0,
            "middle": ends[(len(ends) - 1) // 2] if ends else max(0, body // 2),  # behind half of the events
            "terminal": (ends[-2] + ends[-1]) // 2 if len(ends) > 1 else max(0, body - 1),  # in the last event
            "linger": ends[-1] if ends else None,  # behind the last event, before the end of the body
        }
        return places.get(self.phase or "", BEFORE_HEAD)

    def _misfit(self, fault: Fault, link: str) -> Misfit | None:
        if isinstance(fault, ReplyFault) and fault.beside_the_main and self.on not in ("background", COMPACTION):
            return f"{fault.name} fires beside the conversation: write `on: {COMPACTION}` or `on: background`", ("at",)
        if link.startswith(BACKEND) or (link in _WITHOUT_MODEL and isinstance(fault, WireFault)):
            return _beside_the_model(fault, link)
        if link not in (HOST, STORE) or not isinstance(fault, WireFault):
            return Trigger._misfit(self, fault, link)
        for key in ("event", "phase"):
            if getattr(self, key) is not None:
                return _IN_A_REPLY.format(key, link), ("at", key)
        place = _COUNTED_AT[link] if counts_bytes(fault) or link == HOST else "`query: 1` or `phase: connect`"
        return f"on {link} a {fault.name} fires at {place}", ("at",)


@dataclass(frozen=True, slots=True)
class SessionWritten(AtCall):
    """The first change of a session file after a request for the model."""

    session: Literal["written"] | None = None
    refuses: ClassVar[str] = "a trigger has either session or {key}"


@dataclass(frozen=True, slots=True)
class BeforeRequest(Trigger):
    """Before the request comes: its connection, or its byte."""

    phase: Phase | None = None
    byte: int | None = None
    refuses: ClassVar[str] = "`{key}` means nothing beside `phase: connect` or `phase: request`"

    def _misfit(self, fault: Fault, link: str) -> Misfit | None:
        if self.after_s is not None:
            return f"`after_s` has no effect beside `phase: {self.phase}`: leave one of them out", ("at", "after_s")
        if link == CHAT and not self.in_request and (wrong := chat_carries(fault, self.step)):
            return wrong
        if isinstance(fault, ResultFault) and fault.refuses_requests and not self.in_request:
            steps = f"{fault.name} refuses requests from the start of a turn: leave `step` out", ("at", "step")
            return steps if self.step > 1 else None
        if link in (HOST, STORE) and self.in_request and isinstance(fault, WireFault):
            return _IN_A_REPLY.format("phase", link), ("at", "phase")
        if counts_bytes(fault) and not self.in_request:
            return f"{fault.name} counts bytes: write {_COUNTED_AT.get(link, '`phase: request`')}", ("at", "phase")
        return Trigger._misfit(self, fault, link) if link != CHAT or self.in_request else None


@dataclass(frozen=True, slots=True)
class AtTool(Trigger):
    """A tool call: its beginning or its end, or a byte of its result."""

    tool: int = 1
    when: Moment = "started"
    byte: int | None = None
    refuses: ClassVar[str] = "`{key}` means nothing beside `tool`"

    def _misfit(self, fault: Fault, link: str) -> Misfit | None:
        if isinstance(fault, ResultFault):
            late = f"{fault.name} fires before the result is there: leave `when` out", ("at", "when")
            return late if self.when == "done" else None
        if link == CHAT or not counts_bytes(fault):
            return Trigger._misfit(self, fault, link)
        if link == STORE:
            return f"on {link} a {fault.name} fires at `query: 1`", ("at",)
        if link != HOST:
            return f"{fault.name} counts bytes of one connection, and a tool call holds none: {_BY_STEP}", ("at",)
        late = f"a {fault.name} fires before the first byte of a result, or at `byte`: leave `when` out", ("at", "when")
        return late if self.when == "done" else None


def _beside_the_model(fault: Fault, link: str) -> Misfit | None:
    """Why a fault can not fire here at a place in a reply: only its user can lose it while the model speaks."""
    if link == CHANNEL and isinstance(fault, WireFault) and fault.closes_port:
        return None
    place = "`phase: request`" if counts_bytes(fault) and not link.startswith(BACKEND) else _OF_A_LINK
    return f"on {link} a {fault.name} fires at {place}", ("at",)


def counts_bytes(fault: Fault) -> bool:
    """Whether it counts the bytes of one connection: nothing can aim it at a whole link."""
    return isinstance(fault, WireFault) and fault.reach == "connection"


def chat_carries(fault: Fault, step: int) -> Misfit | None:
    """Why this fault can never fire on a chat service; None where it can."""
    if not isinstance(fault, WireFault | ChatFault):
        return f"{fault.name} is nothing that happens to bytes: it has another link", ("do",)
    says = "a chat service has no steps: write `chat: send`, and which `attempt`"
    return (says, ("at", "step")) if step > 1 else None
