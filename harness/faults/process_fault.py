"""Base of faults on processes and people, and the operations that they use."""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol

from wedgehog.harness.faults.base import Aim, Fault, Need

Whom = Literal["tree", "leader", "worker", "subagent", "tool", "server"]
"""`tree`: the agent's process and everything below it; `leader`: that process alone; `worker`: the process below it
that asks the model, and all below that; `subagent`: such a process where the agent itself asks it too; `tool`: the
shell that runs the scripted command, and all below it; `server`: the tool host's."""
SignalName = Literal["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGABRT", "SIGSEGV"]
Demand = Literal["abort", "give_up"]


BadCertificateKind = Literal["expired", "wrong_name", "unknown_ca"]


class HostHarm(NamedTuple):
    """How a host is harmed: its lookup, or its certificate; None: not."""

    lookup: Literal["no_such_name", "server_failure", "no_answer", "late"] | None = None
    late_s: float = 0.0
    certificate: BadCertificateKind | None = None


class Hands(Protocol):
    """Operations on an agent from outside. Each call proves what it did, and returns when it is done."""

    async def demand(self, what: Demand) -> None:
        """Ask the turn player to stop the turn, or to close the client connection."""

    async def speak(self, turn: int) -> None:
        """Send the message of this turn now."""

    async def kill(self, signal: SignalName, whom: Whom, *, tear: bool) -> None:
        """Send a signal; `tear` then removes half of the last line of the newest session file."""

    async def freeze(self, whom: Whom, for_s: float) -> None:
        """Stop processes, and continue them after `for_s` seconds."""

    async def fill(self, free_bytes: int) -> None:
        """Leave `free_bytes` bytes of room on the agent's disk until the fault is healed."""

    async def lock_databases(self) -> None:
        """Hold the locks of the agent's SQLite databases until the fault is healed."""

    async def harm_host(self, harm: HostHarm) -> None:
        """Harm the hosts behind the fault's link until the fault is healed."""


class ActorFault(Fault):
    """What people and processes do: at a point of a reply, a tool or a session file, or after a time."""

    __slots__ = ()
    timed = True
    says: ClassVar[str] = "is done to the agent"
    aim_hint: ClassVar[str] = ""
    """What to write for another link."""

    @property
    def links(self) -> tuple[str, ...]:
        """The links that it fits."""
        return "agent", "llm"

    @property
    def aim(self) -> Aim:
        """During a call, or after a time."""
        phases = ("headers", "body", "middle", "terminal", "linger")
        phases_say = f"{self.says}: write one of {', '.join(phases)}"
        return Aim(self.links, self.says, (None, *phases), phases_say, self.aim_hint)

    async def act(self, hands: Hands) -> None:
        """Cause the fault."""
        raise NotImplementedError


class ProcessFault(ActorFault):
    """What is done to processes."""

    __slots__ = ()
    says = "is done to processes"

    @property
    def hits(self) -> Whom:
        """Which processes it hits: those of its parameter `whom`, if it has one."""
        return getattr(self, "whom", "tree")

    @property
    def at_server(self) -> bool:
        """Whether the process is our tool host's server, not the agent's."""
        return self.hits == "server"

    @property
    def at_subagent(self) -> bool:
        """Whether it hits the process of a subagent, which few agents have."""
        return self.hits == "subagent"

    @property
    def links(self) -> tuple[str, ...]:
        """The agent's link, or the tool host's."""
        return ("tool:mcp" if self.at_server else "agent",)

    @property
    def needs(self) -> tuple[Need, ...]:
        """Processes of the agent that the harness may end."""
        if self.at_server:
            return ()
        return ("processes", "worker") if self.hits == "worker" else ("processes",)


class HostFault(ActorFault):
    """What is done to the names and certificates of hard-coded hosts."""

    __slots__ = ()
    searched: ClassVar[bool] = False
    needs = ("hosts",)

    @property
    def aim(self) -> Aim:
        """Before a connection to a host."""
        says = "is done to a hard-coded host"
        return Aim(("llm", "chat"), says, ("connect",), f"{says} before a connection: write `phase: connect`")


@dataclass(frozen=True, slots=True)
class Speak(ProcessFault):
    """The message of `turn` is sent while the agent still works: a turn's `during`, which no name in `do:` means."""

    turn: int

    async def act(self, hands: Hands) -> None:
        """Send the message."""
        await hands.speak(self.turn)


Speak.name, Speak.family = "message", "actor"
