"""Connections of the agent to other machines are looked for; those of other processes are not the agent's."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Mapping

import pytest

from wedgehog.harness.run.watching.connection_watch import ConnectionWatch, RunConnections


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


async def _watched(looks: Looks, pids: Callable[[], Iterable[int]]) -> RunConnections:
    """One run that lasts for these looks; `pids` finds its agent's processes."""
    async with ConnectionWatch(looks.elsewhere, looks.pause) as watch, watch.of(pids) as run:
        await looks.over.wait()
    return run


async def test_one_look_serves_all_runs():
    """Each look walks all sockets of the machine. A run is told only what its own agent holds."""
    with socket.socket() as mine:
        both = {os.fstat(mine.fileno()).st_ino: "192.0.2.1:443"}
        looks = Looks(both, {}, {})
        async with (
            ConnectionWatch(looks.elsewhere, looks.pause) as watch,
            watch.of(lambda: [os.getpid()]) as one,
            watch.of(list) as other,
        ):
            await looks.over.wait()
    assert looks.looked == 3, "one for each run that begins, and one later"
    assert one.seen is not None and other.seen is not None
    assert (one.seen.looks, one.seen.others) == (2, ("192.0.2.1:443",))
    assert (other.seen.looks, other.seen.others) == (2, ())


async def test_the_look_of_a_run_that_begins_is_no_second_look_for_another():
    """Two looks in one moment can both miss a process that is being forked; the socket would count as another's."""
    with socket.socket() as mine:
        both = {os.fstat(mine.fileno()).st_ino: "192.0.2.1:443"}
        looks = Looks(*[both] * 3)
        pids = lambda: [os.getpid()] if looks.looked == 3 else []  # noqa: E731
        async with ConnectionWatch(looks.elsewhere, looks.pause) as watch, watch.of(pids) as one, watch.of(list):
            await looks.over.wait()
    assert one.seen is not None and one.seen.others == ("192.0.2.1:443",)


async def test_without_a_run_there_is_no_look():
    """As while a report is made."""
    looks, pauses, over = Looks(*[{}] * 9), iter(range(3)), asyncio.Event()

    async def pause(seconds: float) -> None:
        if next(pauses, None) is None:
            over.set()
            await asyncio.Event().wait()

    async with ConnectionWatch(looks.elsewhere, pause) as watch:
        async with watch.of(list):
            assert looks.looked == 1
        await over.wait()
    assert looks.looked == 1


async def test_only_sockets_that_the_agent_holds_are_its_own():
    """And each address is told once, though it was seen in several looks."""
    with socket.socket() as mine:
        inode = os.fstat(mine.fileno()).st_ino
        both = {inode: "192.0.2.1:443", inode + 1: "192.0.2.2:443"}
        looks = Looks({}, both, both)
        run = await _watched(looks, lambda: [os.getpid()])
    assert run.seen is not None
    assert (run.seen.looks, run.seen.others) == (3, ("192.0.2.1:443",))


async def test_processes_are_looked_for_only_where_a_socket_leads_away():
    """That takes time on a big machine. A process that has ended holds nothing."""
    asked: list[int] = []

    def pids() -> list[int]:
        asked.append(1)
        return [2**22 + 1]

    looks = Looks({}, {}, {7: "192.0.2.1:443"})
    run = await _watched(looks, pids)
    assert asked == [1] and run.seen is not None and run.seen.others == ()


async def test_a_socket_of_another_program_is_asked_for_only_twice():
    """A browser keeps its own for hours. A new socket with the same number is asked for again."""
    asked: list[int] = []

    def pids() -> list[int]:
        asked.append(looks.looked)
        return []

    theirs = {7: "192.0.2.1:443"}
    looks = Looks(theirs, theirs, theirs, theirs, {}, theirs)
    await _watched(looks, pids)
    assert asked == [1, 2, 6]


async def test_a_connection_of_a_process_that_the_first_look_missed_is_still_seen():
    """As that of a process that was just being forked."""
    with socket.socket() as mine:
        both = {os.fstat(mine.fileno()).st_ino: "192.0.2.1:443"}
        looks = Looks(both, both)
        run = await _watched(looks, lambda: [os.getpid()] * (looks.looked - 1))
    assert run.seen is not None and run.seen.others == ("192.0.2.1:443",)


async def test_without_a_look_nothing_is_claimed():
    """As where the kernel refuses to list its sockets."""

    class Refuses(Looks):
        def elsewhere(self) -> Mapping[int, str]:
            self.looked += 1
            raise OSError

    looks = Refuses({})
    run = await _watched(looks, list)
    assert run.seen is None


async def test_a_watch_holds_a_socket_only_while_it_is_open(monkeypatch: pytest.MonkeyPatch):
    """A simulated run makes one, and does not open it."""
    opened: list[Kernel] = []
    monkeypatch.setattr(Kernel, "open", lambda: opened.append(Kernel()) or opened[-1], raising=False)
    monkeypatch.setattr("wedgehog.harness.run.watching.connection_watch.TcpDiag", Kernel)
    watch = ConnectionWatch()
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
