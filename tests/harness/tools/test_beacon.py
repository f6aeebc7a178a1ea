"""The beacon: commands leave a trace, and mean what they meant."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.tools.beacon import FILE_NAME, Trace, Trail, dotted, read_new, wrapped

TOKEN = "wqbcd1x2x3"


def sh(command: str, cwd: Path, shell: str = "sh") -> subprocess.CompletedProcess[str]:
    return subprocess.run([shell, "-c", command], cwd=cwd, capture_output=True, text=True, check=False, timeout=20)


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    ("command", "status", "out"),
    [
        ("echo hi", 0, "hi\n"),
        ("exit 3", 3, None),
        ("false", 1, ""),
        ("echo a; echo b # a comment", 0, "a\nb\n"),
        ("printf 'no newline'", 0, "no newline"),
        ("cat <<'EOT'\nit's \"quoted\"\nEOT", 0, 'it\'s "quoted"\n'),
        ("no-such-program-here", 127, ""),
    ],
)
def test_a_command_keeps_its_output_and_its_status(tmp_path: Path, shell: str, command: str, status: int, out: Any):
    """With its token printed last, so that its result is known again."""
    ran = sh(wrapped(command, TOKEN, tmp_path / FILE_NAME), tmp_path, shell)
    assert ran.returncode == status
    if out is not None:
        assert ran.stdout == f"{out}{TOKEN}\n"
        assert (tmp_path / FILE_NAME).read_text() == f"1.2.3 started\n1.2.3 done {status}\n"
    else:
        assert (tmp_path / FILE_NAME).read_text() == "1.2.3 started\n", "it left its shell before it was done"


def test_a_command_in_the_background_does_not_hold_the_shell(tmp_path: Path):
    """A trailing `&` keeps its meaning: done is when the shell goes on."""
    ran = sh(wrapped("sleep 30 >/dev/null 2>&1 & echo $!", TOKEN, tmp_path / FILE_NAME), tmp_path)
    pid = ran.stdout.split()[0]
    sh(f"kill {pid}", tmp_path)
    assert (tmp_path / FILE_NAME).read_text() == "1.2.3 started\n1.2.3 done 0\n"


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
    """It would be a bug of ours."""
    with pytest.raises(ValueError, match="no tool call's token"):
        dotted("hello")


def test_only_whole_lines_are_read_and_each_once(tmp_path: Path):
    """A line may be half written when it is looked at."""
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
    file.write_bytes(b"hello\n1.1 started\n1.1.1 begun\n\xff\xfe\n2.1.1 done\n")
    assert read_new(file, 0)[0] == [Trace("2.1.1", "done")]


async def test_the_watcher_tells_each_trace_as_it_comes(tmp_path: Path, manual_clock: Any):
    """Also when the file is not there yet."""
    seen: list[Trace] = []
    watching = asyncio.create_task(Trail(tmp_path / "trace", seen.append).watch(manual_clock))
    await manual_clock.advance(0.1)
    (tmp_path / "trace").write_text("1.1.1 started\n")
    await manual_clock.advance(0.1)
    assert seen == [Trace("1.1.1", "started")]
    await manual_clock.advance(0.5)
    assert len(seen) == 1
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
