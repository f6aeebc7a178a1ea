"""A crash, or somebody who ends a process."""

from dataclasses import dataclass
from typing import Literal

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.process_fault import ProcessFault, Whom

SignalName = Literal["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGABRT", "SIGSEGV"]


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
