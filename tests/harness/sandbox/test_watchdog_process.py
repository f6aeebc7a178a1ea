"""When this process dies, every process with our mark dies too; an orderly stop touches nothing."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from wedgehog.harness.sandbox.cleanup import carrying
from wedgehog.harness.sandbox.watchdog_process import WatchdogProcess

PARENT = """
    import os, signal, subprocess, sys, time
    from pathlib import Path
    from wedgehog.harness.sandbox.watchdog_process import WatchdogProcess

    mark, how, folder = sys.argv[1:]
    watchdog = WatchdogProcess(mark, Path(folder))
    if how == "swapped":
        os.rename(folder, folder + ".old")
        os.mkdir(folder)
    for below in ("", "/run/agent"):
        env = {**os.environ, "WEDGEHOG_RUN": mark + below}
        subprocess.Popen(["sleep", "60"], env=env, cwd=folder, start_new_session=True)
    forked = os.fork() if how == "forked" else 0
    if how == "forked" and forked == 0:
        time.sleep(60)
        os._exit(0)
    print(watchdog.pid, forked, flush=True)
    if how != "stopped":
        os.kill(os.getpid(), signal.SIGKILL)
    watchdog.stop()
"""


@pytest.fixture
def mark(tmp_path: Path):
    """A mark that no other test has; processes that still have it afterwards are ended."""
    name = f"test-{os.getpid()}-{tmp_path.name}"
    yield name
    for process in carrying(name) + carrying(name + "0"):
        process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run's folder with an agent's files and a link out of it; `precious` is the link's target."""
    made = tmp_path / "run"
    (made / "home" / "deep").mkdir(parents=True)
    (made / "home" / "deep" / "file").write_text("x")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    (made / "home" / "link").symlink_to(tmp_path / "precious")
    return made


def parent(folder: Path, mark: str, how: str) -> tuple[int, int]:
    """Run a parent with two marked children and a watchdog; the pids of the watchdog and of a forked child (or 0)."""
    script = folder.parent / "parent.py"
    script.write_text(dedent(PARENT))
    command = [sys.executable, str(script), mark, how, str(folder)]
    done = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with done.stdout:
        watchdog, forked = map(int, done.stdout.readline().split())
    done.wait()
    return watchdog, forked


def soon(holds) -> bool:
    """Whether `holds` becomes true within ten seconds."""
    pause = threading.Event()
    return any(holds() or pause.wait(0.05) for _ in range(200))


@pytest.mark.parametrize("how", ["killed", "forked"])
def test_a_parent_that_is_killed_leaves_nothing(folder: Path, mark: str, how: str):
    """Also if a forked child keeps the watchdog's pipe open; the watchdog ends too."""
    stranger = subprocess.Popen(["sleep", "60"], env={**os.environ, "WEDGEHOG_RUN": mark + "0/run"})
    forked = 0
    try:
        watchdog, forked = parent(folder, mark, how)
        assert soon(lambda: not carrying(mark))
        assert soon(lambda: gone(watchdog))
        assert not folder.exists(), "the folder is removed after the processes"
        assert (folder.parent / "precious" / "file").read_text() == "x", "a link is not followed"
        assert stranger.poll() is None, "a name with the same beginning is another campaign"
    finally:
        stranger.kill()
        stranger.wait()
        if forked:
            os.kill(forked, signal.SIGKILL)


def gone(pid: int) -> bool:
    """Whether a process has ended (its parent may not have reaped it yet)."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_another_folder_in_its_place_is_not_removed(folder: Path, mark: str):
    """Only the folder that we made is removed, even if it was moved."""
    watchdog, _ = parent(folder, mark, "swapped")
    assert soon(lambda: gone(watchdog)) and not carrying(mark)
    assert folder.is_dir() and (folder.parent / "run.old" / "home" / "deep" / "file").exists()


def test_an_orderly_end_touches_nothing(folder: Path, mark: str):
    """The tree ends what still runs; the watchdog has ended."""
    watchdog, _ = parent(folder, mark, "stopped")
    assert not psutil.pid_exists(watchdog)
    assert len(carrying(mark)) == 2 and (folder / "home" / "deep" / "file").exists()


def test_a_folder_that_is_not_ours_is_refused(folder: Path, mark: str, monkeypatch: pytest.MonkeyPatch):
    """A link to a folder, a file, another user's folder: the watchdog does not start."""
    link = folder.parent / "link"
    link.symlink_to(folder)
    for wrong in (link, folder / "home" / "deep" / "file"):
        with pytest.raises(ValueError, match="not ours to remove"):
            WatchdogProcess(mark, wrong)
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(ValueError, match="not ours to remove"):
        WatchdogProcess(mark, folder)
    with pytest.raises(FileNotFoundError):
        WatchdogProcess(mark, folder / "nowhere")


def test_a_watchdog_ignores_ctrl_c(mark: str):
    """It must outlive what ends this process."""
    with WatchdogProcess(mark) as watchdog:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(watchdog.pid, number)
        assert not soon_gone(watchdog.pid)
        assert os.getsid(watchdog.pid) != os.getsid(0)
    assert not psutil.pid_exists(watchdog.pid)
    watchdog.stop()


def soon_gone(pid: int) -> bool:
    """Whether it ends after a short wait."""
    threading.Event().wait(0.3)
    return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_watchdog_without_a_mark_is_refused():
    """Every mark is below the empty mark."""
    with pytest.raises(ValueError, match="needs a mark"):
        WatchdogProcess("")


def test_a_watchdog_that_cannot_start_is_an_error(mark: str, monkeypatch):
    """Without the error, processes could be left behind later."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="the watchdog process did not start"):
        WatchdogProcess(mark)
