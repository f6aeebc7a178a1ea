"""Which processes a fault hits."""

import os
import shlex
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from wedgehog.harness.run.watching import agent_processes
from wedgehog.harness.run.watching.agent_processes import AgentProcesses
from wedgehog.harness.sandbox.cleanup import RUN_VARIABLE
from wedgehog.harness.services.beacon import wrapped

SALT = "wqbcd"
BEGINS = "printf '1.2.1 started' >> trace; sleep 9"


@pytest.mark.parametrize("around", [(), ("sh", "-c", '"$@"; true', "sh")], ids=["alone", "in another shell"])
def test_the_tool_is_the_shell_that_runs_the_command(tmp_path: Path, manual_clock: Any, around: tuple[str, ...]):
    """Not the child that it has forked and that shows its words: a shell that lives on would say what became of it."""
    trace, mark = tmp_path / "trace", f"{tmp_path.name}-{os.getpid()}"
    # A word as `exit` is run by a child of the shell, in which no other program takes its place.
    shell = ("sh", "-c", wrapped("read -r line; exit 3", f"{SALT}1x1x1", trace))
    with subprocess.Popen(
        [*around, *shell], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=os.environ | {RUN_VARIABLE: mark}
    ) as process:
        while not (trace.exists() and psutil.Process(process.pid).children(recursive=True)):
            threading.Event().wait(0.01)
        of_agent = AgentProcesses(mark, manual_clock)
        found, pid = [it.pid for it in of_agent.find("tool", "1.1.1", 1)], process.pid
        children = [it.pid for it in psutil.Process(pid).children(recursive=True)]
        assert found == (children if around else [pid, *children])
        assert process.stdin is not None
        process.stdin.close()


def test_the_tool_is_found_where_the_agent_gives_it_a_clean_environment(tmp_path: Path, manual_clock: Any):
    """Some agents pass HOME and PATH alone to their commands, so that no command reads their keys."""
    trace, mark = tmp_path / "trace", f"{tmp_path.name}-{os.getpid()}"
    shell = ("env", "-i", f"PATH={os.environ['PATH']}", "sh", "-c", wrapped("read -r line", f"{SALT}1x1x1", trace))
    with subprocess.Popen(
        ["sh", "-c", '"$@"; true', "sh", *shell],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=os.environ | {RUN_VARIABLE: mark},
    ) as agent:
        while not trace.exists():
            threading.Event().wait(0.01)
        session: Any = SimpleNamespace(name="main", leader=SimpleNamespace(pid=agent.pid))
        found = [it.pid for it in AgentProcesses(mark, manual_clock, [session]).find("tool", "1.1.1", 1)]
        assert found == [it.pid for it in psutil.Process(agent.pid).children(recursive=True)]
        assert agent.stdin is not None
        agent.stdin.close()


@pytest.mark.parametrize(
    "line",
    [
        BEGINS,
        f"source rc && eval {shlex.quote(BEGINS)}",
        "eval '{}'".format(BEGINS.replace("'", r"'\''")),
        'sh -c "{}"'.format(BEGINS.replace("'", r"\'")),
    ],
)
def test_the_shell_of_a_command_is_found_however_the_agent_quotes_it(
    monkeypatch: pytest.MonkeyPatch, manual_clock: Any, line: str
):
    """And no other one."""
    other = SimpleNamespace(cmdline=lambda: ["sh", "-c", "printf '1.1.1 started'"], pid=1)
    shell = SimpleNamespace(
        cmdline=lambda: ["bash", "-c", line], pid=2, ppid=lambda: 1, create_time=float, children=lambda **_: ()
    )
    monkeypatch.setattr(agent_processes, "tree_of", lambda mark, leaders: [other, shell])
    targets = AgentProcesses("mark", manual_clock)
    assert [process.pid for process in targets.find("tool", "1.2.1", 1)] == [2]
