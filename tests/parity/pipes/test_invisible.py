"""Without a fault, a command behind `wedgehog-pipe` cannot be told from the command itself."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.parity.conftest import PATIENCE_S

EVERY_BYTE = bytes(range(256))
COUNTER = """
import os, signal, sys
def count(number, frame):
    os.write(1, f"{signal.Signals(number).name}\\n".encode())
for name in sys.argv[1:]:
    signal.signal(signal.Signals[name], count)
os.write(1, b"ready\\n")
while True:
    if not os.read(0, 1):
        os._exit(0)
"""
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    os.read(0, 1)
    os.write(1, b"from the daemon\\n")
    os._exit(0)
os.write(1, b"from the leader\\n")
os._exit(4)
"""


async def test_every_byte_passes_both_ways_and_then_the_end(rig: Any):
    """The input comes out again, and the command ends at the end of its input."""
    data = EVERY_BYTE * 3
    assert await (await rig.start("cat")).says_all(data) == (data, 0)


async def test_an_empty_input_is_an_end_at_once(rig: Any):
    """No byte, and no hang."""
    assert await (await rig.start("cat")).says_all() == (b"", 0)


async def test_messages_larger_than_any_buffer_pass_whole(rig: Any):
    """Five megabytes in each direction."""
    data = os.urandom(1 << 20) * 5
    assert await (await rig.start("cat")).says_all(data) == (data, 0)


async def test_a_question_is_answered_before_the_next_one_is_asked(rig: Any):
    """No data is kept back for later."""
    tool = await rig.start("cat")
    for number in range(50):
        tool.write(f"question {number}\n".encode())
        assert await tool.line() == f"question {number}"
    tool.end_input()
    assert await tool.exits() == 0


@pytest.mark.parametrize("status", [0, 3, 255])
async def test_the_exit_status_is_the_commands(rig: Any, status: int):
    """Any status; the last output comes before it."""
    assert await (await rig.start("sh", "-c", f"echo last; exit {status}")).says_all() == (b"last\n", status)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGPIPE", "SIGINT"])
async def test_a_command_that_dies_by_a_signal_is_seen_to_die_by_it(rig: Any, name: str):
    """The same signal, not an exit code that stands for it."""
    code = f"import os, signal; os.write(1, b'last'); os.kill(os.getpid(), signal.{name}); signal.pause()"
    if name in ("SIGPIPE", "SIGINT"):
        code = f"import signal; signal.signal(signal.{name}, signal.SIG_DFL); {code}"
    assert await (await rig.python(code)).says_all() == (b"last", -signal.Signals[name])


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT"])
@pytest.mark.parametrize("whom", ["process", "group"])
async def test_a_signal_reaches_the_command_once(rig: Any, name: str, whom: str):
    """Sent to the process or to its group; a second Ctrl-C would have another meaning."""
    tool = await rig.python(COUNTER, name)
    assert await tool.line() == "ready"
    (os.kill if whom == "process" else os.killpg)(tool.pid, signal.Signals[name])
    assert await tool.line() == name
    assert await tool.silent(), "the signal came twice"


async def test_a_signal_sent_again_reaches_the_command_again(rig: Any):
    """Each one, whether it was sent to the group or not."""
    tool = await rig.python(COUNTER, "SIGUSR1")
    assert await tool.line() == "ready"
    for kill in (os.kill, os.killpg, os.killpg, os.kill) * 25:
        kill(tool.pid, signal.SIGUSR1)
        assert await tool.line() == "SIGUSR1"
    assert await tool.silent()


async def test_a_tool_that_is_killed_is_dead(rig: Any):
    """SIGKILL to the process that the agent knows also ends the command."""
    tool = await rig.start("sleep", "600")
    command = await rig.until(lambda: tool.command if tool.command.name() == "sleep" else None)
    os.kill(tool.pid, signal.SIGKILL)
    assert await tool.exits() == -signal.SIGKILL
    await rig.until(lambda: not command.is_running() or command.status() == psutil.STATUS_ZOMBIE)


async def test_a_tool_whose_group_is_killed_is_dead_with_its_children(rig: Any):
    """As when a client kills a server's process tree."""
    tool = await rig.start("sh", "-c", "sleep 600 & echo $!; wait")
    child = psutil.Process(int(await tool.line()))
    os.killpg(tool.pid, signal.SIGKILL)
    assert await tool.exits() == -signal.SIGKILL
    await rig.until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


async def test_a_stopped_tool_continues_after_sigcont(rig: Any):
    """SIGTSTP stops it and its command, SIGCONT continues both."""
    # (In a session of its own it would be in an orphaned process group, which SIGTSTP does not stop.)
    tool = await rig.start("cat", start_new_session=False, process_group=0)
    tool.write(b"one\n")
    assert await tool.line() == "one"
    os.kill(tool.pid, signal.SIGTSTP)
    for process in (psutil.Process(tool.pid), tool.command):
        await rig.until(lambda process=process: process.status() == psutil.STATUS_STOPPED)
    tool.write(b"two\n")
    assert await tool.silent()
    os.kill(tool.pid, signal.SIGCONT)
    assert await asyncio.wait_for(tool.process.stdout.readline(), PATIENCE_S) in (b"two\n", b"wo\n")


async def test_a_signal_that_is_ignored_from_the_start_stays_ignored(rig: Any):
    """As under nohup: the command starts with it ignored."""
    code = "import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, flush=True)"
    tool = await rig.python(code, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert await tool.line() == "True"


async def test_a_command_that_closes_its_stdout_lives_on(rig: Any):
    """The end of its output is seen at once; its exit status when it ends."""
    tool = await rig.python("import os; os.write(1, b'all'); os.close(1); os.read(0, 1); os._exit(7)")
    assert await tool.rest() == b"all"
    assert tool.process.returncode is None
    tool.write(b"x")
    assert await tool.exits() == 7


async def test_a_command_that_closes_its_stdin_is_seen_to_have_done_so(rig: Any):
    """A write to it fails, though it still runs."""
    tool = await rig.python("import os, signal; os.close(0); os.write(1, b'closed\\n'); signal.pause()")
    assert await tool.line() == "closed"
    # (asyncio watches the pipe, and closes its own end when the reader has closed the other.)
    await rig.until(lambda: tool.process._transport.get_pipe_transport(0).is_closing())
    assert psutil.Process(tool.pid).is_running()


async def test_a_command_without_a_reader_gets_sigpipe(rig: Any):
    """As at the end of `yes | head`."""
    tool = await rig.start("yes")
    await tool.read(10)
    tool.process._transport.get_pipe_transport(1).close()
    assert await tool.exits() == -signal.SIGPIPE


def _holds(pipe: Path, pid: int) -> bool:
    """Whether a process has one of the ends of this pipe."""
    return pipe in {_leads_to(it) for it in Path(f"/proc/{pid}/fd").iterdir()}


def _leads_to(link: Path) -> Path | None:
    try:
        return link.readlink()
    except FileNotFoundError:
        return None


async def test_a_silent_command_without_a_reader_gets_sigpipe_at_its_first_write(rig: Any):
    """At its first write, not at its second."""
    code = """
import os
os.write(1, b"ready\\n")
os.read(0, 1)
try:
    os.write(1, b"x")
except BrokenPipeError:
    os._exit(11)
"""
    tool = await rig.python(code)
    assert await tool.line() == "ready"
    output = Path(f"/proc/{tool.command.pid}/fd/1").readlink()
    tool.process._transport.get_pipe_transport(1).close()
    # (It is closed soon; behind `wedgehog-pipe` once that has noticed it, and has closed its own end.)
    await rig.until(lambda: not _holds(output, tool.pid if tool.pipe else os.getpid()))
    tool.write(b"x")
    assert await tool.exits() == 11


async def test_a_command_whose_output_is_not_read_is_blocked(rig: Any):
    """It can write as much as a few pipes hold, not megabytes."""
    code = """
import os
written = 0
while True:
    written += os.write(1, b"x" * 4096)
    os.write(2, f"{written}\\n".encode())
"""
    tool = await rig.python(code, stderr=subprocess.PIPE, limit=1024)
    seen, written = b"", 0
    while True:
        try:
            seen += await asyncio.wait_for(tool.process.stderr.read(65536), 0.4 if written >= 65536 else PATIENCE_S)
        except TimeoutError:
            break
        written = int(seen.rpartition(b"\n")[0].rpartition(b"\n")[2] or 0)
    assert 65536 <= written <= 1 << 20


async def test_a_daemon_that_holds_the_pipes_outlives_its_leader(rig: Any):
    """The leader's exit is seen at once; the daemon's output comes later, and the daemon still gets its input."""
    tool = await rig.python(DAEMON)
    assert await tool.line() == "from the leader"
    assert await tool.exits() == 4
    tool.end_input()
    assert await tool.rest() == b"from the daemon\n"


async def test_the_tool_of_an_agent_that_dies_gets_the_end_of_its_input(rig: Any, tmp_path: Path):
    """The agent is killed; the tool's input ends as on a plain pipe, and the tool ends by itself."""
    note = tmp_path / "note"
    tool = f"import os; os.read(0, 9); os.write(1, b'ready'); os.read(0, 9); open({str(note)!r}, 'w').write('EOF')"
    agent = """
import subprocess, sys, time
tool = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
tool.stdin.write(b"hello")
tool.stdout.read(5)
print("ready", flush=True)
time.sleep(600)
"""
    argv = [sys.executable, "-S", "-E", "-c", agent, *rig.front, sys.executable, "-S", "-E", "-c", tool]
    process = await asyncio.create_subprocess_exec(*argv, env=rig.env, stdout=subprocess.PIPE, start_new_session=True)
    assert await asyncio.wait_for(process.stdout.readline(), PATIENCE_S) == b"ready\n"
    process.kill()
    await rig.until(lambda: note.exists() and note.read_text() == "EOF")
    assert await asyncio.wait_for(process.wait(), PATIENCE_S) == -signal.SIGKILL
    process._transport.close()


async def test_standard_error_goes_straight_through(rig: Any):
    """It is the agent's own descriptor."""
    tool = await rig.start("sh", "-c", "echo said; echo warned >&2", stderr=subprocess.PIPE)
    out, err = await asyncio.wait_for(tool.process.communicate(), PATIENCE_S)
    assert (out, err) == (b"said\n", b"warned\n")


async def test_a_file_is_written_at_the_agents_position(rig: Any, tmp_path: Path):
    """Output is written after what the agent wrote to the file; input is read from a file."""
    (tmp_path / "in").write_bytes(b"input\n")
    with (tmp_path / "in").open("rb") as given, (tmp_path / "out").open("wb", buffering=0) as taken:
        taken.write(b"before\n")
        tool = await rig.start("cat", stdin=given, stdout=taken)
        assert await tool.exits() == 0
        taken.write(b"behind\n")
    assert (tmp_path / "out").read_bytes() == b"before\ninput\nbehind\n"


async def test_a_socket_works_like_a_pipe(rig: Any):
    """Node gives sockets to its children."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        tool = await rig.start("cat", stdin=theirs, stdout=theirs)
        theirs.close()
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        data, got = EVERY_BYTE * 2000, b""
        sending = asyncio.create_task(loop.sock_sendall(ours, data))
        while len(got) < len(data):
            got += await asyncio.wait_for(loop.sock_recv(ours, 1 << 16), PATIENCE_S)
        await sending
        assert got == data
        ours.shutdown(socket.SHUT_WR)
        assert await asyncio.wait_for(loop.sock_recv(ours, 1), PATIENCE_S) == b""
        assert await tool.exits() == 0


async def test_the_agents_own_descriptors_still_block(rig: Any):
    """The flags of shared descriptors are not changed."""
    reader, writer = os.pipe()
    tool = await rig.start("sh", "-c", "read line; echo $line", stdin=reader, stdout=writer)
    blocking = [os.get_blocking(reader), os.get_blocking(writer)]
    os.write(writer, b"")
    tool.process.kill()
    await tool.exits()
    os.close(reader)
    os.close(writer)
    assert blocking == [True, True]


async def test_a_further_descriptor_is_passed_on(rig: Any):
    """Some tools get more than three."""
    reader, writer = os.pipe()
    tool = await rig.python("import os, sys; os.write(int(sys.argv[1]), b'more')", str(writer), pass_fds=[writer])
    os.close(writer)
    assert await tool.exits() == 0
    assert os.read(reader, 10) == b"more"
    os.close(reader)


async def test_the_command_gets_the_agents_environment_and_arguments(rig: Any):
    """Arguments with spaces, quotes and dashes; every variable."""
    code = "import os, sys; print(sys.argv[1:], os.environ['MINE'])"
    tool = await rig.python(code, "--", "a b", "'", "--name", env={**rig.env, "MINE": "yes = yes"})
    assert (await tool.rest()).decode() == "['--', 'a b', \"'\", '--name'] yes = yes\n"
