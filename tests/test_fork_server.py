"""The process that forks commands for the tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ForkServer

AT_ONCE = """
import json, os, sys
told = json.loads(sys.stdin.readline())
for name in ("out", "err"):
    open(told[name], "w").close()
os.write(1, f"{os.getpid()}\\n3\\n".encode())
sys.stdin.read()
"""
"""Tells of a command's start and of its end in one piece."""


def test_a_command_that_has_ended_before_its_start_is_read_is_not_waited_for(tmp_path: Path):
    """On a busy machine a short command is over before the test's own process goes on."""
    argv = [sys.executable, "-S", "-c", AT_ONCE]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert ForkServer(process).run(["x"], tmp_path, {}, timeout_s=20).returncode == 3


def test_a_command_without_an_end_is_given_up(tmp_path: Path, fork_server: ForkServer, environment: dict[str, str]):
    """With what it had said; the next one gets its own lines."""
    (tmp_path / "script.yaml").write_text("replies: [{reply: {text: Hi}}]")
    with pytest.raises(subprocess.TimeoutExpired):
        fork_server.run(["serve", "--script", "script.yaml"], tmp_path, environment, timeout_s=1)
    assert fork_server.run(["--version"], tmp_path, environment).returncode == 0


def test_a_program_of_a_warm_python_gives_way_as_who_starts_it(tmp_path: Path, simulating_python: str):
    """That process is shared by the workers that give way and those that do not."""
    printed = "os.nice(0), 'wedgehog.harness.run.runner' in sys.modules"
    (tmp_path / "program.py").write_text(f"import os, sys; print({printed})")
    argv = ["nice", "-n", "3", simulating_python, str(tmp_path / "program.py")]
    assert subprocess.check_output(argv, text=True) == f"{os.nice(0) + 3} True\n"
