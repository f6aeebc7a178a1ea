"""Faults on processes and disks: a crash, a process that stands still (a laptop asleep), a full disk, a user's stop."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.parameters import Positive
from wedgehog.harness.faults.process_fault import ActorFault, Hands, ProcessFault, SignalName, Whom


@fault("kill", family="actor")
class Kill(ProcessFault):
    """Processes are ended by a signal: the agent's `tree`, `leader`, `worker`, `subagent` or `tool`, or our `server`.

    The turn of a killed agent is over, and no answer is expected; the next message goes to the same session. `tear`
    removes half of the last line of the session file that was written last, as a crash does in the middle of a write.
    A database, and a file that is replaced whole, stay as they are. A `tool` is found by its command line: where one
    shell reads all commands from its stdin, the scenario is skipped.
    """

    usual: ClassVar[int] = 4
    signal: SignalName = "SIGKILL"
    whom: Whom = "tree"
    tear: bool = False
    aim_hint: ClassVar[str] = ", or `whom: server` and `link: tool:mcp`"
    undrawn: ClassVar[tuple[str, ...]] = ("tear", "worker", "subagent")
    """A file that is replaced whole is never torn, and few agents have a worker, or a process for a subagent."""

    async def act(self, hands: Hands) -> None:
        """Send the signal."""
        await hands.kill(self.signal, self.whom, tear=self.tear)


@fault("freeze", family="actor")
class Freeze(ProcessFault):
    """Processes stand still for `for_s` seconds (SIGSTOP, then SIGCONT): `tree` or `leader`, `worker`, or `tool`.

    Nothing is lost. No time bound counts while the agent itself stands still; it counts while only its worker or its
    tool does.
    """

    undrawn: ClassVar[tuple[str, ...]] = ("worker",)
    for_s: Positive
    whom: Literal["tree", "leader", "worker", "tool"] = "tree"

    async def act(self, hands: Hands) -> None:
        """Stop them for a while."""
        await hands.freeze(self.whom, self.for_s)


@fault("disk_full", family="actor")
class DiskFull(ProcessFault):
    """The disk on which the agent's HOME and session folder are has room for `free_bytes` more, until it is healed.

    Room is counted in whole pages of 4,096 bytes; free room in a file's last page is used first. It needs Linux
    with user namespaces, and no root; elsewhere the scenario is skipped.
    """

    free_bytes: Annotated[int, Field(ge=0)] = 0

    lasts_its_turn = True
    of_disk = True
    needs = ("processes", "disk")

    async def act(self, hands: Hands) -> None:
        """Fill the disk."""
        await hands.fill(self.free_bytes)


@fault("database_locked", family="actor")
class DatabaseLocked(ProcessFault):
    """Another process writes to the SQLite databases in the agent's HOME, session folder and working folder.

    It holds the lock of each (`BEGIN EXCLUSIVE`) until the fault is healed: the agent cannot write, and without a
    write-ahead log it cannot read either. It gets `database is locked` at once, or after its busy timeout. A scenario
    is skipped for an agent without such a database.
    """

    searched: ClassVar[bool] = False
    unmet: ClassVar[str] = "the agent has no SQLite database in its home, session and working folder that can be locked"
    for_some = True
    lasts_its_turn = True
    of_memory = True

    async def act(self, hands: Hands) -> None:
        """Hold the locks."""
        await hands.lock_databases()


@fault("abort", family="actor")
class Abort(ActorFault):
    """The user stops the turn, as the agent's spec says a user does."""

    usual: ClassVar[int] = 5
    needs = ("abort",)

    async def act(self, hands: Hands) -> None:
        """Stop the turn."""
        await hands.demand("abort")


@fault("give_up", family="actor")
class GiveUp(ActorFault):
    """The front end gives up: the client connection is closed, and the agent's service is left alone."""

    links = ("channel",)
    says = "is something the front end does"
    needs = ("front_end",)

    async def act(self, hands: Hands) -> None:
        """Close the connection."""
        await hands.demand("give_up")
