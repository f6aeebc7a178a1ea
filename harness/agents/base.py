"""What every kind of agent offers the runner: open it, say something, stop it, close it with all its processes."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.clock import Clock
from wedgehog.harness.processes import Started

Stimulus = Literal["user", "wake_up", "resume"]
Ended = Literal["by itself", "aborted", "gave up", "deadline"]


class AgentError(Exception):
    """The agent cannot be run as its spec says; one line for a person. It is nobody's verdict."""


@dataclass(frozen=True, slots=True)
class Place:
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
    web_url: str | None = None

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
    ended: Ended = "by itself"


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


class OpenableSession(Session, Protocol):
    """What `open_agent` needs besides, and keeps to itself."""

    async def open(self) -> None:
        """Whatever must be there before the first message."""
        ...

    async def close(self) -> None:
        """Let go of what is not a process."""
        ...


def open_agent(spec: AgentSpec, place: Place) -> AbstractAsyncContextManager[Session]:
    """Open `spec`'s agent in `place`; leaving the context ends every process of it. Errors: AgentError."""
    return _open(spec, place)


@asynccontextmanager
async def _open(spec: AgentSpec, place: Place) -> AsyncIterator[Session]:
    from wedgehog.harness.agents.callable import CallableSession
    from wedgehog.harness.agents.http import HttpSession
    from wedgehog.harness.agents.process import CommandSession
    from wedgehog.harness.agents.surroundings import prepare
    from wedgehog.harness.processes import Tree

    kinds: dict[str, Callable[..., OpenableSession]] = {
        "command": CommandSession,
        "http": HttpSession,
        "callable": CallableSession,
    }
    surroundings = prepare(spec, place)
    tree = Tree(surroundings.mark)
    try:
        session = kinds[spec.kind](spec, place, surroundings, tree)
        try:
            await session.open()
            yield session
        finally:
            await session.close()
    finally:
        await tree.end()
