"""The events of a run: timestamped facts. Checks and reports see nothing else.

Events are frozen plain data. history.jsonl tags them with their class name in snake case (`request_arrived`).
`History.add` sets `id`, the index in the history, and `at_s`, seconds since the start of the run.
"""

import re
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, ClassVar, Literal, Self, dataclass_transform

from pydantic import TypeAdapter, ValidationError

StimulusKind = Literal["user", "wake_up", "resume", "recovery"]
EndedHow = Literal["by itself", "aborted", "gave up", "deadline", "killed"]

KINDS: dict[str, type["Event"]] = {}


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, kw_only=True)
class Event:
    """The base of all events; makes each subclass a frozen dataclass."""

    kind: ClassVar[str] = "event"
    id: int = -1
    at_s: float = -1.0

    def __init_subclass__(cls) -> None:
        """Make the subclass a dataclass and register it under its tag."""
        dataclass(frozen=True, kw_only=True)(cls)
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        KINDS[cls.kind] = cls

    def placed(self, number: int, at_s: float) -> Self:
        """This event with its id and its time; `dataclasses.replace` takes five times as long."""
        placed = object.__new__(type(self))
        placed.__dict__.update(self.__dict__, id=number, at_s=at_s)
        return placed

    def as_json(self) -> dict[str, Any]:
        """This event as plain JSON data, tag first."""
        return {"event": self.kind, **asdict(self)}


@cache
def _adapter(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(KINDS[kind])


def from_json(data: dict[str, Any]) -> Event:
    """Read an event that `as_json` wrote. ValueError if the tag is unknown, or the fields do not fit it."""
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


class RunStarted(Event):
    """The run and its settings."""

    scenario: str
    agent: str
    network: str
    time_scale: float
    started: str
    """Date and time of the start, ISO 8601, UTC."""
    error_patterns: tuple[str, ...] = ()
    """Patterns of the agent's spec that mark an error; the stock patterns hold as well."""
    error_at_path: bool = False
    """The spec names a JSON path for errors: any text there is an error."""
    usual: tuple[str, ...] = ()
    """Lines that match an error pattern but appear in the control run too; numbers are masked."""
    carries_nonces: bool = True
    """Whether answers of the control run contain the nonce."""
    start_up_s: float = 0.0
    """Seconds from a message to the first request in the control run."""
    exit_s: float = 0.0
    """Seconds from the last reply to the end of the turn in the control run."""
    turns: int = 1
    """The number of stimuli, without the recovery message."""
    price_as: str = "claude-sonnet-4-6"
    usual_refusals: tuple[str, ...] = ()
    """Messages of our validator's refusals in the control run, which may be our mistake."""
    recovery_tools: tuple[str, ...] = ()
    """Tools that the recovery message's replies call, one in each; their results reached the model in the control run.

    `shell` is the agent's own shell, any other name a tool of our host.
    """


class AgentStarted(Event):
    """The agent was started."""

    argv: tuple[str, ...]
    executable: str
    entry: str = ""
    entry_hash: str = ""
    version: str = ""
    pid: int = 0


class SessionPlanted(Event):
    """Lines of the scenario were written to the agent's session file before this turn (0: before the agent started)."""

    turn: int
    path: str
    lines: int
    sha256: str


class SessionKept(Event):
    """A session file of the agent was copied into the run folder."""

    path: str
    sha256: str
    size: int


class LagSeen(Event):
    """The largest delay of the harness's event loop in this run."""

    worst_s: float


@dataclass(frozen=True, slots=True)
class CpuWait:
    """A period of the run, and how long each party was ready to run in it but had no processor."""

    since_s: float
    until_s: float
    agent_s: float
    """All processes of the agent and its tools; at most the length of the period."""
    network_s: float = 0.0
    """The Toxiproxy server."""
    harness_s: float = 0.0
    """The event loop of the harness, which serves the model: all runs of a campaign share it."""

    @property
    def total_s(self) -> float:
        """The delay of a turn in which agent and Toxiproxy wait for each other."""
        return self.agent_s + self.network_s

    @property
    def of_all_s(self) -> float:
        """The longest delay of a turn in which all three wait for each other."""
        return min(self.until_s - self.since_s, self.total_s + self.harness_s)

    def __add__(self, other: "CpuWait") -> "CpuWait":
        """The sum of both, over the period of both."""
        return CpuWait(
            min(self.since_s, other.since_s),
            max(self.until_s, other.until_s),
            self.agent_s + other.agent_s,
            self.network_s + other.network_s,
            self.harness_s + other.harness_s,
        )


class CpuWaitSeen(Event):
    """Waits for a processor since the last such event; written at the end of each turn and of the run."""

    turn: int
    """The turn that ended; 0 at the end of the run."""
    waits: tuple[CpuWait, ...]
    """Periods without a wait are left out."""
    pressure_s: float | None = None
    """How long any thread of the machine waited for a processor meanwhile; None if the system does not report it."""


class HostRefused(Event):
    """An agent with `hosts` asked for a host that it may not use; written once per host."""

    host: str
    why: str


class Trouble(Event):
    """The harness failed: the run is an error, not a failure of the agent."""

    what: str


class Note(Event):
    """A remark without effect on the verdict."""

    what: str


class ChatAsked(Event):
    """The agent fetched a message from the chat service (`poll`) or sent one (`send`)."""

    what: Literal["poll", "send"]
    text: str


# ---- turns


class StimulusGiven(Event):
    """A stimulus was given to the agent. Turns count from 1."""

    turn: int
    stimulus: StimulusKind
    marker: str
    nonce: str
    text: str


class TurnEnded(Event):
    """The turn ended; the fields hold what the user could see."""

    turn: int
    ended: EndedHow
    answer: str
    error: str
    exit_code: int | None
    status: int | None
    raised: str | None
    stdout: str = ""
    stderr: str = ""


class AbortSent(Event):
    """The user aborted the turn."""

    turn: int


class GaveUp(Event):
    """The front end closed its connection to the agent."""

    turn: int
    after_s: float | None = None
    """How long the front end waits, in real seconds, unscaled; None if another trigger ended its wait."""


class AgentKilled(Event):
    """A signal was sent to processes of the agent, of its tools or of the tool host during this turn."""

    turn: int
    signal: str
    whom: str
    """tree, leader, tool or server"""
    pids: tuple[int, ...]


class Frozen(Event):
    """Processes of the agent or of its tool were stopped (SIGSTOP)."""

    turn: int
    whom: str
    """tree, leader or tool"""
    pids: tuple[int, ...]
    for_s: float
    """The planned duration."""


class Thawed(Event):
    """The processes were continued (SIGCONT)."""

    turn: int
    whom: str
    after_s: float


class SessionSaved(Event):
    """A session file was copied after the agent was killed and before it was restarted."""

    turn: int
    path: str
    """The copy, relative to the run's folder."""
    sha256: str
    size: int
    results: tuple[str, ...] = ()
    """Tokens (`turn.step.call`) of the tool calls whose output is in the file."""
    torn: bool = False
    """The harness removed half of the last line, as a crash can."""


class StartMissed(Event):
    """No request arrived within the start-up bound, and no armed fault prevents requests."""

    turn: int
    bound_s: float
    cpu_wait_s: float = 0.0
    """How long the run had waited for processors by then, if that exceeds the extra time that was granted."""


class DeadlineHit(Event):
    """The turn exceeded its deadline; the harness stops the agent."""

    turn: int
    bound_s: float
    cpu_wait_s: float = 0.0
    """How long the run had waited for processors by then, if that exceeds the extra time that was granted."""


class HangSeen(Event):
    """What the agent waited for when its turn exceeded the deadline, observed before it was stopped."""

    turn: int
    says: str
    """One sentence."""
    file: str = ""
    """The file with all observations (processes, sockets, stacks), relative to the run's folder."""


# ---- calls of the model


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool result that a request carried."""

    id: str
    chars: int
    is_error: bool = False
    token: str = ""
    """`turn.step.call` of the tool call, or empty if it is unknown."""
    printed: bool = True
    """Whether its text contains the last output of the command."""
    in_text: bool = False
    """Whether it is part of a message's text ("Observation: …"): then `chars` and `is_error` are unknown."""
    broken_off: str = ""
    """The words by which a shell says in it that its command breaks off in the middle; else empty."""


class RequestArrived(Event):
    """A request for the model reached the provider."""

    call: int
    conn: int
    wire: str
    path: str
    model: str
    stream: bool
    turn: int
    """0 if no turn was open."""
    step: int
    attempt: int
    background: str = ""
    """The kind of background call; empty for a main call."""
    side: str = ""
    """The conversation beside the main one to which it belongs, such as `subagent 1`; step and attempt count there."""
    quotes: tuple[int, ...] = ()
    """Calls of side conversations whose replies stand in its messages."""
    max_tokens: int | None = None
    """The agent's own limit of output tokens."""
    key: str = ""
    """A hash of the API key."""
    body_hash: str = ""
    body_bytes: int = 0
    messages: int = 0
    tools: tuple[str, ...] = ()
    results: tuple[ToolResult, ...] = ()
    turns_seen: tuple[int, ...] = ()
    """Turns whose markers the conversation contains."""


class RequestRefused(Event):
    """The provider answered with a status of 400 or more; the call is not paid."""

    call: int
    status: int
    error: str
    message: str
    pairing: bool
    """Refused because tool calls and results do not pair."""
    scripted: bool
    """A fault or the script refused it; else our validator did."""
    retry_after_s: float | None = None
    """The wait of Retry-After, in seconds from this event."""
    retry_after_is_date: bool = False


class ReplyStarted(Event):
    """The provider accepted the request; the call is paid."""

    call: int
    input_tokens: int
    scripted: bool = False
    """The script sets the tokens (`usage`); they are not counted from what was sent."""


@dataclass(frozen=True, slots=True)
class ToolCallOffered:
    """A tool call in a reply."""

    token: str
    """`turn.step.call`"""
    name: str
    whole: bool
    """All arguments were delivered uncut."""


class ReplyEnded(Event):
    """The reply is over: nothing more is generated or delivered."""

    call: int
    how: Literal["complete", "hung up", "stalled", "cut", "ended early"]
    stop: str
    """The stop reason of the whole reply: end, tool, max_tokens or error."""
    output_tokens: int
    """Generated, so billed."""
    tokens_delivered: int
    body_bytes: int
    bytes_delivered: int
    blocks_delivered: int
    """Text blocks and tool calls that arrived whole."""
    text_delivered: str = ""
    tool_calls: tuple[ToolCallOffered, ...] = ()
    tokens_needed: int = 0
    """Tokens of the whole scripted reply if the agent's own limit cut it; else 0."""
    first_byte_s: float | None = None
    """Seconds from the request to the moment the provider sent the first byte; None if no byte of the body arrived."""
    damaged: bool = False
    """Whether a fault changed its stream or body, though it may have arrived whole."""


class HungUp(Event):
    """The agent closed the connection before the reply had arrived whole."""

    call: int


class CallUnscripted(Event):
    """The script has no reply for this main call; the run is an error."""

    call: int
    why: str


# ---- faults


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


class FaultUnproven(Event):
    """A fault was armed for this call without proof that it fired; how much the agent received is unknown."""

    fault: int
    name: str
    call: int


class FaultHealed(Event):
    """The fault was removed."""

    fault: int
    name: str


# ---- tools


class BeaconSeen(Event):
    """A scripted command reported its start or end. `token` is turn.step.call."""

    token: str
    phase: Literal["started", "done"]
    exit_code: int | None = None
    """Set when the command is done."""
    background: bool = False
    """The started command ends in `&`; it is done when its job is done."""


class ToolAsked(Event):
    """Our tool host was called."""

    tool: str
    token: str
    """turn.step.call of the tool call; empty if the model made no such call."""
    server: int
    """The pid of the server."""


class StoreAsked(Event):
    """Our database answered a query."""

    number: int
    """From 1, per run."""
    verb: str
    """SELECT, INSERT, …"""
    rows: int
    """Rows returned or changed."""
    latency_s: float
    """The duration, configured latency included."""


class PipeOpened(Event):
    """A `wedgehog-pipe` between the agent and a command has started."""

    name: str
    """As in `ipc:NAME`."""
    pid: int
    """The pid of `wedgehog-pipe`, which the agent sees."""
    child: int
    """The pid of the command."""


class PipeClosed(Event):
    """A `wedgehog-pipe` and its command have ended."""

    name: str
    pid: int
    exit_code: int | None
    """The command's exit code; minus the signal number if a signal ended it; None if unknown."""
    stdout_bytes: int | None
    """Bytes of its stdout that the agent received; None if `wedgehog-pipe` was killed."""
    stdin_bytes: int | None


class PageAsked(Event):
    """The page server behind `tool:web` answered a request."""

    path: str
    status: int
