"""Finds an agent's worker: the process below the agent's own one that asks the model, and whose output the agent reads.

So it is with a program that runs another agent as a command, speaks ACP with one, or keeps a server of one. A launcher
that runs a program in its own place passes its own output on to it: both are one agent, and there is no worker.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from wedgehog.harness.sandbox.process_info import Peer

MODEL = "llm"
"""The link to the model."""
Peers = Callable[[Iterable[psutil.Process]], Sequence[Peer]]
"""The open connections of processes, with the links that they lead to."""


def workers_below(leader: int, peers: Peers, tool: psutil.Process | None = None) -> Iterator[psutil.Process]:
    """The workers of one agent's process, each with what is below it; none if that process asks the model itself.

    A worker need not be connected while a tool of its own runs: `tool` is the shell that runs one.
    """
    with suppress(psutil.Error):
        top = psutil.Process(leader)
        output, below = _output(top), top.children(recursive=True)
        asking = {peer.pid for peer in peers([top, *below]) if peer.link == MODEL}
        found = [one for one in below if one.pid in asking]
        if not found and tool is not None and tool in below:
            found = [tool]
        heads = [_head(one, top) for one in found]
        if top.pid in asking or any(_output(head) in (output, "") for head in heads):
            return
        for head in dict.fromkeys(heads):
            if head != tool:
                yield head
                yield from head.children(recursive=True)


def _head(process: psutil.Process, top: psutil.Process) -> psutil.Process:
    """The child of `top` that `process` is, or is below."""
    chain = [process, *process.parents()]
    return chain[chain.index(top) - 1]


def _output(process: psutil.Process) -> str:
    """What the standard output of a process leads to; empty if that cannot be read."""
    with suppress(OSError):
        return str(Path(f"/proc/{process.pid}/fd/1").readlink())
    return ""
