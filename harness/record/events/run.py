"""The run and its agent."""

from dataclasses import dataclass

from wedgehog.harness.record.events.base import Event


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
    """Seconds from the last reply, and from the answer's output if known, to the end of the turn in the control run."""
    turns: int = 1
    """The number of stimuli, without the recovery message."""
    turn_s: float | None = None
    """Seconds after which the harness stops a turn, apart from what it grants on a busy machine."""
    price_as: str = "claude-sonnet-4-6"
    resumes: bool = False
    """The agent keeps a conversation: its control run carried the first message on, or its spec has a `resume`."""
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
    ready_s: float = 0.0
    """Seconds from its start until it could take its first message; an agent that starts with each message has none."""
    began_s: float | None = None
    """When the process was started: this event is written at the end of a turn. None: not known."""
    interpreter: str = ""
    """The interpreter that runs the entry file, with its version as far as files tell it; empty: none, or not known."""
    source: str = ""
    """The project and the commit in whose folder the entry file lies; empty if it lies in none."""


class AskerSeen(Event):
    """In the control run, a request came from processes below the agent's own one, whose output the agent reads."""

    pids: tuple[int, ...]


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


class ConnectionsWatched(Event):
    """The TCP connections of the agent's processes to other machines, as looked for while the run lasted."""

    looks: int
    every_s: float
    """The pause between two looks; a shorter connection can be missed."""
    others: tuple[str, ...] = ()
    """The addresses, `93.184.216.34:443`, each once."""


class BadCertificateShown(Event):
    """An agent got a bad certificate for one of its `hosts`."""

    host: str
    flaw: str
    """expired, wrong_name or unknown_ca"""
    accepted: bool
    """Whether it went on, so that it can send its key there."""


class Trouble(Event):
    """The harness failed: the run is an error, not a failure of the agent."""

    what: str


class Note(Event):
    """A remark without effect on the verdict."""

    what: str
