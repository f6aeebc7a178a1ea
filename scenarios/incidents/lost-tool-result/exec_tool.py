"""The exec tool: asks a host at the other end of a pipe to run the command, and waits for what it says."""

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
    """Two of the fixes live here: how long it waits and what it does before it returns; when a host's call is over."""

    def __init__(self, session: Session, fixes: frozenset[str], *, pipe: str, time_scale: float) -> None:
        """`pipe` is an executable that starts the host and carries its stdin and stdout; empty: nothing is between."""
        background = ["--background-returns"] if "background-returns" in fixes else []
        carried = [pipe, "--name", "exec", "--"] if pipe else []
        self._host = [*carried, sys.executable, str(HERE / "exec_host.py"), *background]
        self._session = session
        self._has_deadline = "exec-deadline" in fixes
        self._deadline_s = DEADLINE_S / time_scale if self._has_deadline else None

    def run(self, call: Json) -> Json:
        """The call's result. Errors: OSError, where it can't be written down."""
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
        with contextlib.suppress(BrokenPipeError):  # it has died already: whoever listens hears that
            host.stdin.write(json.dumps({"command": command}) + "\n")
            host.stdin.flush()
        return host

    def _listen(self, pipe: IO[str], answers: Answers) -> None:
        """Hand on what the host says, until the pipe ends. Only the fix makes an answer of that end, too."""
        with contextlib.suppress(OSError, ValueError):
            for line in pipe:
                answers.put(json.loads(line))
        if self._has_deadline:
            answers.put({"output": "[exec failed: the pipe to its host broke]", "exitCode": None})


def _words(said: Json) -> str:
    output = str(said["output"])
    return output if not said["exitCode"] else f"{output}[exit code {said['exitCode']}]"


def _end(host: subprocess.Popen[str]) -> None:
    """Nothing more is wanted of the host. One that has answered leaves by itself; else it dies with its command."""
    assert host.stdin
    with contextlib.suppress(BrokenPipeError):
        host.stdin.close()
    try:
        host.wait(1.0)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(host.pid, signal.SIGKILL)
