"""`wedgehog-pipe` before anything crosses it: its command line, where it looks for a harness, and how light it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wedgehog.harness.stdio_proxy.harness_address import HarnessAddress, find_harness
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
def test_a_pipe_is_called_as_it_is_told_or_as_its_command(arguments: list[str], name: str, argv: list[str]):
    """The command's own options are its own."""
    assert parse(arguments) == (name, argv)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "there is no COMMAND"),
        (["--name", "git"], "there is no COMMAND"),
        (["--"], "there is no COMMAND"),
        (["--name"], "--name needs a NAME"),
        (["--name", "a b", "--", "x"], "letters, digits"),
        (["--nmae", "a", "--", "x"], "no option '--nmae'"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_sentence(arguments: list[str], says: str):
    """With what was expected."""
    with pytest.raises(PipeUsageError, match=says):
        parse(arguments)


def run(*arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """The script as an agent starts it, with PATH and what is named."""
    env = {"PATH": os.environ["PATH"], **env}
    return subprocess.run([*ARGV, *arguments], env=env, capture_output=True, text=True, check=False, timeout=30)


def test_bad_usage_ends_with_2_and_help_with_0():
    """As everywhere."""
    assert (run("--nmae").returncode, run("--help").returncode) == (2, 0)
    assert "usage: wedgehog-pipe" in run("--nmae").stderr and "usage: wedgehog-pipe" in run("--help").stdout


def test_a_harness_is_found_in_the_environment_or_in_home(tmp_path: Path):
    """The environment comes first; an MCP client passes HOME on, and little else."""
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
    """The same process, so that nothing stands between the agent and its tool."""
    process = subprocess.Popen([*ARGV, "--", "sh", "-c", "echo $$"], stdout=subprocess.PIPE, text=True)
    assert process.communicate(timeout=30) == (f"{process.pid}\n", None)


def test_a_harness_that_is_gone_is_like_none():
    """The tool works, and standard error says why nothing will strike it."""
    done = run("--", "echo", "well", WEDGEHOG_PIPE="127.0.0.1:1:secret")
    assert (done.stdout, done.returncode) == ("well\n", 0)
    assert "no harness at 127.0.0.1:1" in done.stderr


@pytest.mark.parametrize(("command", "status"), [("no-such-command", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_be_started_is_told_as_a_shell_tells_it(command: str, status: int):
    """127 where there is none, 126 where it is no program."""
    done = run("--", command)
    assert (done.returncode, done.stdout) == (status, "")
    assert f"cannot start '{command}'" in done.stderr


def test_the_command_does_not_inherit_what_python_ignores():
    """SIGPIPE ends it, as it would have ended it."""
    done = run("--", sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGPIPE))")
    direct = subprocess.run(
        ["sh", "-c", "grep SigIgn /proc/self/status"], capture_output=True, text=True, check=False
    ).stdout
    assert run("--", "sh", "-c", "grep SigIgn /proc/self/status").stdout == direct
    assert done.returncode == 0


def test_a_launcher_works_from_any_folder_and_any_environment(tmp_path: Path):
    """Without PATH, and whatever PYTHON… variables the agent has."""
    launcher = write_launcher(tmp_path)
    (tmp_path / "select.py").write_text("raise SystemExit('not this one')")
    env = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nowhere"}
    done = subprocess.run(
        [launcher, "--", "/bin/echo", "a b"], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("a b\n", "", 0)


def test_it_imports_nothing_of_the_rest():
    """It is started wherever a command would have been: the standard library, and little of it."""
    code = """
import sys
from wedgehog.harness.stdio_proxy import main
ours = {name for name in sys.modules if name.startswith("wedgehog.")} - {"wedgehog.harness"}
print(*sorted(name for name in ours if not name.startswith("wedgehog.harness.stdio_proxy")))
print(*sorted({"asyncio", "json", "subprocess", "threading", "pathlib", "typer", "pydantic"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-E", "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n\n"
