"""One blow at several processes: who gets it, that it was delivered, and that they are gone or stand still."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from wedgehog.harness.sandbox.cleanup import alive
from wedgehog.harness.sandbox.signals import deliver, gone, reap, stopped, tree

FAMILY = """
import subprocess, sys, time
subprocess.Popen(["sh", "-c", "sleep 60 & wait"])
subprocess.Popen(["sleep", "60"], start_new_session=True)
subprocess.run(["sh", "-c", "sleep 61 &"])
print("ready", flush=True)
time.sleep(60)
"""
FORKING = """
import os, time
print("ready", flush=True)
if os.fork():
    time.sleep(30)
while True:
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
    time.sleep(0.001)
"""


@pytest.fixture
def family() -> Iterator["subprocess.Popen[bytes]"]:
    """A process with a shell, a grandchild, a child in a session of its own, and one that has lost its parent."""
    process = started(FAMILY)
    yield process
    _end(process)


def started(code: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    return process


def _end(process: "subprocess.Popen[bytes]") -> None:
    for left in [*tree(process.pid)]:
        with suppress(psutil.Error):
            left.kill()
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def names(processes: list[psutil.Process]) -> list[str]:
    return [process.name() for process in processes]


async def until_whole(leader: int, size: int) -> list[psutil.Process]:
    """Its tree, once everybody has been born."""
    async with asyncio.timeout(5):
        while len(set(tree(leader))) < size:
            await asyncio.sleep(0.01)
    return list(dict.fromkeys(tree(leader)))


async def test_a_tree_is_the_leader_first_and_all_below_it(family: "subprocess.Popen[bytes]"):
    """Also who has a session of its own, as long as its parent lives, and who is only of its group."""
    whole = await until_whole(family.pid, 5)
    assert whole[0].pid == family.pid
    async with asyncio.timeout(5):
        while names(whole).count("sleep") < 3:  # born, but not yet what they will be
            await asyncio.sleep(0.01)
    assert sorted(names(whole[1:])) == ["sh", "sleep", "sleep", "sleep"]


async def test_a_kill_is_one_blow_and_leaves_nobody(family: "subprocess.Popen[bytes]"):
    """All of them get it, all of them are gone, and nobody of ours is left unburied."""
    whole = await until_whole(family.pid, 5)
    hit = deliver(lambda: tree(family.pid), signal.SIGKILL)
    assert set(hit) == set(whole)
    assert await gone(hit, asyncio.sleep, 5) == []
    reap(hit, but=[family.pid])
    assert family.wait(5) == -signal.SIGKILL, "its parent hears of it as ever"


async def test_who_forks_while_it_is_hit_gets_away_with_nobody():
    """A tree that grows all the time is stopped before it is counted."""
    process = started(FORKING)
    group = process.pid
    try:
        await until_whole(process.pid, 10)
        hit = deliver(lambda: tree(process.pid), signal.SIGKILL)
        assert len(hit) > 9 and await gone(hit, asyncio.sleep, 5) == []
        left = [it for it in psutil.process_iter() if _group_of(it) == group and alive(it)]
        assert left == []
    finally:
        _end(process)


def _group_of(process: psutil.Process) -> int:
    try:
        return os.getpgid(process.pid)
    except OSError:
        return 0


async def test_a_signal_that_can_be_handled_is_not_preceded_by_another(tmp_path: Path):
    """No SIGSTOP comes before a SIGTERM: its handler runs at once."""
    mark = tmp_path / "mark"
    code = f"import signal, time; signal.signal(15, lambda *_: open({str(mark)!r}, 'w').close())"
    process = started(f"{code}\nprint('ready', flush=True)\nfor _ in range(600): time.sleep(0.1)")
    try:
        (hit,) = deliver(lambda: tree(process.pid), signal.SIGTERM)
        assert await gone([hit], asyncio.sleep, 0.3) == [process.pid], "it has handled it, and lives"
        assert mark.exists() and hit.status() != psutil.STATUS_STOPPED
    finally:
        _end(process)


async def test_who_stands_still_is_seen_to(family: "subprocess.Popen[bytes]"):
    """And goes on when it is told to."""
    await until_whole(family.pid, 5)
    hit = deliver(lambda: tree(family.pid), signal.SIGSTOP)
    assert await stopped(hit, asyncio.sleep, 5) == []
    assert {process.status() for process in hit} == {psutil.STATUS_STOPPED}
    for process in hit:
        process.send_signal(signal.SIGCONT)
    assert await stopped(hit, asyncio.sleep, 0.1) != []


async def test_who_has_ended_cannot_be_hit():
    """A zombie is nobody; nor is a pid that never was."""
    process = subprocess.Popen(["true"])
    await asyncio.sleep(0.2)
    assert deliver(lambda: tree(process.pid), signal.SIGKILL) == []
    process.wait()
    assert deliver(lambda: tree(process.pid), signal.SIGTERM) == []


class Noted:
    """A process that notes its signals."""

    def __init__(self) -> None:
        self.got: list[signal.Signals] = []

    def is_running(self) -> bool:
        return True

    def status(self) -> str:
        return psutil.STATUS_SLEEPING

    def send_signal(self, number: signal.Signals) -> None:
        self.got.append(number)


def test_who_was_born_while_others_were_stopped_is_looked_for_again():
    """Until a look finds nobody new; all stand still before the first one dies."""
    parent, child, grandchild = Noted(), Noted(), Noted()
    looks = iter([[parent], [parent, child], [parent, child, grandchild], [parent, child, grandchild]])
    hit = deliver(lambda: next(looks), signal.SIGKILL)  # type: ignore[arg-type,return-value]
    assert hit == [parent, child, grandchild]
    assert all(process.got == [signal.SIGSTOP, signal.SIGKILL] for process in (parent, child, grandchild))
