"""Tools and services beside the model: beacons of commands, tool host, database, pipes, pages, chat."""

from typing import Literal

from wedgehog.harness.record.events.base import Event


class ChatAsked(Event):
    """The agent fetched a message from the chat service (`poll`), sent one (`send`), or one was `refused`, and why."""

    what: Literal["poll", "send", "refused"]
    text: str
    session: str = ""
    """In a run of several sessions: the one whose chat it was; empty if that is not known."""


TYPES_ON_S = 60.0
"""An agent that types for longer than this behind its last message has forgotten to stop; real seconds."""


class ChatSeen(Event):
    """A chat at the end of the run, when its agent had no reason to write, or had none for TYPES_ON_S."""

    session: str
    types: bool
    """Whether it showed all that time that its agent types."""


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


class ToolRefused(Event):
    """Our tool host refused a request over HTTP."""

    turn: int
    """The turn that began last; 0: before the first one."""
    status: int
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


ClosedBy = Literal["agent", "backend", "fault", "run"]


class BackendOpened(Event):
    """The agent connected to one of the spec's `links`."""

    link: str
    """As in `tcp:NAME`."""
    connection: int
    """From 1, per run and link."""


class BackendClosed(Event):
    """A connection of one of the spec's `links` has ended."""

    link: str
    connection: int
    by: ClosedBy
    """Who ended it; `fault` includes the healing of a stall."""
    bytes_up: int
    """Bytes that reached the server, in the whole life of the connection."""
    bytes_down: int
    """Bytes that reached the agent."""
    faults: tuple[str, ...] = ()
    """The faults that were armed on it."""


class BackendUsed(Event):
    """What crossed one of the spec's `links` in a turn."""

    link: str
    turn: int
    connections: int
    """Those that carried bytes."""
    bytes_up: int
    """Bytes that reached the server."""
    bytes_down: int
    """Bytes that reached the agent."""


class PageAsked(Event):
    """The page server behind `tool:web` answered a request."""

    path: str
    status: int


class TokenAsked(Event):
    """The token endpoint got a request for an access token; neither request nor token is stored."""

    turn: int
    """The turn that began last; 0: before the first one."""
    grant: str
    """`client_credentials`, `refresh_token`, or what the request said."""
    status: int
    """0: it never answers."""
    error: str = ""
    """RFC 6749's name of the refusal, empty for a token."""
    token: str = ""
    """A fingerprint of the issued token; empty if there is none."""
