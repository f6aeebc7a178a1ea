"""A signal to several processes: which ones get it, proof of delivery, and proof that they ended or stopped."""

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

PATIENCE_S = 20.0


@pytest.fixture
def family() -> Iterator["subprocess.Popen[bytes]"]:
    """A process with a shell, a grandchild, a child in a session of its own, and a child that has lost its parent."""
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
    """The tree, once all `size` processes exist."""
    async with asyncio.timeout(PATIENCE_S):
        while len(set(tree(leader))) < size:
            await asyncio.sleep(0.01)
    return list(dict.fromkeys(tree(leader)))


async def test_a_tree_is_the_leader_first_and_all_below_it(family: "subprocess.Popen[bytes]"):
    """A child with its own session is included while its parent lives; so is a member of the process group alone."""
    whole = await until_whole(family.pid, 5)
    assert whole[0].pid == family.pid
    async with asyncio.timeout(PATIENCE_S):
        while names(whole).count("sleep") < 3:  # forked, but not yet exec'ed
            await asyncio.sleep(0.01)
    assert sorted(names(whole[1:])) == ["sh", "sleep", "sleep", "sleep"]


async def test_a_kill_reaches_the_whole_tree_at_once(family: "subprocess.Popen[bytes]"):
    """All processes get it, all end, and none of our children stays a zombie."""
    whole = await until_whole(family.pid, 5)
    hit = deliver(lambda: tree(family.pid), signal.SIGKILL)
    assert set(hit) == set(whole)
    assert await gone(hit, asyncio.sleep, PATIENCE_S) == []
    reap(hit, exclude=[family.pid])
    assert family.wait(PATIENCE_S) == -signal.SIGKILL, "its parent can still wait for it"


async def test_a_process_that_forks_during_the_kill_leaves_no_child():
    """A growing tree is stopped before its processes are counted."""
    process = started(FORKING)
    group = process.pid
    try:
        await until_whole(process.pid, 10)
        hit = deliver(lambda: tree(process.pid), signal.SIGKILL)
        assert len(hit) > 9 and await gone(hit, asyncio.sleep, PATIENCE_S) == []
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
    """SIGTERM is not preceded by SIGSTOP: its handler runs at once."""
    mark = tmp_path / "mark"
    code = f"import signal, time; signal.signal(15, lambda *_: open({str(mark)!r}, 'w').close())"
    process = started(f"{code}\nprint('ready', flush=True)\nfor _ in range(600): time.sleep(0.1)")
    try:
        (hit,) = deliver(lambda: tree(process.pid), signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            while not mark.exists():
                await asyncio.sleep(0.01)
        assert await gone([hit], asyncio.sleep, 0.1) == [process.pid], "it handled the signal and lives"
        assert hit.status() != psutil.STATUS_STOPPED
    finally:
        _end(process)


async def test_stopped_processes_are_seen_as_stopped(family: "subprocess.Popen[bytes]"):
    """SIGCONT lets them run on."""
    await until_whole(family.pid, 5)
    hit = deliver(lambda: tree(family.pid), signal.SIGSTOP)
    assert await stopped(hit, asyncio.sleep, PATIENCE_S) == []
    assert {process.status() for process in hit} == {psutil.STATUS_STOPPED}
    for process in hit:
        process.send_signal(signal.SIGCONT)
    assert await stopped(hit, asyncio.sleep, 0.1) != []


async def test_an_ended_process_cannot_be_signalled():
    """A zombie is not signalled, nor is a pid that never existed."""
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert deliver(lambda: tree(process.pid), signal.SIGKILL) == []
    process.wait()
    assert deliver(lambda: tree(process.pid), signal.SIGTERM) == []


class Noted:
    """A process that records its signals."""

    def __init__(self) -> None:
        self.got: list[signal.Signals] = []

    def is_running(self) -> bool:
        return True

    def status(self) -> str:
        return psutil.STATUS_SLEEPING

    def send_signal(self, number: signal.Signals) -> None:
        self.got.append(number)


def test_a_process_forked_while_others_were_stopped_is_found_by_the_next_search():
    """The search repeats until it finds no new process; all are stopped before the first one is killed."""
    parent, child, grandchild = Noted(), Noted(), Noted()
    looks = iter([[parent], [parent, child], [parent, child, grandchild], [parent, child, grandchild]])
    hit = deliver(lambda: next(looks), signal.SIGKILL)  # type: ignore[arg-type,return-value]
    assert hit == [parent, child, grandchild]
    assert all(process.got == [signal.SIGSTOP, signal.SIGKILL] for process in (parent, child, grandchild))


VFORKED = """
import ctypes, os, signal
if not ctypes.PyDLL(None).vfork():
    os.kill(os.getpid(), signal.SIGSTOP)
"""
"""A process that waits in the kernel until its child has called `exec`, as a shell does for a moment."""


async def test_a_parent_that_waits_for_a_stopped_child_stands_still():
    """It cannot take SIGSTOP before the child goes on, and runs nothing until then."""
    with subprocess.Popen([sys.executable, "-S", "-c", VFORKED], start_new_session=True) as parent:
        try:
            process = psutil.Process(parent.pid)
            while not (children := process.children()):
                await asyncio.sleep(0.01)
            while children[0].status() != psutil.STATUS_STOPPED:
                await asyncio.sleep(0.01)
            assert await stopped([process], asyncio.sleep, 0.05) == [parent.pid], "it got no signal"
            assert await stopped(deliver(lambda: [process], signal.SIGSTOP), asyncio.sleep, PATIENCE_S) == []
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
