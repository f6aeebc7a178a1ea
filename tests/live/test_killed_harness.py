"""`kill -9` of the harness itself, at any moment: nothing of ours runs on, its folders go, its history can be read."""

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from wedgehog.harness.history import read
from wedgehog.harness.processes.disk import why_no_disk

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
    begin: Any, told: Any, wedgehog: Any, ways: Any, sound_spec: Any, patience: Any, tmp_path: Path, name: str
):
    """Within five seconds: no process, not even one that stands still or ran away, and no folder."""
    if name == "on-a-full-disk" and why_no_disk():
        pytest.skip(why_no_disk())
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
    running.ends()
    assert patience(lambda: not running.marked(), 5), running.marked()
    assert patience(lambda: not list(scratch.glob("wedgehog-*")), 5), list(scratch.iterdir())
    assert patience(lambda: not _naming(scratch), 5), _naming(scratch)
    kept = read(running.folder / name / "sound" / "history.jsonl")
    assert [event.id for event in kept.events] == list(range(len(kept.events)))
    ran = wedgehog("check", str(running.folder))
    assert ran.returncode in (0, 3) and "Traceback" not in ran.stderr, ran.stderr


def _naming(folder: Path) -> list[str]:
    """Command lines with this folder in them: the warden's is the last of them."""
    return [words for process in psutil.process_iter() if str(folder) in (words := " ".join(_words(process)))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
