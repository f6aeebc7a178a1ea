"""Only processes of this user that carry the mark, never ourselves."""

import os
import subprocess

import psutil
import pytest

from wedgehog.harness.sandbox import carrying, end_all
from wedgehog.harness.sandbox.cleanup import lies_below, ours_to_end

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
def test_a_mark_takes_what_lies_below_it(found, mark, expected: bool):
    """By whole names, and the empty mark takes nothing."""
    assert lies_below(found, mark) is expected


def test_we_are_never_found(monkeypatch):
    """Not even when asked about our own process, whatever it carries."""
    assert not ours_to_end(psutil.Process())
    assert ours_to_end(psutil.Process(os.getppid())) == (psutil.Process(os.getppid()).uids().real == os.getuid())


def test_another_users_process_is_never_found(monkeypatch):
    """Root could signal it, and does not."""
    child = subprocess.Popen(["sleep", "60"], env={**os.environ, "WEDGEHOG_RUN": OTHERS})
    try:
        assert [process.pid for process in carrying(OTHERS)] == [child.pid]
        monkeypatch.setattr(os, "getuid", lambda: 54321)
        assert carrying(OTHERS) == []
    finally:
        child.kill()
        child.wait()


def test_what_starts_after_a_look_that_found_nothing_is_found_by_the_next():
    """A sweep ends only after it has found nothing twice in a row."""
    env = {**os.environ, "WEDGEHOG_RUN": LATE}
    children = [subprocess.Popen(["sleep", "60"], env=env)]
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        children[0].wait(5)
        if len(pauses) == 2:
            children.append(subprocess.Popen(["sleep", "60"], env=env))

    try:
        assert end_all(lambda: carrying(LATE), pause) == []
        assert [child.wait(5) for child in children] == [-9, -9]
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_what_cannot_be_ended_is_told_after_a_while():
    """A sweep always comes to an end."""

    class Immortal(psutil.Process):
        def kill(self) -> None:
            """It does not care."""

    child = subprocess.Popen(["sleep", "60"])
    waited = []
    try:
        assert end_all(lambda: [Immortal(child.pid)], waited.append, within_s=1.0) == [child.pid]
        assert 0.9 <= sum(waited) <= 1.2
    finally:
        child.kill()
        child.wait()
