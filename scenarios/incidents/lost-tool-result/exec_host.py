"""The host at the end of the exec tool's pipe: runs the command of each stdin line, and writes its result to stdout.

    {"command": "ls"}  ->  {"output": "a\\nb\\n", "exitCode": 0}

A command's output is read until it ends, that is until no process can write to it: also no process that the command
started with `&`. With ``--background-returns`` the exit of the shell ends the call; the output goes to a file, which
may grow later, and the result names the PID of a command that still runs.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def until_the_output_ends(command: str) -> Json:
    shell = subprocess.run(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return {"output": (shell.stdout + shell.stderr).decode(errors="replace"), "exitCode": shell.returncode}


def until_the_shell_exits(command: str) -> Json:
    folder = Path(tempfile.mkdtemp(prefix="exec-"))
    # Only the shell knows the PID of its background command.
    command = f"trap 'printf %s \"$!\" >{folder}/background' EXIT\n{command}"
    with (folder / "output").open("wb") as output:
        shell = subprocess.run(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    said = (folder / "output").read_text(errors="replace")
    pid = (folder / "background").read_text() if (folder / "background").exists() else ""
    if pid and alive(int(pid)):
        said += f"[running in the background, PID {pid}]\n"
    return {"output": said, "exitCode": shell.returncode}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    run = until_the_shell_exits if "--background-returns" in sys.argv else until_the_output_ends
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line)["command"])), flush=True)


if __name__ == "__main__":
    main()
