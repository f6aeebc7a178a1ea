"""What a fault on processes works with: whom it means."""

from typing import Literal

from wedgehog.harness.faults.base import Fault

Whom = Literal["tree", "leader", "tool", "server"]
"""`tree`: the agent's process and everything below it; `leader`: that process alone; `tool`: the shell that runs the
scripted command, and what is below it; `server`: the tool host's."""


class ProcessFault(Fault):
    """What is done to processes, when a reply, a tool or a session file has come so far."""

    __slots__ = ()
