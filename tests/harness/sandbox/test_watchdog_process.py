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

from wedgehog.harness.sandbox import WatchdogProcess, carrying

PARENT = """
    import os, signal, subprocess, sys, time
    from pathlib import Path
    from wedgehog.harness.sandbox.watchdog_process import WatchdogProcess

    mark, how, folder = sys.argv[1:]
    warden = WatchdogProcess(mark, Path(folder))
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run's folder, with things of an agent in it, and a link out of it; `precious` lies behind the link."""
    made = tmp_path / "run"
    (made / "home" / "deep").mkdir(parents=True)
    (made / "home" / "deep" / "file").write_text("x")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    (made / "home" / "link").symlink_to(tmp_path / "precious")
    return made


def parent(folder: Path, mark: str, how: str) -> tuple[int, int]:
    """Run a parent with two marked children and a warden; the pids of the warden and of a forked child (or 0)."""
    script = folder.parent / "parent.py"
    script.write_text(dedent(PARENT))
    command = [sys.executable, str(script), mark, how, str(folder)]
    done = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with done.stdout:
        warden, forked = map(int, done.stdout.readline().split())
    done.wait()
    return warden, forked


def soon(holds) -> bool:
    """Whether `holds` becomes true within ten seconds."""
    pause = threading.Event()
    return any(holds() or pause.wait(0.05) for _ in range(200))


@pytest.mark.parametrize("how", ["killed", "forked"])
def test_a_parent_that_is_killed_leaves_nothing(folder: Path, mark: str, how: str):
    """Also where a forked child of it still holds the warden's pipe open; the warden leaves as well."""
    stranger = subprocess.Popen(["sleep", "60"], env={**os.environ, "WEDGEHOG_RUN": mark + "0/run"})
    forked = 0
    try:
        warden, forked = parent(folder, mark, how)
        assert soon(lambda: not carrying(mark))
        assert soon(lambda: gone(warden))
        assert not folder.exists(), "its folder goes after its processes"
        assert (folder.parent / "precious" / "file").read_text() == "x", "a link is never followed"
        assert stranger.poll() is None, "a campaign whose name only begins alike is another one"
    finally:
        stranger.kill()
        stranger.wait()
        if forked:
            os.kill(forked, signal.SIGKILL)


def gone(pid: int) -> bool:
    """Whether a process has ended (whoever is its parent now may not have noticed)."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_another_folder_in_its_place_is_not_removed(folder: Path, mark: str):
    """Only the very folder that we made is ours to remove, wherever it is by now."""
    warden, _ = parent(folder, mark, "swapped")
    assert soon(lambda: gone(warden)) and not carrying(mark)
    assert folder.is_dir() and (folder.parent / "run.old" / "home" / "deep" / "file").exists()


def test_an_orderly_end_touches_nothing(folder: Path, mark: str):
    """What still runs then is the tree's to end; the warden is gone."""
    warden, _ = parent(folder, mark, "stopped")
    assert not psutil.pid_exists(warden)
    assert len(carrying(mark)) == 2 and (folder / "home" / "deep" / "file").exists()


def test_a_folder_that_is_not_ours_is_refused(folder: Path, mark: str, monkeypatch: pytest.MonkeyPatch):
    """A link to one, a file, another user's: the warden does not begin."""
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


def test_a_warden_does_not_listen_to_ctrl_c(mark: str):
    """It must outlive what ends us."""
    with WatchdogProcess(mark) as warden:
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
        WatchdogProcess("")


def test_a_warden_that_cannot_start_is_told(mark: str, monkeypatch):
    """Silence would mean processes left behind, some day."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="the warden did not start"):
        WatchdogProcess(mark)
