"""What every kind of agent offers the runner: open it, say something, stop it, close it with all its processes."""

import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.sandbox import Owned, Started
from wedgehog.harness.sandbox.disk import SmallDisk
from wedgehog.harness.sandbox.namespaces import Enter
from wedgehog.harness.services.chat import ChatService

Stimulus = Literal["user", "wake_up", "resume"]
TurnEnding = Literal["by itself", "aborted", "gave up", "deadline", "killed"]


class AgentError(Exception):
    """The agent cannot be run as its spec says; one line for a person. It is nobody's verdict."""


class Enclosure(Protocol):
    """A network of the agent's own, in which it is started."""

    @property
    def env(self) -> Mapping[str, str]:
        """What its environment must hold for that."""
        ...

    async def open(self, mark: str, enter: Enter) -> None:
        """Make it, where `enter` leads to. Errors: NoNetwork."""
        ...

    def argv(self, command: Sequence[str], cwd: Path) -> list[str]:
        """What to start, so that it becomes `command` in it."""
        ...

    async def close(self) -> None:
        """Take it away."""
        ...


@dataclass(frozen=True, slots=True)
class AgentContext:
    """What one run gives its agent. Below `folder` it gets home/, cwd/, tmp/ and session/ of its own."""

    folder: Path
    llm_url: str
    key: str
    session: str
    run_id: str
    """The mark of this run's processes: `campaign/run`."""
    log: Path
    """Everything it prints ends here."""
    clock: Clock
    time_scale: float = 1.0
    tool_url: str | None = None
    """MCP over streamable HTTP, whole: `http://127.0.0.1:4711/mcp`."""
    tool_command: str | None = None
    """An executable that serves MCP over stdio."""
    store_url: str | None = None
    """`tcp://127.0.0.1:4711`"""
    web_url: str | None = None
    disk: SmallDisk | None = None
    """On which its HOME and its session folder lie, where that is to be filled."""
    hosts: Enclosure | None = None
    """Where the agent believes to talk to hosts that it has hard-coded."""
    chat: ChatService | None = None
    """From which it gets its messages."""
    chat_url: str | None = None
    pipe: str = ""
    """`host:port:secret` of the pipe server, which `wedgehog-pipe` calls; empty where there is none."""

    def outside(self, path: Path) -> Path:
        """Where a file of the agent's is for us."""
        return self.disk.outside(path) if self.disk is not None else path

    @property
    def home(self) -> Path:
        """Its HOME."""
        return self.folder.absolute() / "home"

    @property
    def cwd(self) -> Path:
        """Its working folder."""
        return self.folder.absolute() / "cwd"

    @property
    def tmp(self) -> Path:
        """Its TMPDIR."""
        return self.folder.absolute() / "tmp"

    @property
    def session_dir(self) -> Path:
        """Where it may keep sessions."""
        return self.folder.absolute() / "session"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one turn ended, as the agent's user saw it; answer and error apart."""

    answer: str = ""
    error: str = ""
    exit_code: int | None = None
    status: int | None = None
    """The HTTP status, of a service."""
    raised: str | None = None
    """`Type: message` of an exception, or why a service could not be talked to."""
    stdout: str = ""
    stderr: str = ""
    ended: TurnEnding = "by itself"


@dataclass(frozen=True, slots=True)
class DeliveredSignal:
    """A signal that was delivered to the agent's own process, and until when its end is put down to it."""

    number: signal.Signals
    until_s: float

    def ended(self, exit_code: int, now_s: float) -> bool:
        """Whether a process that ended so, at this time, ended by it."""
        return exit_code == -signal.SIGKILL if self.number == signal.SIGKILL else now_s <= self.until_s


class Session(Protocol):
    """An open agent. One turn at a time; `abort`, `give_up` and `end_turn` make the `say` under way return."""

    @property
    def started(self) -> Started:
        """What really runs, latest."""
        ...

    async def say(self, text: str, *, kind: Stimulus = "user", first: bool) -> Outcome:
        """Give a stimulus; return when the agent has finished with it. Cancelled, it leaves no half-owned process."""
        ...

    async def abort(self) -> None:
        """Stop the turn as its user would."""
        ...

    async def give_up(self) -> None:
        """The front end stops waiting: a service's connection is closed and the service stays; a process is stopped."""
        ...

    async def end_turn(self, grace_s: float = 5.0) -> None:
        """The deadline: SIGINT, `grace_s`, SIGKILL of the tree; or a service's connection is closed, and it stays."""
        ...

    @property
    def leader(self) -> Owned | None:
        """The agent's own process as it runs now; None between the messages of a command, or where it is not ours."""
        ...

    def beside(self) -> "Session | None":
        """The same agent and session, for a message while another is under way; None where it takes one at a time."""
        ...

    def struck(self, blow: DeliveredSignal) -> None:
        """A signal to end it was delivered to that process: if it ends by it, the turn under way was killed."""
        ...


class OpenableSession(Session, Protocol):
    """What `open_agent` needs besides, and keeps to itself."""

    async def open(self) -> None:
        """Whatever must be there before the first message."""
        ...

    async def close(self) -> None:
        """Let go of what is not a process."""
        ...


def open_agent(spec: AgentSpec, place: AgentContext) -> AbstractAsyncContextManager[Session]:
    """Open `spec`'s agent in `place`; leaving the context ends every process of it. Errors: AgentError."""
    return _open(spec, place)


@asynccontextmanager
async def _open(spec: AgentSpec, place: AgentContext) -> AsyncIterator[Session]:
    from wedgehog.harness.agents.callable import CallableSession
    from wedgehog.harness.agents.chat import ChatSession
    from wedgehog.harness.agents.http import HttpSession
    from wedgehog.harness.agents.process import CommandSession
    from wedgehog.harness.agents.surroundings import prepare
    from wedgehog.harness.sandbox import Tree

    kinds: dict[str, Callable[..., OpenableSession]] = {
        "command": CommandSession,
        "http": HttpSession,
        "callable": CallableSession,
        "chat": ChatSession,
    }
    surroundings = prepare(spec, place)
    tree = Tree(surroundings.mark)
    try:
        if place.disk is not None:
            await place.disk.open(surroundings.mark)
            tree.enter = place.disk.argv
        if place.hosts is not None:
            await place.hosts.open(surroundings.mark, tree.enter)
            tree.enter = place.hosts.argv
        session = kinds[spec.kind](spec, place, surroundings, tree)
        try:
            await session.open()
            yield session
        finally:
            await session.close()
    finally:
        await tree.end()
        if place.hosts is not None:
            await place.hosts.close()
        if place.disk is not None:
            await place.disk.close()
