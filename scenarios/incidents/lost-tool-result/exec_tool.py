"""The exec tool: asks a host at the other end of a pipe to run a command, and waits for its answer."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

from session import Session, tool_result

HERE = Path(__file__).parent
DEADLINE_S = 30.0

Json = dict[str, Any]
Answers = queue.Queue[Json]


class Exec:
    """Two of the fixes are here: exec-deadline, and background-returns as an option of the host."""

    def __init__(self, session: Session, fixes: frozenset[str], *, pipe: str, time_scale: float) -> None:
        """`pipe` is an executable that starts the host and carries its stdin and stdout; empty: no pipe program."""
        background = ["--background-returns"] if "background-returns" in fixes else []
        carried = [pipe, "--name", "exec", "--"] if pipe else []
        self._host = [*carried, sys.executable, str(HERE / "exec_host.py"), *background]
        self._session = session
        self._has_deadline = "exec-deadline" in fixes
        self._deadline_s = DEADLINE_S / time_scale if self._has_deadline else None

    def run(self, call: Json) -> Json:
        """The call's result. Errors: OSError, if it cannot be written."""
        answers: Answers = queue.Queue()
        with self._ask(str(call["arguments"].get("command", "")), answers) as host:
            try:
                said = answers.get(timeout=self._deadline_s)
            except queue.Empty:
                said = {"output": f"[exec timed out after {DEADLINE_S:g} s]", "exitCode": None}
            _end(host)
        result = tool_result(call, _words(said), is_error=said["exitCode"] != 0)
        if self._has_deadline:
            self._session.append(result)
        return result

    def _ask(self, command: str, answers: Answers) -> subprocess.Popen[str]:
        host = subprocess.Popen(
            self._host, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert host.stdin and host.stdout
        threading.Thread(target=self._listen, args=(host.stdout, answers), daemon=True).start()
        with contextlib.suppress(BrokenPipeError):  # the host has died: the listener notices the end of the pipe
            host.stdin.write(json.dumps({"command": command}) + "\n")
            host.stdin.flush()
        return host

    def _listen(self, pipe: IO[str], answers: Answers) -> None:
        """Pass on the host's answers until the pipe ends. Only with the fix the end of the pipe is an answer too."""
        with contextlib.suppress(OSError, ValueError):
            for line in pipe:
                answers.put(json.loads(line))
        if self._has_deadline:
            answers.put({"output": "[exec failed: the pipe to its host broke]", "exitCode": None})


def _words(said: Json) -> str:
    output = str(said["output"])
    return output if not said["exitCode"] else f"{output}[exit code {said['exitCode']}]"


def _end(host: subprocess.Popen[str]) -> None:
    """End the host. A host that has answered exits by itself; else it is killed with its command."""
    assert host.stdin
    with contextlib.suppress(BrokenPipeError):
        host.stdin.close()
    try:
        host.wait(1.0)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(host.pid, signal.SIGKILL)
