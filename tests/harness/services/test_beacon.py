"""The beacon: commands leave a trace, and mean what they meant."""

import asyncio
import os
import re
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from wedgehog.fake_llm.conversation import Conversation, Message
from wedgehog.fake_llm.script.position import Positions
from wedgehog.harness.services.beacon import (
    FILE_NAME,
    BeaconFile,
    Trace,
    dotted,
    ends_in_background,
    in_one_line,
    read_new,
    wrapped,
)

TOKEN = "wqbcd1x2x3"


def sh(command: str, cwd: Path, shell: str = "sh") -> subprocess.CompletedProcess[str]:
    return subprocess.run([shell, "-c", command], cwd=cwd, capture_output=True, text=True, check=False, timeout=20)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_child_that_its_shell_waits_for_tells_of_its_own_end(tmp_path: Path, shell: str):
    """The output and the token come as from any command; where the shell alone is killed, the child still tells."""
    trace = tmp_path / FILE_NAME
    assert sh(wrapped("(sleep 0.1; echo built) & wait", TOKEN, trace), tmp_path, shell).stdout == f"built\n{TOKEN}\n"
    assert trace.read_text() == "1.2.3 started\n1.2.3 done 0\n"
    running = subprocess.Popen([shell, "-c", wrapped("(sleep 0.5; exit 4) & wait", TOKEN, trace)])
    # Only a child that runs can tell: a shell that is killed after its first word has none yet.
    while running.poll() is None and not (trace.read_text().count("started") == 2 and children_of(running)):
        time.sleep(0.01)
    running.kill()
    running.wait()
    assert until_done(trace, 60, "done 4").endswith("1.2.3 done 4\n")


def test_a_command_that_ends_with_its_text_still_does(tmp_path: Path):
    """A tool that writes words behind its last line hides the end of the text."""
    command = wrapped("cat <<'EOT'\na\nEOT", TOKEN, tmp_path / FILE_NAME)
    assert sh(command, tmp_path).stdout == f"a\n{TOKEN}\n"
    assert sh(f"({command})", tmp_path).stdout == ""
    assert wrapped("cat <<EOT\na\nEOT\ntrue", TOKEN, tmp_path / FILE_NAME).startswith("printf")


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    ("command", "status", "out"),
    [
        ("echo hi", 0, "hi\n"),
        ("echo a; exit 3", 3, "a\n"),
        ("exec echo b", 0, "b\n"),
        ("false", 1, ""),
        ("echo a; echo b # a comment", 0, "a\nb\n"),
        ("printf 'no newline'", 0, "no newline"),
        ("cat <<'EOT'\nit's \"quoted\"\nEOT", 0, 'it\'s "quoted"\n'),
        ("cat <<'EOT'; exit 3\na\nEOT", 3, "a\n"),
        ("no-such-program-here", 127, ""),
    ],
)
def test_a_command_keeps_its_output_and_its_status(tmp_path: Path, shell: str, command: str, status: int, out: str):
    """With its token printed last, so that its result is known again."""
    ran = sh(wrapped(command, TOKEN, tmp_path / FILE_NAME), tmp_path, shell)
    assert ran.returncode == status
    assert ran.stdout == f"{out}{TOKEN}\n"
    assert (tmp_path / FILE_NAME).read_text() == f"1.2.3 started\n1.2.3 done {status}\n"


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    ("command", "status", "out"),
    [
        ("echo hi", 0, "hi\n"),
        ("echo a; exit 3", 3, "a\n"),
        ("ls nowhere;", 2, ""),
        ("echo a # 3", 0, "a\n"),
        ("sleep 0 >/dev/null & echo $((1 + 1))", 0, "2\n"),
        ("(echo built) & wait", 0, "built\n"),
        ("sleep 0 > /dev/null 2>&1 &", 0, ""),
    ],
)
def test_a_command_in_one_line_means_the_same(tmp_path: Path, shell: str, command: str, status: int, out: str):
    """For agents that read a command up to the end of its line; a comment would hide the rest of it."""
    line = in_one_line(command, TOKEN, tmp_path / FILE_NAME)
    assert "\n" not in line
    ran = sh(line, tmp_path, shell)
    assert (ran.returncode, ran.stdout) == (status, f"{out}{TOKEN}\n"), ran.stderr
    assert (tmp_path / FILE_NAME).read_text().startswith("1.2.3 started")


@pytest.mark.parametrize("form", [wrapped, in_one_line])
@pytest.mark.parametrize("command", ["ls", "echo a; exit 3", "(echo built) & wait", "sleep 1 &"])
def test_a_command_that_an_agent_sends_back_is_no_output(tmp_path: Path, form: Any, command: str):
    """It holds the token that it will print."""
    said = Message("assistant", f"```bash\n{form(command, TOKEN, tmp_path / FILE_NAME)}\n```")
    assert Positions("wqbcd").tokens_in_text(Conversation("openai-chat", "m", False, (said,))) == ()


def test_a_command_of_several_lines_keeps_them(tmp_path: Path):
    """A document in it would end elsewhere."""
    command = "cat <<'EOT'\na\nEOT"
    assert in_one_line(command, TOKEN, tmp_path / "t") == wrapped(command, TOKEN, tmp_path / "t")


@pytest.mark.parametrize("command", ["true", ":"])
def test_a_silent_command_prints_nothing_at_all(tmp_path: Path, command: str):
    """Its result is empty, as a real one is; the trace is written all the same."""
    ran = sh(wrapped(command, TOKEN, tmp_path / FILE_NAME), tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert (tmp_path / FILE_NAME).read_text() == "1.2.3 started\n1.2.3 done 0\n"


def children_of(shell: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Its child processes; none if it has just ended."""
    with suppress(psutil.Error):
        return psutil.Process(shell.pid).children()
    return []


def until_done(file: Path, within_s: float = 10, word: str = "done") -> str:
    """The trace, once it has this word."""
    end = time.monotonic() + within_s
    while word not in file.read_text() and time.monotonic() < end:
        time.sleep(0.01)
    return file.read_text()


def test_a_command_that_goes_on_after_one_in_the_background_is_done_with_its_own_last_word(tmp_path: Path):
    """Only a trailing `&` makes a background command."""
    ran = sh(wrapped("sleep 30 >/dev/null 2>&1 & echo $!", TOKEN, tmp_path / FILE_NAME), tmp_path)
    pid = ran.stdout.split()[0]
    sh(f"kill {pid}", tmp_path)
    assert (tmp_path / FILE_NAME).read_text() == "1.2.3 started\n1.2.3 done 0\n"


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    "command", ["cat gate &", "true && cat gate > /dev/null & # later", "echo a; cat gate 2>&1 &\n"]
)
def test_a_background_command_is_done_when_its_job_is_and_its_shell_goes_on_at_once(
    tmp_path: Path, shell: str, command: str
):
    """What comes before the last `;` stays in front; the token is printed though the job still runs."""
    os.mkfifo(tmp_path / "gate")
    trace, out = tmp_path / FILE_NAME, tmp_path / "out"
    with out.open("w") as stdout:
        ran = subprocess.run(
            [shell, "-c", wrapped(command, TOKEN, trace)], cwd=tmp_path, stdout=stdout, timeout=20, check=False
        )
    said = out.read_text()
    assert (ran.returncode, said) == (0, f"a\n{TOKEN}\n" if "echo" in command else f"{TOKEN}\n")
    assert trace.read_text() == "1.2.3 started &\n", "the job waits at the gate"
    with (tmp_path / "gate").open("w") as gate:
        gate.write("through\n")
    assert until_done(trace) == "1.2.3 started &\n1.2.3 done\n"
    assert out.read_text() == said + ("" if "/dev/null" in command else "through\n"), "its output went where it should"
    assert {path.name for path in tmp_path.iterdir()} == {"gate", "out", FILE_NAME}, "nothing else is left lying there"


def test_only_the_job_holds_the_output_of_its_shell(tmp_path: Path):
    """Whoever waits for the end of the output waits for the job, and never for the beacon."""
    os.mkfifo(tmp_path / "gate")
    trace = tmp_path / FILE_NAME
    ran = sh(wrapped("cat gate > /dev/null 2>&1 &", TOKEN, trace), tmp_path)
    assert ran.stdout == f"{TOKEN}\n"
    assert trace.read_text() == "1.2.3 started &\n", "it was read to its end, and the job still runs"
    (tmp_path / "gate").open("w").close()
    assert "done" in until_done(trace)


def test_nothing_around_a_background_command_is_refused_by_an_agent_that_forbids_to_force(tmp_path: Path):
    """codex refuses a command with `rm -f` as a whole, whatever else it does."""
    assert not re.search(r"\brm -", wrapped("sleep 1 &", "wqbcd1x1x1", tmp_path / "trace"))


def test_a_job_whose_shell_was_killed_is_still_heard_of(tmp_path: Path):
    """The trace survives the agent."""
    os.mkfifo(tmp_path / "gate")
    os.mkfifo(tmp_path / "ready")
    trace = tmp_path / FILE_NAME
    job = "setsid sh -c 'echo yes > ready; cat gate' &"
    with (tmp_path / "out").open("w") as out:
        shell = subprocess.Popen(
            ["sh", "-c", wrapped(job, TOKEN, trace) + "; cat never-opened"], cwd=tmp_path, stdout=out, stderr=out
        )
    assert (tmp_path / "ready").read_text() == "yes\n"
    shell.kill()
    shell.wait()
    (tmp_path / "gate").open("w").close()
    assert until_done(trace) == "1.2.3 started &\n1.2.3 done\n"


@pytest.mark.parametrize(
    ("command", "background"),
    [
        ("sleep 5 &", True),
        ("sleep 5 &  \n", True),
        ("sleep 5 2>&1&", True),
        ("sleep 5 & # for a while", True),
        ("echo 'a # b' &", True),
        ("sleep 5", False),
        ("true &&", False),
        ("echo \\&", False),
        ("echo 'a &'", False),
        ("sleep 5 & echo $!", False),
        ("sleep 5 & wait", False),
        ("echo hi # not this &", False),
        ("sleep 5 &\necho hi", False),
        ("", False),
    ],
)
def test_only_a_trailing_ampersand_is_a_command_in_the_background(command: str, background: bool):
    """Not one that is quoted, doubled, in a comment, or followed by more."""
    assert ends_in_background(command) is background


def test_the_trace_may_lie_in_a_folder_with_any_name(tmp_path: Path):
    """It is quoted."""
    folder = tmp_path / "it's a $folder"
    folder.mkdir()
    sh(wrapped("true", TOKEN, folder / FILE_NAME), tmp_path)
    assert (folder / FILE_NAME).read_text().count("\n") == 2


@pytest.mark.parametrize(
    ("token", "name"), [("wqbcd1x2x3", "1.2.3"), ("wbcdf12x1x10", "12.1.10"), ("w9x1x1x1", "1.1.1")]
)
def test_a_token_is_its_turn_step_and_call(token: str, name: str):
    """The numbers at its end, whatever the salt."""
    assert dotted(token) == name


def test_what_is_no_token_is_refused():
    """It would be a bug of the harness."""
    with pytest.raises(ValueError, match="not the token of a tool call"):
        dotted("hello")


def test_only_whole_lines_are_read_and_each_once(tmp_path: Path):
    """A line may be half written when it is read."""
    file = tmp_path / "trace"
    assert read_new(file, 0) == ([], 0)
    file.write_bytes(b"1.1.1 started\n1.1.")
    traces, offset = read_new(file, 0)
    assert (traces, offset) == ([Trace("1.1.1", "started")], 14)
    assert read_new(file, offset) == ([], 14)
    file.write_bytes(b"1.1.1 started\n1.1.1 done 7\n")
    assert read_new(file, offset) == ([Trace("1.1.1", "done", 7)], 27)


def test_lines_that_are_no_traces_are_passed_over(tmp_path: Path):
    """An agent may write there too."""
    file = tmp_path / "trace"
    file.write_bytes(b"hello\n1.1 started\n1.1.1 begun\n\xff\xfe\n2.1.1 started &\n2.1.1 done\n")
    assert read_new(file, 0)[0] == [Trace("2.1.1", "started", background=True), Trace("2.1.1", "done")]


async def test_the_watcher_tells_each_trace_as_it_comes(tmp_path: Path, manual_clock: Any):
    """Also when the file is not there yet."""
    seen: list[Trace] = []
    file = BeaconFile(tmp_path / "trace", seen.append)
    watching = asyncio.create_task(file.watch(manual_clock))
    file.wrapped("true", TOKEN)
    await manual_clock.advance(0.1)
    (tmp_path / "trace").write_text("1.1.1 started\n")
    await manual_clock.advance(0.1)
    assert seen == [Trace("1.1.1", "started")]
    await manual_clock.advance(0.5)
    assert len(seen) == 1
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_the_watcher_waits_until_the_agent_has_a_command(tmp_path: Path, manual_clock: Any):
    """Most agents wait most of their time, and many runs wait at once: a look every 20 ms would cost each of them."""
    seen: list[Trace] = []
    file = BeaconFile(tmp_path / "trace", seen.append)
    watching = asyncio.create_task(file.watch(manual_clock))
    (tmp_path / "trace").write_text("1.1.1 started\n")
    await manual_clock.advance(0.5)
    assert seen == []
    assert file.wrapped("true", TOKEN) == wrapped("true", TOKEN, tmp_path / "trace")
    await manual_clock.advance(0.1)
    assert seen == [Trace("1.1.1", "started")]
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
