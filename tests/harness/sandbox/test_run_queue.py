"""How long threads wait for a processor: by mark, since the last look, as the kernel counts it."""

import os
import shutil
from pathlib import Path

import pytest

from wedgehog.harness.sandbox.run_queue import RunQueue, held_up_s, processors


class FakeProc:
    """A /proc in which processes and threads start, wait and end."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.parents: dict[int, int] = {}
        self.waits(os.getpid(), os.getpid(), 0.0)
        self._tell_children()

    def starts(self, pid: int, mark: str | None = None, parent: int | None = None) -> None:
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        environment = b"PATH=/bin\0" + (f"WEDGEHOG_RUN={mark}\0".encode() if mark else b"")
        (folder / "environ").write_bytes(environment)
        self.waits(pid, pid, 0.0)
        self.parents[pid] = parent or os.getpid()
        self._tell_children()

    def waits(self, pid: int, tid: int, seconds: float) -> None:
        """Set the total wait of a thread."""
        thread = self.root / str(pid) / "task" / str(tid)
        thread.mkdir(parents=True, exist_ok=True)
        (thread / "schedstat").write_text(f"1234 {round(seconds * 1e9)} 3\n")

    def ends(self, pid: int) -> None:
        """Its children become init's."""
        shutil.rmtree(self.root / str(pid))
        self.parents = {child: 1 if parent == pid else parent for child, parent in self.parents.items() if child != pid}
        self._tell_children()

    def _tell_children(self) -> None:
        for pid in {os.getpid(), *self.parents}:
            children = " ".join(str(child) for child, parent in self.parents.items() if parent == pid)
            (self.root / str(pid) / "task" / str(pid) / "children").write_text(children)


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


def queue(proc: FakeProc) -> RunQueue:
    return RunQueue("c", proc.root)


def test_the_harness_tells_the_waits_of_its_own_main_thread(proc: FakeProc):
    """Since the last call; its other threads serve no request."""
    proc.waits(os.getpid(), os.getpid(), 4.0)
    looks = queue(proc)
    proc.waits(os.getpid(), os.getpid(), 4.5)
    proc.waits(os.getpid(), 1, 2.0)
    assert (looks.own_wait_s(), looks.own_wait_s()) == (0.5, 0.0)


def test_each_look_returns_the_waits_since_the_last_one(proc: FakeProc):
    """By the marks of a campaign; other processes are left out."""
    looks = queue(proc)
    proc.starts(100, "c/1/agent")
    proc.starts(200, "other/1/agent")
    proc.starts(300)
    proc.waits(100, 100, 0.25)
    proc.waits(100, 101, 0.5)
    assert {mark: sorted(waits) for mark, waits in looks.look().items()} == {"c/1/agent": [0.25, 0.5]}
    proc.waits(100, 101, 0.75)
    assert sorted(looks.look()["c/1/agent"]) == [0.0, 0.25]


def test_a_process_without_a_mark_belongs_to_its_parent(proc: FakeProc):
    """Also with a cleaned environment, and after it has lost its parent."""
    looks = queue(proc)
    proc.starts(100, "c/1/agent")
    proc.starts(101, parent=100)
    proc.waits(101, 101, 0.5)
    assert sorted(looks.look()["c/1/agent"]) == [0.0, 0.5]
    proc.ends(100)
    proc.waits(101, 101, 0.75)
    assert looks.look() == {"c/1/agent": [0.25]}


def test_a_child_is_read_again_until_it_has_its_own_environment(proc: FakeProc):
    """Between fork and exec it looks like our own process."""
    looks = queue(proc)
    proc.starts(100, parent=os.getpid())
    assert looks.look() == {}
    proc.starts(100, "c/1/agent", parent=os.getpid())
    proc.waits(100, 100, 0.5)
    assert looks.look() == {"c/1/agent": [0.5]}


def test_a_reused_thread_id_starts_from_zero(proc: FakeProc):
    """The count is lower than before."""
    looks = queue(proc)
    proc.starts(100, "c/1/agent")
    proc.waits(100, 100, 2.0)
    looks.look()
    proc.waits(100, 100, 0.5)
    assert looks.look() == {"c/1/agent": [0.5]}


def test_the_pressure_is_that_of_the_whole_machine(proc: FakeProc):
    """None if the kernel does not provide it."""
    looks = queue(proc)
    assert looks.pressure_s() is None
    (proc.root / "pressure").mkdir()
    (proc.root / "pressure/cpu").write_text(
        "some avg10=1.00 avg60=1.00 avg300=1.00 total=2500000\nfull avg10=0 total=0\n"
    )
    assert looks.pressure_s() == 2.5


def test_a_system_without_these_counts_is_recognised(tmp_path: Path):
    """Like macOS, or a hidden /proc."""
    assert not RunQueue("c", tmp_path / "nothing").counts
    looks = queue(FakeProc(tmp_path))
    assert looks.counts
    own = tmp_path / f"{os.getpid()}/task/{os.getpid()}"
    (own / "schedstat").write_text("0 0 0\n")
    assert not looks.counts
    (own / "schedstat").write_text("1 0 0\n")
    (own / "children").unlink()
    assert not looks.counts


@pytest.mark.parametrize(
    ("waits", "elapsed_s", "held_up"),
    [
        ([], 0.05, 0.0),
        ([0.01, 0.02], 0.05, 0.03),
        ([0.04, 0.04], 0.05, 0.05),
        ([0.3, 0.01], 0.05, 0.3),
    ],
)
def test_work_that_is_handed_over_stands_still_as_long_as_all_wait_but_not_longer_than_it_took(
    waits: list[float], elapsed_s: float, held_up: float
):
    """A wait is counted when it ends, so a single one may have begun before the last look."""
    assert held_up_s(waits, elapsed_s) == pytest.approx(held_up)


def test_there_is_a_processor():
    """On any system."""
    assert 1 <= processors() <= (os.cpu_count() or 1)
