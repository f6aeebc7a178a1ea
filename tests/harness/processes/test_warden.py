"""When we die, whatever carries our mark dies too; when we leave in order, nothing is touched."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from wedgehog.harness.processes import Warden, carrying

PARENT = """
    import os, signal, subprocess, sys, time
    from wedgehog.harness.processes.warden import Warden

    mark, how = sys.argv[1:]
    warden = Warden(mark)
    for below in ("", "/run/agent"):
        env = {**os.environ, "WEDGEHOG_RUN": mark + below}
        subprocess.Popen(["sleep", "60"], env=env, start_new_session=True)
    forked = os.fork() if how == "forked" else 0
    if how == "forked" and forked == 0:
        time.sleep(60)
        os._exit(0)
    print(warden.pid, forked, flush=True)
    if how != "stopped":
        os.kill(os.getpid(), signal.SIGKILL)
    warden.stop()
"""


@pytest.fixture
def mark(tmp_path: Path):
    """A mark that no other test has; whatever still carries it afterwards is ended."""
    name = f"test-{os.getpid()}-{tmp_path.name}"
    yield name
    for process in carrying(name) + carrying(name + "0"):
        process.kill()


def parent(tmp_path: Path, mark: str, how: str) -> tuple[int, int]:
    """Run a parent with two marked children and a warden; the pids of the warden and of a forked child (or 0)."""
    script = tmp_path / "parent.py"
    script.write_text(dedent(PARENT))
    done = subprocess.Popen([sys.executable, str(script), mark, how], stdout=subprocess.PIPE, text=True)
    with done.stdout:
        warden, forked = map(int, done.stdout.readline().split())
    done.wait()
    return warden, forked


def soon(holds) -> bool:
    """Whether `holds` becomes true within ten seconds."""
    pause = threading.Event()
    return any(holds() or pause.wait(0.05) for _ in range(200))


@pytest.mark.parametrize("how", ["killed", "forked"])
def test_a_parent_that_is_killed_leaves_nothing(tmp_path: Path, mark: str, how: str):
    """Also where a forked child of it still holds the warden's pipe open; the warden leaves as well."""
    stranger = subprocess.Popen(["sleep", "60"], env={**os.environ, "WEDGEHOG_RUN": mark + "0/run"})
    forked = 0
    try:
        warden, forked = parent(tmp_path, mark, how)
        assert soon(lambda: not carrying(mark))
        assert soon(lambda: not psutil.pid_exists(warden) or psutil.Process(warden).status() == psutil.STATUS_ZOMBIE)
        assert stranger.poll() is None, "a campaign whose name only begins alike is another one"
    finally:
        stranger.kill()
        stranger.wait()
        if forked:
            os.kill(forked, signal.SIGKILL)


def test_an_orderly_end_touches_nothing(tmp_path: Path, mark: str):
    """What still runs then is the tree's to end; the warden is gone."""
    warden, _ = parent(tmp_path, mark, "stopped")
    assert not psutil.pid_exists(warden)
    assert len(carrying(mark)) == 2


def test_a_warden_does_not_listen_to_ctrl_c(mark: str):
    """It must outlive what ends us."""
    with Warden(mark) as warden:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(warden.pid, number)
        assert not soon_gone(warden.pid)
        assert os.getsid(warden.pid) != os.getsid(0)
    assert not psutil.pid_exists(warden.pid)
    warden.stop()


def soon_gone(pid: int) -> bool:
    """Whether it is gone after a short wait."""
    threading.Event().wait(0.3)
    return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_warden_without_a_mark_is_refused():
    """Every process lies below the empty mark."""
    with pytest.raises(ValueError, match="without a mark"):
        Warden("")


def test_a_warden_that_cannot_start_is_told(mark: str, monkeypatch):
    """Silence would mean processes left behind, some day."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="the warden did not start"):
        Warden(mark)
