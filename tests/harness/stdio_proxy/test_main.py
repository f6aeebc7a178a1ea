"""`wedgehog-pipe` before it transfers data: its command line, how it finds a harness, and what it imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wedgehog.harness.stdio_proxy.harness_connection import HarnessAddress, find_harness
from wedgehog.harness.stdio_proxy.launch import ARGV, write_launcher
from wedgehog.harness.stdio_proxy.main import PipeUsageError, parse


@pytest.mark.parametrize(
    ("arguments", "name", "argv"),
    [
        (["--", "server", "-v"], "server", ["server", "-v"]),
        (["--name", "git", "--", "/usr/bin/mcp git"], "git", ["/usr/bin/mcp git"]),
        (["--name=git", "server", "--name", "x"], "git", ["server", "--name", "x"]),
        (["--", "/opt/my server"], "my-server", ["/opt/my server"]),
        (["--", "--odd"], "--odd", ["--odd"]),
    ],
)
def test_a_pipe_has_the_given_name_or_that_of_its_command(arguments: list[str], name: str, argv: list[str]):
    """Options after the command belong to the command."""
    assert parse(arguments) == (name, argv)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "COMMAND is missing"),
        (["--name", "git"], "COMMAND is missing"),
        (["--"], "COMMAND is missing"),
        (["--name"], "--name needs a NAME"),
        (["--name", "a b", "--", "x"], "letters, digits"),
        (["--nmae", "a", "--", "x"], "unknown option '--nmae'"),
    ],
)
def test_a_wrong_command_line_is_reported_in_one_sentence(arguments: list[str], says: str):
    """The message says what was expected."""
    with pytest.raises(PipeUsageError, match=says):
        parse(arguments)


def run(*arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run the script as an agent does, with PATH and the given variables."""
    env = {"PATH": os.environ["PATH"], **env}
    return subprocess.run([*ARGV, *arguments], env=env, capture_output=True, text=True, check=False, timeout=30)


def test_bad_usage_ends_with_2_and_help_with_0():
    """As with other programs."""
    assert (run("--nmae").returncode, run("--help").returncode) == (2, 0)
    assert "usage: wedgehog-pipe" in run("--nmae").stderr and "usage: wedgehog-pipe" in run("--help").stdout


def test_a_harness_is_found_in_the_environment_or_in_home(tmp_path: Path):
    """The environment comes first; an MCP client passes on HOME and few other variables."""
    (tmp_path / ".wedgehog-pipe").write_text("127.0.0.1:4711:secret\nrun/agent\n")
    home = {"HOME": str(tmp_path)}
    assert find_harness(home) == HarnessAddress("127.0.0.1", 4711, "secret", "run/agent")
    assert find_harness(home | {"WEDGEHOG_RUN": "own"}) == HarnessAddress("127.0.0.1", 4711, "secret", "own")
    env = {"WEDGEHOG_PIPE": "127.0.0.1:1:s", "WEDGEHOG_RUN": "own"}
    assert find_harness(home | env) == HarnessAddress("127.0.0.1", 1, "s", "own")
    assert find_harness({"HOME": str(tmp_path / "none")}) is None
    assert find_harness({}) is None
    assert find_harness({"WEDGEHOG_PIPE": "nonsense"}) is None


def test_without_a_harness_it_becomes_the_command():
    """In the same process, so that there is no proxy."""
    process = subprocess.Popen([*ARGV, "--", "sh", "-c", "echo $$"], stdout=subprocess.PIPE, text=True)
    assert process.communicate(timeout=30) == (f"{process.pid}\n", None)


def test_a_harness_that_does_not_answer_counts_as_none():
    """The tool works, and standard error says that no fault will be injected."""
    done = run("--", "echo", "well", WEDGEHOG_PIPE="127.0.0.1:1:secret")
    assert (done.stdout, done.returncode) == ("well\n", 0)
    assert "no harness at 127.0.0.1:1" in done.stderr


@pytest.mark.parametrize(("command", "status"), [("no-such-command", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_be_started_gives_the_exit_code_of_a_shell(command: str, status: int):
    """127 for a missing command, 126 for a file that is not executable."""
    done = run("--", command)
    assert (done.returncode, done.stdout) == (status, "")
    assert f"cannot start '{command}'" in done.stderr


def test_the_command_does_not_inherit_what_python_ignores():
    """SIGPIPE ends the command as usual."""
    done = run("--", sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGPIPE))")
    direct = subprocess.run([*IGNORED], capture_output=True, text=True, check=False)
    assert _signals(run("--", *IGNORED).stdout) == _signals(direct.stdout)
    assert done.returncode == 0


IGNORED = ("sh", "-c", "grep SigIgn /proc/self/status")
OF_GLIBC = 0b11 << 31
"""Signals 32 and 33, which `posix_spawn` lets a new process ignore, and newer versions of Python use it."""


def _signals(line: str) -> int:
    return int(line.split()[1], 16) & ~OF_GLIBC


def test_a_launcher_works_from_any_folder_and_any_environment(tmp_path: Path):
    """Without PATH, and with any PYTHON… variables of the agent."""
    launcher = write_launcher(tmp_path)
    (tmp_path / "select.py").write_text("raise SystemExit('not this one')")
    env = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nowhere"}
    done = subprocess.run(
        [launcher, "--", "/bin/echo", "a b"], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("a b\n", "", 0)


def test_it_imports_nothing_of_the_other_rooms():
    """It starts in place of every command: only a few modules of the standard library."""
    code = """
import sys
before = set(sys.modules)  # (an editable installation imports pathlib at every start)
from wedgehog.harness.stdio_proxy import main
ours = {name for name in sys.modules if name.startswith("wedgehog.")} - {"wedgehog.harness"}
print(*sorted(name for name in ours if not name.startswith("wedgehog.harness.stdio_proxy")))
new = set(sys.modules) - before
print(*sorted({"asyncio", "json", "subprocess", "threading", "pathlib", "typer", "pydantic"} & new))
"""
    done = subprocess.run([sys.executable, "-E", "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n\n"
