"""`kill -9` of the harness itself, at any moment: nothing of ours runs on, its folders go, its history can be read."""

import os
import random
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from tests.live.conftest import PLAIN_HTTP
from wedgehog.harness.commands.cli import app
from wedgehog.harness.record.history import read
from wedgehog.harness.sandbox.disk import disk_unavailable_reason

TOOL = {"tool": "shell", "args": {"command": "setsid sleep 300 & sleep 300"}}
WAITS = [{"text": "Done {nonce}"}, {"delay_s": 300}]
STORIES: dict[str, tuple[Any, Any]] = {
    "in-mid-reply": ([WAITS], []),
    "in-mid-tool": ([TOOL], []),
    "while-frozen": ([TOOL], [{"link": "agent", "at": {"tool": 1}, "do": {"freeze": 300}}]),
    "on-a-full-disk": ([TOOL], [{"link": "agent", "at": {}, "do": "disk_full"}]),
    "before-a-kill": ([TOOL], [{"link": "agent", "at": {"tool": 1, "after_s": 60}, "do": "kill"}]),
}
READY = {"while-frozen": '"frozen"', "on-a-full-disk": "fault_fired", "in-mid-reply": "request_arrived"}


@pytest.mark.parametrize("name", STORIES)
def test_nothing_is_left_of_a_harness_that_is_killed(
    begin: Any, told: Any, ways: Any, sound_spec: Any, patience: Any, tmp_path: Path, name: str
):
    """Within five seconds: no process, not even one that stands still or ran away, and no folder."""
    if name == "on-a-full-disk" and disk_unavailable_reason():
        pytest.skip(disk_unavailable_reason())
    model, faults = STORIES[name]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    quick = told("quick")
    story = told(name, *model, faults=faults)
    running = begin(
        "run", quick, story, "--agent", sound_spec(**ways["command"]), "--network=embedded", TMPDIR=str(scratch)
    )
    running.until(lambda: "quick x sound: pass" in running.said)
    running.until(lambda: READY.get(name, "beacon_seen") in running.history(name, "sound"))
    assert running.marked("/") and list(scratch.iterdir())
    os.kill(running.process.pid, signal.SIGKILL)
    assert nothing_is_left(running, scratch, patience) and readable(running.folder)
    assert read(running.folder / name / "sound" / "history.jsonl").events


MOMENTS = min(int(os.environ.get("WEDGEHOG_KILLS", "3")), 10)
TOOLS = Path(__file__).parents[1] / "tools"
ASKS = {"tool": "weather", "args": {"city": "Paris"}}
SAYS = {"text": "It is warm. {nonce}"}
HARMED: dict[str, Any] = {
    "tools": {"weather": {"says": "The weather", "input": {"city": "string"}, "answer": "21 °C", "delay_s": 0.3}},
    "turns": [{"user": f"And day {day}?", "model": [ASKS, SAYS]} for day in range(1, 4)],
    "faults": [
        {"link": "ipc:mcp", "at": {"turn": 1, "tool": 1, "byte": 20}, "do": "stall"},
        {"link": "agent", "at": {"turn": 2, "tool": 1}, "do": "kill"},
        {"link": "tool:mcp", "at": {"turn": 3, "tool": 1}, "do": {"kill": {"whom": "server"}}},
    ],
}


def test_nothing_is_left_of_a_harness_that_is_killed_among_tools_pipes_and_kills(
    begin: Any, told: Any, wedgehog: Any, patience: Any, network: str, tmp_path: Path
):
    """At any moment of such a run: tool servers, pipes and what stands in them, agents, the network's own server."""
    pytest.importorskip("mcp")
    for file in (TOOLS / "toolsmith.py", TOOLS / "toolsmith.yaml", PLAIN_HTTP):
        shutil.copy(file, tmp_path)
    shutil.copytree(TOOLS / "light", tmp_path / "light")
    story, draw, folders = told("harmed", **HARMED), random.Random(network), iter(tmp_path / f"{n}" for n in count())
    options = ("run", story, "--agent", "toolsmith.yaml", network, "--out")
    out = scratch_and_runs(next(folders))[1]
    whole = wedgehog(*options, str(out), TMPDIR=str(out.parent / "scratch"))
    assert whole.returncode == 0, whole.stdout + whole.stderr
    written = lines_of(out)
    doomed = []
    for _ in range(MOMENTS):
        scratch, out = scratch_and_runs(next(folders))
        running = begin(*options, str(out), out=out, TMPDIR=str(scratch))
        doomed.append((running, scratch, draw.randrange(1, written), patience))
    with ThreadPoolExecutor(MOMENTS) as beside:
        list(beside.map(is_killed, doomed))
    for running, _, until, _ in doomed:
        assert readable(running.folder), f"after {until} events"


def scratch_and_runs(folder: Path) -> tuple[Path, Path]:
    """Folders of one harness."""
    (folder / "scratch").mkdir(parents=True)
    return folder / "scratch", folder / "runs"


def is_killed(doomed: tuple[Any, Path, int, Any]) -> None:
    """After so many events; nothing is left."""
    running, scratch, until, patience = doomed
    running.until(lambda: lines_of(running.out) >= until, 120)
    os.kill(running.process.pid, signal.SIGKILL)
    assert nothing_is_left(running, scratch, patience), f"after {until} events"


def lines_of(runs: Path) -> int:
    """How many events are on disk, of all its runs."""
    return sum(path.read_bytes().count(b"\n") for path in (runs / "latest").glob("**/history.jsonl"))


def nothing_is_left(running: Any, scratch: Path, patience: Any) -> bool:
    """Within five seconds no process of it is there, and no folder."""
    running.ends()
    assert patience(lambda: not running.marked(), 5), running.marked()
    assert patience(lambda: not list(scratch.glob("wedgehog-*")), 5), list(scratch.iterdir())
    assert patience(lambda: not _naming(scratch), 5), _naming(scratch)
    return True


def readable(folder: Path) -> bool:
    """No event is missing from what it had written, and it can be judged and reported as it stands."""
    for history in folder.glob("**/history.jsonl"):
        kept = read(history)
        assert [event.id for event in kept.events] == list(range(len(kept.events))), history
    ran = CliRunner().invoke(app, ["check", str(folder)])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    assert "Traceback" not in ran.stderr, ran.stderr
    if list(folder.glob("*/*/verdicts.json")):
        assert ran.exit_code in (0, 3) and (folder / "report.html").is_file(), (ran.exit_code, ran.stderr)
    else:
        assert "no finished run" in ran.stderr
    return True


def _naming(folder: Path) -> list[str]:
    """Command lines with this folder in them: the warden's is the last of them."""
    return [words for process in psutil.process_iter() if str(folder) in (words := " ".join(_words(process)))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
