"""One timestamped fact of a run. If it happened it is an Event; checks and reports see nothing else.

Events are frozen, tagged by their class name in snake case (`RequestArrived` is `request_arrived` in history.jsonl)
and hold plain data only. `id` is the event's place in its history, `at_s` seconds since the run's start; both are
given by `History.add`.
"""

import re
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, ClassVar, Literal

from pydantic import TypeAdapter, ValidationError

StimulusKind = Literal["user", "wake_up", "resume", "recovery"]
EndedHow = Literal["by itself", "aborted", "gave up", "deadline", "killed"]

KINDS: dict[str, type["Event"]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What all events share."""

    kind: ClassVar[str] = "event"
    id: int = -1
    at_s: float = -1.0

    def __init_subclass__(cls) -> None:
        """Register the subclass under its tag."""
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        KINDS[cls.kind] = cls

    def as_json(self) -> dict[str, Any]:
        """This event as plain JSON data, tag first."""
        return {"event": self.kind, **asdict(self)}


@cache
def _adapter(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(KINDS[kind])


def from_json(data: dict[str, Any]) -> Event:
    """The event that `as_json` wrote.

    Raises:
        ValueError: an unknown tag or fields that do not fit it.
    """
    rest = dict(data)
    kind = str(rest.pop("event", ""))
    if kind not in KINDS:
        raise ValueError(f"unknown event {kind!r}")
    try:
        return _adapter(kind).validate_python(rest)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        raise ValueError(f"event {kind}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


# ---- the run and its agent


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """The frame in which everything else is read."""

    scenario: str
    agent: str
    network: str
    time_scale: float
    started: str
    """The calendar's time at the start, ISO 8601, UTC."""
    error_patterns: tuple[str, ...] = ()
    """More patterns (of the agent's spec) that mean "this is an error, not an answer"."""
    error_at_path: bool = False
    """The spec names a place of its own for errors (JSON), so that any word there is an error."""
    usual: tuple[str, ...] = ()
    """Lines that sound like an error and that the control run printed too, when all was well; numbers are masked."""
    carries_nonces: bool = True
    """Whether the control run showed that answers carry the model's words."""
    start_up_s: float = 0.0
    """From a message to the first request, as the control run measured it."""
    exit_s: float = 0.0
    """From the last reply to the end of the turn, as the control run measured it."""
    turns: int = 1
    """How many stimuli the scenario gives (the recovery message is one more)."""
    price_as: str = "claude-sonnet-4-6"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted(Event):
    """What really runs."""

    argv: tuple[str, ...]
    executable: str
    entry: str = ""
    entry_hash: str = ""
    version: str = ""
    pid: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlanted(Event):
    """Lines of the scenario were put into the agent's session file: before this turn, 0 before the agent was opened."""

    turn: int
    path: str
    lines: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKept(Event):
    """A session file of the agent was copied into the run folder."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LagSeen(Event):
    """The worst lag of our own event loop that the watchdog saw in this run."""

    worst_s: float


@dataclass(frozen=True, slots=True)
class CpuWait:
    """A stretch of the run, and how long each party waited for a processor in it, though it could have run."""

    since_s: float
    until_s: float
    agent_s: float
    """All processes of the agent and its tools: at most the stretch itself, where they waited side by side."""
    network_s: float = 0.0
    """The Toxiproxy server."""

    @property
    def total_s(self) -> float:
        """What it may have cost a turn in which each waits for the other."""
        return self.agent_s + self.network_s

    def __add__(self, other: "CpuWait") -> "CpuWait":
        """Both together."""
        return CpuWait(
            min(self.since_s, other.since_s),
            max(self.until_s, other.until_s),
            self.agent_s + other.agent_s,
            self.network_s + other.network_s,
        )

    def rounded(self) -> "CpuWait":
        """To milliseconds."""
        return CpuWait(*(round(getattr(self, it.name), 3) for it in fields(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuWaitSeen(Event):
    """Who waited for a processor since the last such event; written when a turn ends, and when the run does."""

    turn: int
    """The turn that ends; 0 at the end of the run."""
    waits: tuple[CpuWait, ...]
    """Stretches without a wait are left out."""
    pressure_s: float | None = None
    """For how long meanwhile some thread of the whole machine waited for a processor, where the system tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRefused(Event):
    """An agent with hosts of its own asked for one that it does not get; each is told once."""

    host: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble(Event):
    """The harness itself failed: the run is an error and never blamed on the agent."""

    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Event):
    """Something worth saying that decides nothing."""

    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAsked(Event):
    """The chat service handed a message over (`poll`), or was sent one by the agent (`send`)."""

    what: Literal["poll", "send"]
    text: str


# ---- turns


@dataclass(frozen=True, slots=True, kw_only=True)
class StimulusGiven(Event):
    """A message (or wake-up) was handed to the agent. Turns count from 1."""

    turn: int
    stimulus: StimulusKind
    marker: str
    nonce: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded(Event):
    """What the agent's user could see when the turn was over."""

    turn: int
    ended: EndedHow
    answer: str
    error: str
    exit_code: int | None
    status: int | None
    raised: str | None
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortSent(Event):
    """The user stopped the turn on purpose."""

    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUp(Event):
    """The front end closed its connection to the agent."""

    turn: int
    after_s: float | None = None
    """The time it waits by its own rule, in real seconds, as written (None where something else set it off)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentKilled(Event):
    """A signal was delivered to processes of the agent, of its tools or of the tool host, while this turn ran."""

    turn: int
    signal: str
    whom: str
    """tree, leader, tool or server"""
    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen(Event):
    """Processes of the agent or of its tool stand still from here on."""

    turn: int
    whom: str
    """tree, leader or tool"""
    pids: tuple[int, ...]
    for_s: float
    """For how long they are meant to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thawed(Event):
    """They go on again."""

    turn: int
    whom: str
    after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSaved(Event):
    """What a session file held when the agent had been killed, before anything was started again."""

    turn: int
    path: str
    """Its copy, below the run's folder."""
    sha256: str
    size: int
    results: tuple[str, ...] = ()
    """turn.step.call of the tool calls whose output stands in it."""
    torn: bool = False
    """It has lost half of its last line, as crashes do; this is what is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartMissed(Event):
    """No request arrived within the agent's start-up bound, and no armed fault kept requests away."""

    turn: int
    bound_s: float
    cpu_wait_s: float = 0.0
    """For so long the run had waited for processors by then, where that is more than the time that was granted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineHit(Event):
    """The turn was over its deadline; the agent is being stopped."""

    turn: int
    bound_s: float
    cpu_wait_s: float = 0.0
    """For so long the run had waited for processors by then, where that is more than the time that was granted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HangSeen(Event):
    """What the agent was waiting for when its turn was over its time, looked at before anything was ended."""

    turn: int
    says: str
    """One sentence."""
    file: str = ""
    """All that was seen, below the run's folder: processes, sockets, stacks."""


# ---- calls of the model


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool result that a request carried."""

    id: str
    chars: int
    is_error: bool = False
    token: str = ""
    """`turn.step.call` of the tool call it answers, where it could be told; else empty."""
    printed: bool = True
    """Whether its text holds what the command printed last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestArrived(Event):
    """A request for the model reached the provider."""

    call: int
    conn: int
    wire: str
    path: str
    model: str
    stream: bool
    turn: int
    """0 where no stimulus was under way."""
    step: int
    attempt: int
    background: str = ""
    """Empty for a main call, else what the background call seems to be for."""
    max_tokens: int | None = None
    """The agent's own limit of output tokens."""
    key: str = ""
    """A fingerprint of the API key, never the key."""
    body_hash: str = ""
    body_bytes: int = 0
    messages: int = 0
    tools: tuple[str, ...] = ()
    results: tuple[ToolResult, ...] = ()
    turns_seen: tuple[int, ...] = ()
    """Turns whose markers the conversation still holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRefused(Event):
    """The provider answered with a status of 400 or more: this call is not paid."""

    call: int
    status: int
    error: str
    message: str
    pairing: bool
    """Refused because tool calls and results do not pair."""
    scripted: bool
    """A fault or script asked for it; else our validator found the request wrong."""
    retry_after_s: float | None = None
    """What Retry-After asked for, in seconds from this event."""
    retry_after_is_date: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyStarted(Event):
    """The provider accepted the request: from here on the call is paid."""

    call: int
    input_tokens: int
    scripted: bool = False
    """The tokens of this call are the script's own (`usage`), not counted from what was sent."""


@dataclass(frozen=True, slots=True)
class ToolCallOffered:
    """A tool call in a reply."""

    token: str
    """`turn.step.call`"""
    name: str
    whole: bool
    """Its arguments were all delivered and are as the model meant them (not cut)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyEnded(Event):
    """Nothing more of this reply will be generated or delivered."""

    call: int
    how: Literal["complete", "hung up", "stalled", "cut", "ended early"]
    stop: str
    """end, tool, max_tokens or error: what the reply says, or would have said, of its own stop."""
    output_tokens: int
    """Generated, hence billed."""
    tokens_delivered: int
    body_bytes: int
    bytes_delivered: int
    blocks_delivered: int
    """Text blocks and tool calls that arrived whole."""
    text_delivered: str = ""
    tool_calls: tuple[ToolCallOffered, ...] = ()
    tokens_needed: int = 0
    """What the whole scripted reply takes, where the agent's own limit ended it; else 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HungUp(Event):
    """The agent closed the connection before the reply had arrived whole."""

    call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallUnscripted(Event):
    """No line of the script matches this main call: the run is an error."""

    call: int
    why: str


# ---- faults


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultArmed(Event):
    """A fault of the plan waits for its trigger. `fault` is its place in the plan, from 0."""

    fault: int
    name: str
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultFired(Event):
    """A fault struck, and this is the proof."""

    fault: int
    name: str
    link: str
    turn: int
    step: int | None
    """None, as `attempt`: it struck the next request, and nobody saw which one that was."""
    attempt: int | None
    call: int | None
    proof: str
    bytes: int | None = None
    """Of the reply's body, or of the request that was struck: let through before it, where that has a meaning."""
    slows: bool = False
    """Whether every byte arrives in the end, so that no request was kept away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultUnproven(Event):
    """A fault was armed for this call and nothing proves that it struck: how much the agent got is unknown."""

    fault: int
    name: str
    call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultHealed(Event):
    """The harm was taken away."""

    fault: int
    name: str


# ---- tools


@dataclass(frozen=True, slots=True, kw_only=True)
class BeaconSeen(Event):
    """A scripted command left its trace: `token` is turn.step.call."""

    token: str
    phase: Literal["started", "done"]
    exit_code: int | None = None
    """Of a command that is done."""
    background: bool = False
    """Of a command that has started: it ends in `&`, and is done when its job is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAsked(Event):
    """Our tool host was called."""

    tool: str
    token: str
    """turn.step.call of the tool call that it is; empty where the model made no such call."""
    server: int
    """The pid of the server that got it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAsked(Event):
    """Our database answered a query."""

    number: int
    """Counted from 1 in the run."""
    verb: str
    """SELECT, INSERT, …"""
    rows: int
    """Returned, or changed."""
    latency_s: float
    """How long it took, the latency that it was told to have included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeOpened(Event):
    """A `wedgehog-pipe` stands between the agent and a command."""

    name: str
    """As in `ipc:NAME`."""
    pid: int
    """Its own, which the agent takes for the command's."""
    child: int
    """The command's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeClosed(Event):
    """A `wedgehog-pipe` has ended, and its command with it."""

    name: str
    pid: int
    exit_code: int | None
    """The command's; minus the signal's number where one ended it, None where nobody could see it."""
    stdout_bytes: int | None
    """What the agent got of its stdout; None where the pipe was killed."""
    stdin_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAsked(Event):
    """The page server behind `tool:web` got a request."""

    path: str
    status: int


def field_names(kind: str) -> tuple[str, ...]:
    """Names of an event's fields, for the docs."""
    return tuple(f.name for f in fields(KINDS[kind]))
