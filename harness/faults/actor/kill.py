"""A crash, or somebody who ends a process."""

from dataclasses import dataclass
from typing import ClassVar

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.process_fault import Hands, ProcessFault, SignalName, Whom


@fault("kill", family="actor")
@dataclass(frozen=True, slots=True)
class Kill(ProcessFault):
    """Processes are ended by a signal: the agent's `tree` or its `leader`, the `tool` that runs, or the tool `server`.

    The turn of a killed agent is over and owes nothing; the next message goes to the same session, as its user would
    do it. `tear` takes away half of the last line of the session file that was written last, as a crash can that leaves
    a buffer half written.
    """

    signal: SignalName = "SIGKILL"
    whom: Whom = "tree"
    tear: bool = False
    aim_hint: ClassVar[str] = ", or `whom: server` and `link: tool:mcp`"

    @property
    def at_server(self) -> bool:
        """As `whom` says."""
        return self.whom == "server"

    async def act(self, hands: Hands) -> None:
        """Send the signal."""
        await hands.kill(self.signal, self.whom, tear=self.tear)
