"""Only this user's processes with the mark are found, never our own process."""

import os
import subprocess

import psutil
import pytest

from wedgehog.harness.sandbox.cleanup import carrying, end_all, lies_below, mark_in, ours_to_end

OTHERS, LATE = (f"test-{name}-{os.getpid()}" for name in ("others", "late"))


@pytest.mark.parametrize(
    ("found", "mark", "expected"),
    [
        ("c/1", "c/1", True),
        ("c/1/agent", "c/1", True),
        ("c/1", "c", True),
        ("c/10", "c/1", False),
        ("c", "c/1", False),
        ("", "c", False),
        (None, "c", False),
        ("c", "", False),
        ("", "", False),
    ],
)
def test_a_mark_matches_the_marks_below_it(found, mark, expected: bool):
    """Whole path names are compared; the empty mark matches nothing."""
    assert lies_below(found, mark) is expected


@pytest.mark.parametrize(
    ("environ", "mark"),
    [
        (b"A=1\0WEDGEHOG_RUN=c/1\0B=2\0", "c/1"),
        (b"A=\xff\0WEDGEHOG_RUN=c", "c"),
        (b"WEDGEHOG_RUN=\0", ""),
        (b"NOT_WEDGEHOG_RUN=c\0", None),
        (b"A=WEDGEHOG_RUN=c\0", None),
        (b"WEDGEHOG_RUNS=c\0", None),
        (b"", None),
    ],
)
def test_the_mark_is_the_value_of_its_own_variable(environ: bytes, mark: str | None):
    """Not a part of another name or value; a process that may not be read has none."""
    assert mark_in(environ) == mark


def test_our_own_process_is_never_found(monkeypatch):
    """Also when our own process has the mark."""
    assert not ours_to_end(psutil.Process())
    assert ours_to_end(psutil.Process(os.getppid())) == (psutil.Process(os.getppid()).uids().real == os.getuid())


def started(mark: str) -> subprocess.Popen[bytes]:
    """A process with the mark. It speaks first: Popen may return while the kernel still writes its environment."""
    env = {**os.environ, "WEDGEHOG_RUN": mark}
    child = subprocess.Popen(["sh", "-c", "echo; read -r _"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline()
    child.stdout.close()
    return child


def ended(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    assert child.stdin is not None
    child.stdin.close()


def test_another_users_process_is_never_found(monkeypatch):
    """Also when root could signal it."""
    child = started(OTHERS)
    try:
        assert [process.pid for process in carrying(OTHERS)] == [child.pid]
        monkeypatch.setattr(os, "getuid", lambda: 54321)
        assert carrying(OTHERS) == []
    finally:
        ended(child)


def test_a_process_that_starts_after_an_empty_search_is_found_by_the_next_one():
    """The search ends only after two calls in a row find nothing."""
    children = [started(LATE)]
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        children[0].wait(5)
        if len(pauses) == 2:
            children.append(started(LATE))

    try:
        assert end_all(lambda: carrying(LATE), pause) == []
        assert [child.wait(5) for child in children] == [-9, -9]
    finally:
        for child in children:
            ended(child)


def test_a_process_that_cannot_be_ended_is_returned_after_the_time_limit():
    """The search always ends."""

    class Immortal(psutil.Process):
        def kill(self) -> None:
            """Ignore the signal."""

    child = subprocess.Popen(["sleep", "60"])
    waited = []
    try:
        assert end_all(lambda: [Immortal(child.pid)], waited.append, within_s=1.0) == [child.pid]
        assert 0.9 <= sum(waited) <= 1.2
    finally:
        child.kill()
        child.wait()
