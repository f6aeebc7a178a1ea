"""Finds an agent's worker: the process below the agent's own one that asks the model, and whose output the agent reads.

A program has one if it runs another agent as a command, speaks ACP with one, or keeps a server of one. A launcher has
none: it gives its own output to the program that it starts, and both are one agent. A program that makes one request
and ends, such as curl, is no worker either.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from wedgehog.harness.sandbox.process_info import Peer

MODEL = "llm"
"""The link to the model."""
Peers = Callable[[Iterable[psutil.Process]], Sequence[Peer]]
"""Finds the open connections of processes, with the links that they lead to."""


def askers_below(leader: int, peers: Peers) -> list[psutil.Process]:
    """The processes below an agent's own one that ask the model; none if the agent itself asks it."""
    with suppress(psutil.Error):
        top = psutil.Process(leader)
        below = top.children(recursive=True)
        if not below:
            return []
        asking = {peer.pid for peer in peers([top, *below]) if peer.link == MODEL}
        found = [one for one in below if one.pid in asking]
        if top.pid not in asking and not any(_is_the_agent(one, top) for one in found):
            return found
    return []


def workers_below(
    leader: int, peers: Peers, tool: psutil.Process | None = None, asked: Iterable[psutil.Process] = ()
) -> Iterator[psutil.Process]:
    """The workers of one agent's process, each with what is below it.

    A worker may have no connection while a tool of its own runs, or while the session is idle. It is then found by
    `tool`, the shell that runs the tool, or among `asked`, the processes that have asked the model.
    """
    with suppress(psutil.Error):
        top = psutil.Process(leader)
        found = askers_below(leader, peers) or [one for one in asked if one.is_running() and top in one.parents()]
        if not found and tool is not None and top in tool.parents() and not _is_the_agent(tool, top):
            found = [tool]
        for head in dict.fromkeys(_head(one, top) for one in found):
            if head != tool:
                yield head
                yield from head.children(recursive=True)


def subagents_below(leader: int, peers: Peers) -> Iterator[psutil.Process]:
    """The processes below an agent's own one that ask the model now, and whose output the agent reads.

    A launcher gives its own output to the agent, which is none of them. What a subagent has started is not among them:
    it may hold the subagent's output open.
    """
    with suppress(psutil.Error):
        top = psutil.Process(leader)
        below = top.children(recursive=True)
        asking = {peer.pid for peer in peers(below) if peer.link == MODEL} if below else set()
        for one in below:
            if one.pid in asking and _output(one) not in (_output(top), ""):
                yield one


def _is_the_agent(process: psutil.Process, top: psutil.Process) -> bool:
    """Whether what the agent started for this process writes where the agent does."""
    return _output(_head(process, top)) in (_output(top), "")


def _head(process: psutil.Process, top: psutil.Process) -> psutil.Process:
    """The child of `top` that `process` is, or is below."""
    chain = [process, *process.parents()]
    return chain[chain.index(top) - 1]


def _output(process: psutil.Process) -> str:
    """What the standard output of a process leads to; empty if that cannot be read."""
    with suppress(OSError):
        return str(Path(f"/proc/{process.pid}/fd/1").readlink())
    return ""
