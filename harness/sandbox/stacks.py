"""Read the stacks of other processes' threads.

Python: with `py-spy`, which reads another process's memory (the kernel may forbid it). Node: from its own report, if
it was started with `--report-on-signal`; other processes get no signal.
"""

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wedgehog.harness.sandbox.process_info import ProcessInfo

LANGUAGE = re.compile(r"^<|^node:|[/\\]lib[/\\]python[\d.]+[/\\](?!site-packages|dist-packages)")
"""Files of the language's standard library."""
INSTALLED = re.compile(r"[/\\](site-packages|dist-packages|node_modules)[/\\]")
"""Files of an installed package."""
LOOPS = re.compile(r"[/\\](selectors|socketserver|base_events|_run|threading)\.py$")
"""Files in which a main thread waits for events or for other threads."""
LOOK_EVERY_S = 0.05
TRY_S = 10.0
PRIVATE = ("environmentVariables", "sharedObjects", "userLimits")
"""Parts of a Node report that are private or of no use."""


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One call on a stack."""

    function: str
    file: str
    line: int

    @property
    def distance(self) -> int:
        """0: the user's own program, 1: an installed package, 2: the language."""
        return 2 if LANGUAGE.search(self.file) else 1 if INSTALLED.search(self.file) else 0


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread, its innermost call first."""

    name: str
    frames: tuple[StackFrame, ...]

    def __str__(self) -> str:
        """`thread MainThread in agent.py:41 recv`: the line of the user's program, and the innermost call."""
        named = "a thread" if self.name.isdigit() else f"thread {self.name}"  # one that only has an id
        if not self.frames:
            return named
        at = min(self.frames, key=lambda frame: frame.distance)
        return f"{named} in {Path(at.file).name}:{at.line} {self.frames[0].function}"


def stuck_thread(threads: Sequence[Thread]) -> Thread | None:
    """The main thread; if that only waits for events, the first other thread that runs the user's program."""
    at_work = [thread for thread in threads if thread.frames]
    main = next((thread for thread in at_work if thread.name.lower() in ("mainthread", "main")), None)
    if main is not None and not LOOPS.search(main.frames[0].file):
        return main
    own = [thread for thread in at_work if thread is not main and min(it.distance for it in thread.frames) == 0]
    return next(iter([*own, *([main] if main is not None else at_work)]), None)


@dataclass(frozen=True, slots=True)
class Stacks:
    """The threads of one process; if there are none, `why_not` has the reason."""

    pid: int
    by: str
    threads: tuple[Thread, ...] = ()
    why_not: str = ""


def py_spy() -> str | None:
    """Path of the program, beside our Python or on the PATH."""
    return shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")


def stacks_unavailable_reason() -> str | None:
    """Why stacks of Python processes cannot be read on this machine; None if they can. Tries it on this process."""
    program = py_spy()
    if program is None:
        return "stacks of Python agents need py-spy: pip install 'wedgehog[forensics]'"
    asked = [program, "dump", "--nonblocking", "--pid", str(os.getpid())]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=TRY_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as wrong:
        return f"py-spy does not run: {wrong}"
    lines = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else f"py-spy was refused: {lines[0][:200] if lines else 'no message'}"


async def python_stacks(pid: int, within_s: float) -> Stacks:
    """The threads of a Python process."""
    program = py_spy()
    if program is None:
        return Stacks(pid, "py-spy", why_not="py-spy is not installed")
    asked = await asyncio.create_subprocess_exec(
        program,
        *("dump", "--json", "--pid", str(pid)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(asked.communicate(), within_s)
    except TimeoutError:
        return Stacks(pid, "py-spy", why_not=f"py-spy did not answer within {within_s:g} s")
    finally:
        with suppress(ProcessLookupError):
            asked.kill()
            await asked.wait()
    return _parsed(pid, out, err)


def _parsed(pid: int, out: bytes, err: bytes) -> Stacks:
    try:
        threads = tuple(_thread(thread) for thread in json.loads(out))
    except (ValueError, KeyError, TypeError):
        lines = err.decode("utf-8", "replace").strip().splitlines()
        return Stacks(pid, "py-spy", why_not=lines[0][:200] if lines else "py-spy printed nothing")
    return Stacks(pid, "py-spy", threads)


def _thread(dumped: Mapping[str, Any]) -> Thread:
    frames = tuple(StackFrame(str(f["name"]), str(f["filename"]), int(f["line"])) for f in dumped["frames"])
    return Thread(str(dumped.get("thread_name") or dumped["thread_id"]), frames)


@dataclass(frozen=True, slots=True)
class NodeReport:
    """How to ask a Node process for its report."""

    number: signal.Signals
    folder: Path
    name: str


def reports_on(info: ProcessInfo, environment: Mapping[str, str]) -> NodeReport | None:
    """How to ask this process for a report; None if it was not started with that option."""
    if not Path(info.executable).name.startswith("node"):
        return None
    with suppress(ValueError):
        words = [*info.argv[1:], *shlex.split(environment.get("NODE_OPTIONS", ""))]
        if "--report-on-signal" not in words:
            return None
        given = dict(
            word.removeprefix("--").split("=", 1) for word in words if word.startswith("--report-") and "=" in word
        )
        folder = Path(info.cwd) / given.get("report-directory", given.get("report-dir", ""))
        name = given.get("report-filename", f"report.*.{info.pid}.*.json")
        return NodeReport(signal.Signals[given.get("report-signal", "SIGUSR2")], folder, name)
    return None


async def node_stacks(
    pid: int,
    ask: NodeReport,
    within_s: float,
    send_signal: Callable[[int, int], None],
    sleep: Callable[[float], Awaitable[None]],
) -> tuple[Stacks, dict[str, Any]]:
    """The main thread of a Node process, and its whole report; `send_signal(pid, number)` asks for it."""
    before = {path: path.stat().st_mtime_ns for path in ask.folder.glob(ask.name)}
    with suppress(OSError):
        send_signal(pid, ask.number)
    waited_s = 0.0
    while waited_s < within_s:
        if (report := _new_report(ask, before)) is not None:
            public = {key: value for key, value in report.items() if key not in PRIVATE}
            return Stacks(pid, "node report", (_javascript(report),)), public
        await sleep(LOOK_EVERY_S)
        waited_s += LOOK_EVERY_S
    return Stacks(pid, "node report", why_not=f"no report within {within_s:g} s"), {}


def _new_report(ask: NodeReport, before: Mapping[Path, int]) -> dict[str, Any] | None:
    """A whole report that was written since the times in `before`."""
    for path in ask.folder.glob(ask.name):
        with suppress(OSError, ValueError):
            if before.get(path) != path.stat().st_mtime_ns:
                return dict(json.loads(path.read_text(encoding="utf-8")))
    return None


def _javascript(report: Mapping[str, Any]) -> Thread:
    lines = report.get("javascriptStack", {}).get("stack", [])
    found = (re.match(r"(?:at )?(.*?) ?\(?([^() ]+):(\d+):\d+\)?$", str(line).strip()) for line in lines)
    frames = (StackFrame(match[1] or "<anonymous>", match[2], int(match[3])) for match in found if match)
    return Thread("main", tuple(frames))
