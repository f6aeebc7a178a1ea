"""What a fault on people and processes works with: the hands that do it, and whom it means."""

from typing import ClassVar, Literal, Protocol

from wedgehog.harness.faults.base import Aim, Fault, Need

Whom = Literal["tree", "leader", "tool", "server"]
"""`tree`: the agent's process and everything below it; `leader`: that process alone; `tool`: the shell that runs the
scripted command, and what is below it; `server`: the tool host's."""
SignalName = Literal["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGABRT", "SIGSEGV"]
Demand = Literal["abort", "give_up"]


class Hands(Protocol):
    """What can be done to an agent from outside. Each call proves what it did, and returns when it is done."""

    async def demand(self, what: Demand) -> None:
        """Ask who plays the turn to stop it, or to close the client connection."""

    async def speak(self, turn: int) -> None:
        """Give the message of this turn now."""

    async def kill(self, signal: SignalName, whom: Whom, *, tear: bool) -> None:
        """Send a signal; `tear` then takes away half of the last line of the youngest session file."""

    async def freeze(self, whom: Whom, for_s: float) -> None:
        """Stop processes, and let them go on after so long."""

    async def fill(self, free_bytes: int) -> None:
        """Leave room for so many bytes on the agent's disk, until the fault is healed."""


class ActorFault(Fault):
    """What people and processes do."""

    __slots__ = ()

    @property
    def timed(self) -> Literal["never", "alone", "always"]:
        """People act when they like."""
        return "always"

    async def act(self, hands: Hands) -> None:
        """Do it."""
        raise NotImplementedError


class ProcessFault(ActorFault):
    """What is done to processes, when a reply, a tool or a session file has come so far."""

    __slots__ = ()
    aim_hint: ClassVar[str] = ""
    """What else a user may have meant by another link."""

    @property
    def at_server(self) -> bool:
        """Whether the process is our tool host's server, and none of the agent's."""
        return False

    @property
    def aim(self) -> Aim:
        """Processes are struck while a call is under way, or by a timer."""
        link = "tool:mcp" if self.at_server else "agent"
        phases = ("headers", "body", "middle", "terminal", "linger")
        told = "is done to processes"
        return Aim((link,), told, (None, *phases), f"{told}: write one of {', '.join(phases)}", self.aim_hint)

    @property
    def needs(self) -> tuple[Need, ...]:
        """Processes of the agent that are ours to end."""
        return () if self.at_server else ("processes",)

    @property
    def timed(self) -> Literal["never", "alone", "always"]:
        """A call sets it off, or time alone."""
        return "alone"
