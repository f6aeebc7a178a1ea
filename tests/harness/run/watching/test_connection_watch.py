"""Connections of the agent to other machines are looked for; those of other processes are not the agent's."""

import asyncio
import os
import socket
from collections.abc import Mapping

import pytest

from wedgehog.harness.run.watching.connection_watch import ConnectionWatch


class Looks:
    """What the kernel says in each look; then the watch waits for ever."""

    def __init__(self, *said: Mapping[int, str]) -> None:
        self.said, self.looked, self.over = list(said), 0, asyncio.Event()

    def elsewhere(self) -> Mapping[int, str]:
        self.looked += 1
        return self.said[self.looked - 1]

    async def pause(self, seconds: float) -> None:
        if self.looked == len(self.said):
            self.over.set()
            await asyncio.Event().wait()


async def test_only_sockets_that_the_agent_holds_are_its_own():
    """And each address is told once, though it was seen in several looks."""
    with socket.socket() as mine:
        inode = os.fstat(mine.fileno()).st_ino
        both = {inode: "192.0.2.1:443", inode + 1: "192.0.2.2:443"}
        looks = Looks({}, both, both)
        watch = ConnectionWatch(lambda: [os.getpid()], looks.elsewhere, looks.pause)
        async with watch:
            await looks.over.wait()
    assert watch.seen is not None
    assert (watch.seen.looks, watch.seen.others) == (3, ("192.0.2.1:443",))


async def test_processes_are_looked_for_only_where_a_socket_leads_away():
    """That takes time on a big machine. A process that has ended holds nothing."""
    asked: list[int] = []

    def pids() -> list[int]:
        asked.append(1)
        return [2**22 + 1]

    looks = Looks({}, {}, {7: "192.0.2.1:443"})
    watch = ConnectionWatch(pids, looks.elsewhere, looks.pause)
    async with watch:
        await looks.over.wait()
    assert asked == [1] and watch.seen is not None and watch.seen.others == ()


async def test_a_socket_of_another_program_is_asked_for_only_twice():
    """A browser keeps its own for hours. A new socket with the same number is asked for again."""
    asked: list[int] = []

    def pids() -> list[int]:
        asked.append(looks.looked)
        return []

    theirs = {7: "192.0.2.1:443"}
    looks = Looks(theirs, theirs, theirs, theirs, {}, theirs)
    watch = ConnectionWatch(pids, looks.elsewhere, looks.pause)
    async with watch:
        await looks.over.wait()
    assert asked == [1, 2, 6]


async def test_a_connection_of_a_process_that_the_first_look_missed_is_still_seen():
    """As that of a process that was just being forked."""
    with socket.socket() as mine:
        both = {os.fstat(mine.fileno()).st_ino: "192.0.2.1:443"}
        looks = Looks(both, both)
        watch = ConnectionWatch(lambda: [os.getpid()] * (looks.looked - 1), looks.elsewhere, looks.pause)
        async with watch:
            await looks.over.wait()
    assert watch.seen is not None and watch.seen.others == ("192.0.2.1:443",)


async def test_without_a_look_nothing_is_claimed():
    """As where the kernel refuses to list its sockets."""

    class Refuses(Looks):
        def elsewhere(self) -> Mapping[int, str]:
            self.looked += 1
            raise OSError

    looks = Refuses({})
    watch = ConnectionWatch(list, looks.elsewhere, looks.pause)
    async with watch:
        await looks.over.wait()
    assert watch.seen is None


async def test_a_watch_holds_a_socket_only_while_it_is_open(monkeypatch: pytest.MonkeyPatch):
    """A simulated run makes one, and does not open it."""
    opened: list[Kernel] = []
    monkeypatch.setattr(Kernel, "open", lambda: opened.append(Kernel()) or opened[-1], raising=False)
    monkeypatch.setattr("wedgehog.harness.run.watching.connection_watch.TcpDiag", Kernel)
    watch = ConnectionWatch(list)
    assert opened == []
    async with watch:
        assert [it.closed for it in opened] == [False]
    assert [it.closed for it in opened] == [True]


class Kernel:
    """A view of no sockets."""

    closed = False

    def elsewhere(self) -> Mapping[int, str]:
        return {}

    def close(self) -> None:
        self.closed = True
