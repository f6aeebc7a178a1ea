"""What one run gives its agent: addresses, folders, a clock, and what is known of its work."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from wedgehog.harness.agents.templates import expand
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.sandbox.disk import SmallDisk
from wedgehog.harness.sandbox.hosts.private_hosts import PrivateHosts

if TYPE_CHECKING:
    from wedgehog.harness.agents.callables.warm_hosts import WarmHosts
    from wedgehog.harness.agents.pages.browser import Browser
    from wedgehog.harness.services.chat.service import ChatService

FIRST_FOLDER = "session"
"""The folder for sessions, in the run's folder."""
MOST_WAIT_S = 10.0
"""Waits for a processor make the silence that ends a turn longer by at most this time."""


def no_wait(since_s: float) -> float:
    """No time, for a run that does not measure how long it waits for a processor."""
    return 0.0


class Work(Protocol):
    """What the agent waits for. A turn is named by the words of its message."""

    def has_asked(self, words: str) -> bool:
        """Whether the model was asked in this turn."""

    def since_s(self, words: str, shown: str) -> float | None:
        """When the last open request of this turn came, or its last running command began; None: there is neither.

        Infinite if `shown`, its last message, is only a part of a reply that still comes. 0, the start of the run, if
        the agent only waits for its chat.
        """

    def left_off_s(self, words: str, shown: str, at_s: float) -> float | None:
        """When the last reply of this turn ended, if it was no answer and the agent has said no word of it since.

        It may try again, send the result of a tool, or tell an error. `shown` is its last message, of the time `at_s`.
        """

    def begun_s(self, words: str, shown: str) -> float | None:
        """When the answer of this turn ended, if `shown`, its last message, is only the beginning of it."""

    def unread(self, words: str, shown: str) -> bool:
        """Whether the model has given the whole answer of this turn, and `shown` has not its last word."""


class _NoWork:
    """Of a run that does not know."""

    def has_asked(self, words: str) -> bool:
        return True

    def since_s(self, words: str, shown: str) -> float | None:
        return None

    def left_off_s(self, words: str, shown: str, at_s: float) -> float | None:
        return None

    def begun_s(self, words: str, shown: str) -> float | None:
        return None

    def unread(self, words: str, shown: str) -> bool:
        return False


NO_WORK = _NoWork()


@dataclass(frozen=True, slots=True)
class AgentContext:
    """What one run gives its agent. Below `folder`, the agent has its own home/, cwd/, tmp/ and session/."""

    folder: Path
    llm_url: str
    key: str
    session: str
    """The name of the session, for the agent."""
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
    hosts: PrivateHosts | None = None
    """The private network for an agent with hard-coded hosts."""
    chat: "ChatService | None" = None
    """The service from which it gets its messages."""
    chat_url: str | None = None
    chat_place: int = 0
    """The place of the session's chat among those of the service."""
    backends: Mapping[str, str] = field(default_factory=dict)
    """host:port of each of the spec's `links`."""
    simulated: bool = False
    """The agent runs on the harness's own event loop, in virtual time."""
    session_folder: str = FIRST_FOLDER
    """The name of the folder for its sessions, in `folder`."""
    pipe: str = ""
    """`host:port:secret` of the pipe server, for `wedgehog-pipe`; empty if there is none."""
    port: int | None = None
    """A free port for its service; None: any."""
    front_url: str | None = None
    """Where its user reaches that service, if a link lies between them."""
    browser: "Callable[[], Browser] | None" = None
    """Gives the browser of its user, in which pages are opened."""
    browser_clock_s: float = 0.0
    """How far the browser's clock is ahead."""
    one_user: bool = False
    """Whether all sessions are conversations of one user."""
    warm: "WarmHosts | None" = None
    """Forks a callable's process, if it can."""
    waited_s: Callable[[float], float] = no_wait
    """How long the run and the harness, which answers it, have waited for a processor since a time of its clock."""
    work: Work = NO_WORK
    """What it waits for."""

    def could_work_s(self, since_s: float) -> float:
        """How long the agent could work since then: the time that has passed, without waits for a processor."""
        return self.clock.now() - since_s - min(self.waited_s(since_s), MOST_WAIT_S)

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
        return self.folder.absolute() / self.session_folder


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stays the same for the whole run."""

    values: Mapping[str, str]
    """Template values; `message` is added in each turn."""
    env: Mapping[str, str]
    mark: str
    """WEDGEHOG_RUN of its processes, below the run's own mark: closing the agent does not end the run's servers."""

    def fill(self, text: str, message: str | None = None) -> str:
        """`text` with its templates replaced."""
        return expand(text, self.values if message is None else {**self.values, "message": message})
