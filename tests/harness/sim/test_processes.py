"""Child processes in virtual time: commands of a scenario take virtual time, print, write, end and can be killed."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from wedgehog.harness.services import beacon
from wedgehog.harness.sim.errors import SimUnsupportedError
from wedgehog.harness.sim.loop import watch_commands
from wedgehog.harness.sim.world import simulate

PIPE = asyncio.subprocess.PIPE


async def shell(text: str) -> tuple[int | None, str, float]:
    """Exit code, output and virtual seconds."""
    began = asyncio.get_running_loop().time()
    process = await asyncio.create_subprocess_shell(text, stdout=PIPE)
    output, _ = await process.communicate()
    return process.returncode, output.decode(), round(asyncio.get_running_loop().time() - began, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo one; sleep 30; echo two", (0, "one\ntwo\n", 30)),
        ("sleep 1.5 && echo yes || echo no", (0, "yes\n", 1.5)),
        ("false && echo no; echo $?", (0, "1\n", 0)),
        ("false || echo yes # a comment", (0, "yes\n", 0)),
        ("(exit 3); echo $?; exit 4; echo never", (4, "3\n", 0)),
        ("x=a; { echo \"$x b\" '$x' c\\ d; }\necho ${x}", (0, "a b $x c d\na\n", 0)),
        ("printf '%s-%s\\n' 1 2; seq 3", (0, "1-2\n1\n2\n3\n", 0)),
        (
            "seq 3000000000000000000001 3000000000000000000002",
            (0, "3000000000000000000001\n3000000000000000000002\n", 0),
        ),
        (r"printf '\101\7 %s\303\244' b", (0, "A\x07 b\xe4", 0)),
        ("echo one >&2; echo two 2>&1; echo three 1>&2", (0, "two\n", 0)),
        ("sleep 3 & echo started", (0, "started\n", 3)),
        ("x=1; false && echo no & echo yes; (x=2; sleep 2; echo $x) & echo $x", (0, "yes\n1\n2\n", 2)),
    ],
)
def test_a_command_does_what_a_shell_does(text: str, expected: tuple[int, str, float]):
    """In virtual time; a real shell, which needs the same seconds, prints the same."""
    assert simulate(lambda: shell(text)) == expected
    if not expected[2]:
        real = subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, check=False)
        assert (real.returncode, real.stdout) == expected[:2]


def test_the_trace_of_a_scripted_command_is_written_and_noticed_at_once(tmp_path: Path):
    """The wrapper of the harness runs as it is."""
    file, seen = tmp_path / "trace", []

    async def main() -> tuple[int | None, str, float]:
        watch_commands(lambda: seen.append(asyncio.get_running_loop().time() - began), 10.0)
        began = asyncio.get_running_loop().time()
        return await shell(beacon.wrapped("sleep 2; exit 5", "wqbcd1x2x1", file))

    assert simulate(main) == (5, "wqbcd1x2x1\n", 20)
    assert file.read_text() == "1.2.1 started\n1.2.1 done 5\n"
    assert seen == [0, pytest.approx(20)]


def test_other_tasks_go_on_while_a_command_is_started():
    """As on a real loop: an agent that runs tools at once under one name mixes their results in both worlds."""
    said: list[str] = []

    async def run(name: str) -> None:
        said.append(f"{name} starts")
        process = await asyncio.create_subprocess_exec("/bin/sh", "-c", "echo", stdout=PIPE)
        said.append(f"{name} started")
        await process.communicate()

    async def both() -> None:
        await asyncio.gather(run("one"), run("two"))

    simulate(both)
    assert said == ["one starts", "two starts", "one started", "two started"]


@pytest.mark.parametrize("by", ["process", "pid", "group"])
def test_a_command_is_killed_and_waited_for(by: str):
    async def main() -> tuple[int, float]:
        began = asyncio.get_running_loop().time()
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", "sleep 60; echo late", stdout=PIPE, process_group=0
        )
        await asyncio.sleep(1)
        kills = {
            "process": process.kill,
            "pid": lambda: os.kill(process.pid, 9),
            "group": lambda: os.killpg(process.pid, 9),
        }
        kills[by]()
        assert process.stdout is not None
        assert await process.stdout.read() == b""
        code = await process.wait()
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return code, asyncio.get_running_loop().time() - began

    assert simulate(main) == (-signal.SIGKILL, pytest.approx(1))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("git status", "a child process, the command 'git', is not simulated: it needs the live world"),
        ("echo one | cat", "the shell's '|'"),
        ("echo $(date)", "the shell's '('"),
        ("echo *.py", "the shell pattern '*.py'"),
        ("& echo one", "the shell's '&' without a command"),
        ("if true; then echo; fi", "the command 'if'"),
    ],
)
def test_what_is_not_simulated_is_named_before_anything_runs(text: str, says: str):
    with pytest.raises(SimUnsupportedError) as refused:
        simulate(lambda: shell(f"echo first; {text}"))
    assert says in str(refused.value)


@pytest.mark.parametrize(("by", "over_s"), [("pid", 60), ("group", 1)])
def test_what_runs_in_the_background_outlives_its_shell_and_ends_with_its_group(by: str, over_s: float):
    """It holds the shell's output open, as a real one does."""

    async def main() -> tuple[int, float, float]:
        began = asyncio.get_running_loop().time()
        process = await asyncio.create_subprocess_shell("sleep 60 & echo one; sleep 9", stdout=PIPE, process_group=0)
        await asyncio.sleep(1)
        os.kill(process.pid, 9) if by == "pid" else os.killpg(process.pid, 9)
        code = await process.wait()
        ended = asyncio.get_running_loop().time() - began
        assert process.stdout is not None and await process.stdout.read() == b"one\n"
        return code, ended, asyncio.get_running_loop().time() - began

    assert simulate(main) == (-signal.SIGKILL, pytest.approx(1), pytest.approx(over_s))


def test_errors_are_read_apart_or_with_the_output():
    async def main() -> list[tuple[bytes, bytes | None]]:
        found = []
        for stderr in (PIPE, asyncio.subprocess.STDOUT):
            process = await asyncio.create_subprocess_shell("echo one; echo two >&2", stdout=PIPE, stderr=stderr)
            found.append(await process.communicate())
        return found

    assert simulate(main) == [(b"one\n", b"two\n"), (b"one\ntwo\n", None)]


def test_no_real_process_is_signalled():
    async def main() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SimUnsupportedError, match="a signal to a real process"):
        simulate(main)
