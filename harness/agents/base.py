"""What every kind of agent offers the runner: open it, send a message, stop it, and end all its processes."""

import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
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
    """The agent cannot be run as its spec says; one line. It is no verdict on the agent."""


class Enclosure(Protocol):
    """A private network in which the agent runs."""

    @property
    def env(self) -> Mapping[str, str]:
        """The environment that the agent needs there."""

    async def open(self, mark: str, enter: Enter) -> None:
        """Create it, inside of what `enter` enters. Errors: NoNetworkError."""

    def argv(self, command: Sequence[str], cwd: Path) -> list[str]:
        """The command line that runs `command` in it."""

    async def close(self) -> None:
        """Remove it."""


@dataclass(frozen=True, slots=True)
class AgentContext:
    """What one run gives its agent. Below `folder`, the agent has its own home/, cwd/, tmp/ and session/."""

    folder: Path
    llm_url: str
    key: str
    session: str
    run_id: str
    """The mark of this run's processes: `campaign/run`."""
    log: Path
    """The file that receives everything it prints."""
    clock: Clock
    time_scale: float = 1.0
    tool_url: str | None = None
    """The full URL of MCP over streamable HTTP: `http://127.0.0.1:4711/mcp`."""
    tool_command: str | None = None
    """An executable: an MCP server over stdio."""
    store_url: str | None = None
    """`tcp://127.0.0.1:4711`"""
    web_url: str | None = None
    disk: SmallDisk | None = None
    """Holds its HOME and its session folder, if the run fills the disk."""
    hosts: Enclosure | None = None
    """The private network for an agent with hard-coded hosts."""
    chat: ChatService | None = None
    """The service from which it gets its messages."""
    chat_url: str | None = None
    simulated: bool = False
    """The agent runs on the harness's own event loop, in virtual time."""
    pipe: str = ""
    """`host:port:secret` of the pipe server, for `wedgehog-pipe`; empty if there is none."""

    def outside(self, path: Path) -> Path:
        """The path at which this process finds the agent's file `path`."""
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
        """Folder for its sessions."""
        return self.folder.absolute() / "session"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one turn ended, as the agent's user saw it; answer and error are separate."""

    answer: str = ""
    error: str = ""
    exit_code: int | None = None
    status: int | None = None
    """The HTTP status of a service."""
    raised: str | None = None
    """`Type: message` of an exception, or why the service did not answer."""
    stdout: str = ""
    stderr: str = ""
    ended: TurnEnding = "by itself"


@dataclass(frozen=True, slots=True)
class DeliveredSignal:
    """A signal that was delivered to the agent's own process; an end until `until_s` counts as its effect."""

    number: signal.Signals
    until_s: float

    def ended(self, exit_code: int, now_s: float) -> bool:
        """Whether it ended the process that exited with `exit_code` at `now_s`."""
        return exit_code == -signal.SIGKILL if self.number == signal.SIGKILL else now_s <= self.until_s


class Session(Protocol):
    """An open agent. One turn at a time; `abort`, `give_up` and `end_turn` make the running `say` return."""

    @property
    def started(self) -> Started:
        """What really runs; for a command, the latest process."""

    async def say(self, text: str, *, kind: Stimulus = "user", first: bool) -> Outcome:
        """Send a stimulus and return when the agent has finished. If cancelled, it ends the processes it started."""

    async def abort(self) -> None:
        """Stop the turn as the agent's user would."""

    async def give_up(self) -> None:
        """Stop waiting: for a service, close the connection and let the service run; for a process, stop it."""

    async def end_turn(self, grace_s: float = 5.0) -> None:
        """At the deadline: SIGINT, after `grace_s` SIGKILL to the tree; for a service, close the connection."""

    @property
    def leader(self) -> Owned | None:
        """The agent's own running process; None between two messages of a command, or if we did not start it."""

    def beside(self) -> "Session | None":
        """The same agent and session, for a parallel message; None if the agent takes one message at a time."""

    def signalled(self, delivered: DeliveredSignal) -> None:
        """A signal to end that process was delivered: if the process ends by it, the turn counts as killed."""


class OpenableSession(Session, Protocol):
    """A session as `open_agent` sees it."""

    async def open(self) -> None:
        """Prepare for the first message."""

    async def close(self) -> None:
        """Release everything that is not a process."""


@asynccontextmanager
async def open_agent(spec: AgentSpec, place: AgentContext) -> AsyncIterator[Session]:
    """Open `spec`'s agent in `place`; on exit, end all its processes. Errors: AgentError."""
    if place.simulated:
        from wedgehog.harness.agents.simulated import open_simulated

        async with open_simulated(spec, place) as session:
            yield session
        return
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
        opened = kinds[spec.kind](spec, place, surroundings, tree)
        try:
            await opened.open()
            yield opened
        finally:
            await opened.close()
    finally:
        await tree.end()
        if place.hosts is not None:
            await place.hosts.close()
        if place.disk is not None:
            await place.disk.close()
