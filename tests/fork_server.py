"""Runs `wedgehog …` in processes that are forked from this one, which has imported the program already.

Importing takes a second of each start, and the suite gives hundreds of commands. A forked command has a process, a
folder, an environment and an output of its own, as a started one has. Reads a JSON line for each command:

    {"words": ["run", …], "folder": "/…", "environment": {"PATH": "/…", …}, "out": "/…", "err": "/…"}

It writes the process's number in a line, and its exit code in another one when it has ended. With a file's name under
`code`, the command runs beside the others, and its exit code is written to that file. `fork_server.py PYTHON` has the
process of the simulated runs started by that program.
"""

import gc
import importlib
import json
import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import genai_prices.data
import genai_prices.decompose  # noqa: F401
import rich._emoji_codes  # noqa: F401

import wedgehog.harness.agents.command
import wedgehog.harness.campaign.campaign
import wedgehog.harness.network.toxiproxy.link
import wedgehog.harness.network.toxiproxy.server
import wedgehog.reports.gate.baseline
import wedgehog.reports.junit
import wedgehog.reports.markdown
import wedgehog.reports.page.html
import wedgehog.reports.terminal  # noqa: F401
from wedgehog.harness.agents import surroundings
from wedgehog.harness.commands import cli
from wedgehog.harness.run.simulated import sim_player
from wedgehog.harness.run.watching import connection_watch
from wedgehog.harness.services.mcp import host
from wedgehog.reports.page import latency_section

latency_section.DRAWS = False
"""matplotlib takes a second and more of each report; `tests/live/commands/test_run.py` has a command that draws."""
connection_watch.LOOK_EVERY_S = 0.6
"""Each look walks all sockets of the machine, and the runs of all workers look: together a twentieth of the time."""

IMPORTS = "WEDGEHOG_TEST_IMPORTS"
"""The variable with names of more modules to import, once for all commands: those that take a tenth of a second."""
PYTHON = "WEDGEHOG_TEST_PYTHON"
"""The variable with the `python` of agents and of tool servers, where a test has one: see `warm_python.py`."""


def become(told: dict[str, Any]) -> None:
    """Make this process that of the command."""
    for number, path in enumerate((os.devnull, told["out"], told["err"])):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), number)
    os.chdir(told["folder"])
    os.environ.clear()
    os.environ.update(told["environment"])
    tempfile.tempdir = None
    if python := os.environ.pop(PYTHON, ""):
        surroundings.sys = host.sys = SimpleNamespace(executable=python)  # type: ignore[attr-defined]
    sys.argv = [cli.__file__, *told["words"]]


def serve() -> None:
    """Fork a process for each line; return in that process."""
    gc.freeze()
    for line in sys.stdin:
        told = json.loads(line)
        for module in told["environment"].pop(IMPORTS, "").split():
            importlib.import_module(module)
        if "code" in told and os.fork():
            continue  # (a process of its own waits for this command)
        pid = os.fork()
        if not pid:
            return become(told)
        print(pid, flush=True)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if "code" in told:
            leave(Path(told["code"]), code)
        print(code, flush=True)
    sys.exit()


def leave(path: Path, code: int) -> None:
    """Write an exit code, and end this process."""
    unready = path.with_suffix(".unready")
    unready.write_text(str(code))
    unready.rename(path)
    os._exit(0)


if __name__ == "__main__":
    sim_player.sys = SimpleNamespace(executable=sys.argv[1])  # type: ignore[attr-defined]
    serve()
    cli.main()
