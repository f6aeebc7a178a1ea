"""A crash, or the end of a process by a signal."""

from typing import ClassVar

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.process_fault import Hands, ProcessFault, SignalName, Whom


@fault("kill", family="actor")
class Kill(ProcessFault):
    """Processes are ended by a signal: the agent's `tree` or its `leader`, the `tool` that runs, or the tool `server`.

    The turn of a killed agent is over, and no answer is expected; the next message goes to the same session. `tear`
    removes half of the last line of the session file that was written last, as a crash does in the middle of a write.
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
