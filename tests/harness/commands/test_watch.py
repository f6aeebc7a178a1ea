"""`wedgehog run --watch` plays again when a file changes that a person edits."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from wedgehog.harness.commands import watch as watching
from wedgehog.harness.commands.watch import Times, first_change, folders_of, times


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a user, with one program."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "agent.py").write_text("1")
    monkeypatch.chdir(folder)
    return folder


def changed_by(project: Path, *names: str) -> list[str]:
    """What is seen to change when files are written."""
    before = times([project], project / "out")
    for name in names:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("2")
        os.utime(path, ns=(1, 1))
    after = times([project], project / "out")
    return [path.name for path in first_change(before, lambda: after)] if after != before else []


@pytest.mark.parametrize("name", ["agent.py", "spec.yaml", "src/tools.ts", "prompts/system.md"])
def test_what_a_person_edits_counts(project: Path, name: str):
    assert changed_by(project, name) == [Path(name).name]


@pytest.mark.parametrize(
    "name",
    ["state.json", "out/x/agent.py", ".git/x.py", "__pycache__/x.py", "node_modules/x/y.js", ".venv/z.py", "runs/x.md"],
)
def test_what_programs_write_does_not_count(project: Path, name: str):
    assert changed_by(project, name) == []


def test_a_removed_file_is_a_change(project: Path):
    before = times([project], project / "out")
    (project / "agent.py").unlink()
    assert first_change(before, lambda: times([project], project / "out")) == [project / "agent.py"]


def test_it_looks_until_something_changes(project: Path):
    looks = iter([{}, {}, {project / "new.py": 1}])
    waits: list[float] = []
    assert first_change({}, lambda: next(looks), waits.append) == [project / "new.py"]
    assert len(waits) == 2


def test_folders_elsewhere_are_watched_too(project: Path, tmp_path: Path):
    elsewhere = tmp_path / "specs"
    elsewhere.mkdir()
    (elsewhere / "agent.yaml").touch()
    words = ["stall-once", "agent.py", str(elsewhere / "agent.yaml@variant")]
    assert folders_of(words) == (project, elsewhere)


def files_of_a_run(folder: Path) -> None:
    """What a run leaves: a campaign's folder, and the memory of an agent beside its program."""
    for name in ("20260101/campaign.json", "20260101/summary.md", "20260101/run/agent.py", "memory.md", "notes/1.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("a") as file:
            file.write("{}")


@pytest.mark.parametrize("out", ["out", ".", "..", "20260101"])
def test_what_a_run_writes_is_no_edit(
    project: Path, out: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Wherever its output lies, and also the files of the agent; they are named, as a person may have written them."""
    waits: list[bool] = []

    def waited(before: Times, look: Callable[[], Times]) -> list[Path]:
        """Edit the program at the first wait; end at the second."""
        waits.append(look() == before)
        if len(waits) == 2:
            raise KeyboardInterrupt
        files_of_a_run(project / "later")
        (project / "agent.py").write_text("2")
        return first_change(before, look)

    monkeypatch.setattr(watching, "_play", lambda _: files_of_a_run(project))
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(watching, "first_change", waited)
    with pytest.raises(typer.Exit):
        watching.watch([], project / out)
    assert waits == [True, True]
    said = capsys.readouterr().err
    assert "changed during the run: memory.md, notes/1.txt (" in said
    assert "changed: agent.py, later/memory.md, later/notes/1.txt\n" in said


@pytest.mark.parametrize(
    ("writes", "plays"),
    [
        pytest.param([["agent.py"], []], 2, id="an edit during a run"),
        pytest.param([["agent.py"], ["agent.py"], ["agent.py"]], 2, id="a file that each run writes"),
        pytest.param([["new1.md"], ["new2.md"]], 1, id="a new file of each run"),
        pytest.param([["agent.py"], ["tools.py"], []], 3, id="an edit of another file during the next run"),
        pytest.param([["agent.py"], ["tools.py"], ["agent.py"]], 3, id="one of two files, by chance"),
    ],
)
def test_an_edit_during_a_run_is_played(
    project: Path, writes: list[list[str]], plays: int, monkeypatch: pytest.MonkeyPatch
):
    """Once more for each file if it was the agent that wrote: what an earlier run wrote is no edit."""
    (project / "tools.py").touch()
    played: list[int] = []

    def play(_: list[str]) -> None:
        for name in writes[len(played)]:
            (project / name).write_text(name)
            os.utime(project / name, ns=(1, len(played)))
        played.append(1)

    def waits(*_: object) -> list[Path]:
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "_play", play)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(watching, "first_change", waits)
    with pytest.raises(typer.Exit):
        watching.watch([], project / "out")
    assert len(played) == plays


def test_a_log_of_its_own_output_is_no_edit(project: Path, monkeypatch: pytest.MonkeyPatch):
    """`wedgehog run --watch | tee log.txt` writes it during a run, and when the command says that it waits."""
    log, waits = project / "log.txt", []
    log.touch()

    def logged(*_: object, **__: object) -> None:
        with log.open("a") as file:
            file.write("wedgehog: …\n")

    def waited(before: Times, look: Callable[[], Times]) -> list[Path]:
        waits.append(look() == before)
        if len(waits) == 2:
            raise KeyboardInterrupt
        logged()
        return first_change(before, look)

    monkeypatch.setattr(watching, "_play", logged)
    monkeypatch.setattr(watching.err, "print", logged)
    monkeypatch.setattr("time.sleep", logged)  # the moment after the command's own words
    monkeypatch.setattr(watching, "first_change", waited)
    with pytest.raises(typer.Exit):
        watching.watch([], project / "out")
    assert waits == [True, True]


def test_what_a_person_edited_between_two_runs_is_theirs(project: Path, monkeypatch: pytest.MonkeyPatch):
    """Also if an earlier run seemed to write it: the next edit during a run is played."""
    writes, played, waits = [True, False, True, False], [], [[project / "agent.py"]]

    def play(_: list[str]) -> None:
        if writes[len(played)]:
            os.utime(project / "agent.py", ns=(1, len(played)))
        played.append(1)

    def waited(*_: object) -> list[Path]:
        if not waits:
            raise KeyboardInterrupt
        return waits.pop()

    monkeypatch.setattr(watching, "_play", play)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(watching, "first_change", waited)
    with pytest.raises(typer.Exit):
        watching.watch([], project / "out")
    assert len(played) == 4


def test_the_command_plays_again_and_ends_with_ctrl_c(project: Path):
    command = [sys.executable, "-m", "wedgehog", "run", "nothing.yaml", "--watch"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, process_group=0) as watching:
        assert watching.stderr is not None
        seen = iter(watching.stderr)
        first = [next(line for line in seen if word in line) for word in ("nothing.yaml", "waiting for a change")]
        (project / "agent.py").write_text("changed")
        again = [
            next(line for line in seen if word in line) for word in ("changed: agent.py", "nothing.yaml", "waiting")
        ]
        os.killpg(watching.pid, signal.SIGINT)
        assert watching.wait(20) == 130
    assert len(first + again) == 5
