"""Stacks are read from what py-spy and Node print, and never by a signal that could kill."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.sandbox import stacks
from wedgehog.harness.sandbox.process_info import ProcessInfo
from wedgehog.harness.sandbox.stacks import StackFrame, Thread, node_stacks, python_stacks, reports_on, stuck_thread

SOCKET = StackFrame("readinto", "/usr/lib/python3.11/socket.py", 706)
SDK = StackFrame("send", "/venv/lib/python3.11/site-packages/httpx/_client.py", 914)
OWN = StackFrame("ask", "/home/me/lib/agent.py", 41)
HOST = StackFrame("<module>", "/home/me/lib/main.py", 3)


def a_process(executable: str, *argv: str, cwd: Path = Path("/")) -> ProcessInfo:
    return ProcessInfo(7, 1, (executable, *argv), f"/usr/bin/{executable}", "sleeping", "", 0.1, 9.0, 1, str(cwd))


@pytest.mark.parametrize(
    ("frames", "says"),
    [
        ((SOCKET, SDK, OWN, HOST), "thread MainThread in agent.py:41 readinto"),
        ((OWN, HOST), "thread MainThread in agent.py:41 ask"),
        ((SOCKET, SDK), "thread MainThread in _client.py:914 readinto"),
        ((SOCKET,), "thread MainThread in socket.py:706 readinto"),
        ((), "thread MainThread"),
    ],
)
def test_a_thread_is_shown_by_the_agents_own_line_and_the_innermost_call(frames: tuple[StackFrame, ...], says: str):
    """A line of the user's program comes before a line of the language."""
    assert str(Thread("MainThread", frames)) == says


def test_a_thread_without_a_name_is_not_called_by_its_id():
    assert str(Thread("139637261911744", (OWN,))) == "a thread in agent.py:41 ask"


SELECT = StackFrame("select", "/usr/lib/python3.11/selectors.py", 415)
IDLE = Thread("pool-1", (StackFrame("get", "/usr/lib/python3.11/queue.py", 171),))


@pytest.mark.parametrize(
    ("threads", "chosen"),
    [
        ((IDLE, Thread("beat", (OWN,)), Thread("MainThread", (SOCKET, OWN))), "MainThread"),
        ((IDLE, Thread("work", (SOCKET, OWN)), Thread("MainThread", (SELECT, HOST))), "work"),
        ((IDLE, Thread("MainThread", (SELECT, HOST))), "MainThread"),
        ((Thread("MainThread", ()), IDLE), "pool-1"),
        ((Thread("MainThread", ()),), None),
        ((), None),
    ],
)
def test_the_main_thread_is_chosen_unless_it_only_waits_for_events(threads: tuple[Thread, ...], chosen: str | None):
    """A waiting main thread is passed over for a thread that runs the agent's own code."""
    found = stuck_thread(threads)
    assert (found.name if found else None) == chosen


async def test_py_spy_is_asked_and_what_it_says_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its JSON; the innermost call comes first."""
    told = [
        {"thread_name": "MainThread", "thread_id": 1, "frames": [{"name": "recv", "filename": "/a/b.py", "line": 4}]}
    ]
    program = script(tmp_path, f"import sys; print({json.dumps(told)!r}); assert sys.argv[-2:] == ['--pid', '7']")
    monkeypatch.setattr(stacks, "py_spy", lambda: program)
    found = await python_stacks(7, within_s=20)
    assert (found.threads, found.why_not) == ((Thread("MainThread", (StackFrame("recv", "/a/b.py", 4),)),), "")


@pytest.mark.parametrize(
    ("code", "why_not"),
    [
        ("import sys; sys.exit('Permission Denied: Try running again with elevated permissions')", "Permission Denied"),
        ("pass", "py-spy printed nothing"),
        ("import time; time.sleep(60)", "py-spy did not answer within 0.2 s"),
        (None, "py-spy is not installed"),
    ],
)
async def test_a_failure_of_py_spy_is_returned_as_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: Any, why_not: str
):
    """Refused, silent, slow or missing: the reason is returned in time."""
    monkeypatch.setattr(stacks, "py_spy", lambda: script(tmp_path, code) if code else None)
    found = await python_stacks(7, within_s=0.2 if "sleep" in str(code) else 20)
    assert found.threads == () and found.why_not.startswith(why_not)


def script(folder: Path, code: str) -> str:
    path = folder / "py-spy"
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(0o700)
    return str(path)


def test_only_a_node_that_was_started_to_report_is_asked():
    """The signal would end any other process."""
    assert reports_on(a_process("node", "agent.js"), {}) is None
    assert reports_on(a_process("python3", "--report-on-signal"), {}) is None
    assert reports_on(a_process("node", "agent.js"), {"NODE_OPTIONS": "--max-old-space-size=99"}) is None
    asked = reports_on(a_process("node", "agent.js", cwd=Path("/here")), {"NODE_OPTIONS": "--report-on-signal"})
    assert asked is not None
    assert (asked.number, asked.folder, asked.name) == (signal.SIGUSR2, Path("/here"), "report.*.7.*.json")


def test_signal_and_folder_of_the_report_come_from_nodes_options():
    """Its own options are used."""
    words = (
        "--report-on-signal",
        "--report-signal=SIGPIPE",
        "--report-directory=/out",
        "--report-filename=r.json",
        "a.js",
    )
    asked = reports_on(a_process("node", *words), {})
    assert asked is not None
    assert (asked.number, asked.folder, asked.name) == (signal.SIGPIPE, Path("/out"), "r.json")


async def test_a_nodes_report_is_waited_for_and_read_without_its_environment(tmp_path: Path):
    """An older report file belongs to another process."""
    ask = reports_on(a_process("node", "a.js", cwd=tmp_path), {"NODE_OPTIONS": "--report-on-signal"})
    assert ask is not None
    (tmp_path / "report.1.7.0.json").write_text("{}")
    told: list[tuple[int, int]] = []

    async def sleep(seconds: float) -> None:
        lines = ["at wait (/me/agent.js:12:3)", "at node:internal/main:8:1", "at /me/agent.js:30:1"]
        report = {"javascriptStack": {"stack": lines}, "environmentVariables": {"KEY": "s"}, "libuv": []}
        (tmp_path / "report.2.7.1.json").write_text(json.dumps(report))

    found, report = await node_stacks(7, ask, 1.0, lambda pid, number: told.append((pid, number)), sleep)
    assert told == [(7, signal.SIGUSR2)]
    assert str(found.threads[0]) == "thread main in agent.js:12 wait"
    assert [frame.line for frame in found.threads[0].frames] == [12, 8, 30]
    assert "environmentVariables" not in report and "libuv" in report


async def test_a_node_that_does_not_report_in_time_is_left_alone(tmp_path: Path):
    """Its event loop may be blocked."""
    ask = reports_on(a_process("node", "a.js", cwd=tmp_path), {"NODE_OPTIONS": "--report-on-signal"})
    assert ask is not None

    async def sleep(seconds: float) -> None:
        pass

    found, report = await node_stacks(7, ask, 0.2, lambda pid, number: None, sleep)
    assert (found.why_not, report) == ("no report within 0.2 s", {})
