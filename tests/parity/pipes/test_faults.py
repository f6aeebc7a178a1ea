"""Each fault of a pipe looks like a process that really stalls, ends, dies or is slow; on both networks."""

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest

from tests.parity.conftest import PATIENCE_S
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.wire.cut import Cut
from wedgehog.harness.faults.wire.slow import Drip, Latency
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.network.base import Downstream, Strike, WholeLink
from wedgehog.harness.stdio_proxy.session import StdioSession, StreamName

ROUNDS = 100
AT = 1000
SILENCE_S = 0.4
KINDS = {"stall": Stall(), "fin": Cut("fin"), "rst": Cut("rst")}

TALKER = """
import os
os.write(1, bytes(i % 251 for i in range(5000)))
os.write(2, b"lives\\n")
heard = os.read(0, 100)
os._exit(9 if heard == b"go on" else 1)
"""
"""Writes 5000 bytes, then waits for a line and exits with 9."""

REAL = {
    "stall": "import signal; os.write(1, said[:1000]); os.write(2, b'lives\\n'); signal.pause()",
    "fin": "os.write(1, said[:1000]); os.close(1); os.write(2, b'lives\\n'); os._exit(9 if os.read(0, 9) else 1)",
    "rst": "os.write(1, said[:1000]); os.write(2, b'lives\\n'); os.kill(os.getpid(), 9)",
}
"""Processes that really do what each fault imitates."""


@pytest.fixture(params=["embedded", "toxiproxy"])
async def network(request: pytest.FixtureRequest, networks: Any) -> AsyncIterator[Any]:
    """Both networks, one after the other."""
    async with networks(request.param) as network:
        yield network


async def strike(pipe: StdioSession, way: StreamName, fault: WireFault, at: int) -> Strike:
    """Arm it at byte `at`, counted from now; or at its own byte, if it begins at once."""
    direction = pipe.ways[way]
    async with direction.held() as base:
        assert base is not None
        return await direction.link.strike(fault, Downstream(direction.conn, base + at))


def armed(rig: Any, way: StreamName, fault: WireFault, at: int) -> "asyncio.Future[Strike]":
    """Arm it on the next pipe, before its first byte."""
    done: asyncio.Future[Strike] = asyncio.get_running_loop().create_future()

    async def arm(pipe: StdioSession) -> None:
        done.set_result(await strike(pipe, way, fault, at))

    rig.watcher.on_open = arm
    return done


async def seen(tool: Any, lives: bool, fault: "asyncio.Future[Strike] | None" = None) -> tuple[bytes, str, int | None]:
    """What an agent sees: `AT` bytes or more, then silence or the end, the effect of a write, and the exit."""
    got = b""
    while True:
        try:
            wait_s = SILENCE_S if lives and len(got) >= AT else PATIENCE_S
            data = await asyncio.wait_for(tool.process.stdout.read(4096), wait_s)
        except TimeoutError:
            ending = "silence"
            break
        if not data:
            ending = "end"
            break
        got += data
    if not lives:
        return got, ending, await tool.exits()
    if fault is not None:  # (its proof is lost with a tool that exits: the injector waits for it before that)
        assert await (await fault).fired(PATIENCE_S) is not None
    assert tool.process.returncode is None
    tool.write(b"go on")
    try:
        await asyncio.wait_for(tool.exits(), SILENCE_S if ending == "silence" else PATIENCE_S)
    except TimeoutError:
        return got, ending, None
    return got, ending, tool.process.returncode


@pytest.mark.parametrize("ending", KINDS)
async def test_a_fault_looks_like_a_process_that_really_does_it(rigs: Any, network: Any, ending: str):
    """The same bytes, end or silence, and exit as a process that hangs, closes its output, or is killed."""
    async with rigs(network, resets=ending == "rst") as rig:
        fault = armed(rig, "out", KINDS[ending], AT)
        lives = ending != "rst"
        mine = await seen(await rig.python(TALKER, stderr=asyncio.subprocess.DEVNULL), lives, fault)
        rig.way = "bare"
        code = f"import os; said = bytes(i % 251 for i in range(5000)); {REAL[ending]}"
        real = await seen(await rig.python(code, stderr=asyncio.subprocess.DEVNULL), lives)
        assert mine == real
        assert len(mine[0]) == AT


@pytest.mark.parametrize("ending", KINDS)
async def test_the_tool_runs_on_after_a_stall_and_a_fin_and_notices_a_reset(rigs: Any, network: Any, ending: str):
    """The tool does not notice that its output stops; after a reset its input ends, as if its parent had died."""
    async with rigs(network, resets=ending == "rst") as rig:
        armed(rig, "out", KINDS[ending], AT)
        tool = await rig.python(TALKER, stderr=asyncio.subprocess.PIPE)
        assert await asyncio.wait_for(tool.process.stderr.readline(), PATIENCE_S) == b"lives\n"
        command = psutil.Process(tool.pipe.child)
        if ending == "rst":
            await rig.until(lambda: not command.is_running() or command.status() == psutil.STATUS_ZOMBIE)
            assert await tool.exits() == -signal.SIGKILL
        else:
            await tool.read(AT)
            await asyncio.sleep(0.1)
            assert command.status() in (psutil.STATUS_SLEEPING, psutil.STATUS_RUNNING)


async def test_a_tool_whose_output_was_cut_can_write_any_amount(rigs: Any, network: Any):
    """It is neither blocked nor signalled, and its exit status is passed on."""
    async with rigs(network) as rig:
        armed(rig, "out", Cut("fin"), AT)
        tool = await rig.python("import os\nfor _ in range(100): os.write(1, bytes(10000))\nos._exit(8)")
        assert (len(await tool.rest()), await tool.exits()) == (AT, 8)


async def test_a_reset_does_not_kill_a_tool_that_does_not_use_its_pipes(rigs: Any, network: Any):
    """Like a process whose parent has died, it runs on."""
    async with rigs(network, resets=True) as rig:
        armed(rig, "out", Cut("rst"), 3)
        tool = await rig.python("import os, signal; os.write(1, b'hello'); signal.pause()")
        assert (await tool.rest(), await tool.exits()) == (b"hel", -signal.SIGKILL)
        command = psutil.Process(tool.pipe.child)
        await asyncio.sleep(0.2)
        assert command.is_running() and command.status() != psutil.STATUS_ZOMBIE
        command.kill()


@pytest.mark.parametrize(("ending", "heard"), [("stall", "nothing"), ("fin", "the end")])
async def test_a_fault_of_its_input_lets_n_bytes_through(rigs: Any, network: Any, ending: str, heard: str):
    """Its stdin carries n bytes, then silence or the end; its output is unchanged."""
    patience_s = 1 if heard == "nothing" else PATIENCE_S
    code = f"""
import os, select
got = b""
while select.select([0], [], [], {patience_s} if len(got) >= 300 else {PATIENCE_S})[0]:
    data = os.read(0, 4096)
    got += data
    if not data:
        break
else:
    data = None
os.write(1, repr((len(got), "nothing" if data is None else "the end")).encode())
"""
    async with rigs(network) as rig:
        armed(rig, "in", KINDS[ending], 300)
        tool = await rig.python(code)
        tool.write(b"x" * 1000)
        assert await tool.rest() == repr((300, heard)).encode()
        assert await tool.exits() == 0


async def test_what_is_written_to_a_tool_whose_input_was_cut_breaks(rigs: Any, network: Any):
    """The agent gets EPIPE, as from a tool that has closed its stdin."""
    async with rigs(network) as rig:
        armed(rig, "in", Cut("fin"), 10)
        tool = await rig.python("import signal; signal.pause()")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for _ in range(400):
                tool.write(b"x" * 4096)
                await tool.process.stdin.drain()
                await asyncio.sleep(0.005)


async def test_a_delay_and_a_drip_lose_nothing(rigs: Any, network: Any):
    """Late or byte by byte, all of it arrives, followed by the end and the exit status."""
    async with rigs(network) as rig:
        for fault in (Latency(0.2), Drip(0.001, 400)):

            async def arm(pipe: StdioSession, fault: WireFault = fault) -> None:
                out = pipe.ways["out"]
                where = WholeLink() if isinstance(fault, Latency) else Downstream(out.conn, 0)
                await out.link.strike(fault, where)

            rig.watcher.on_open = arm
            begun = asyncio.get_running_loop().time()
            tool = await rig.python("import os; os.write(1, bytes(i % 251 for i in range(5000))); os._exit(3)")
            assert (await tool.rest(), await tool.exits()) == (bytes(i % 251 for i in range(5000)), 3)
            least_s = 0.2 if isinstance(fault, Latency) else 0.01
            assert asyncio.get_running_loop().time() - begun >= least_s, "it was not slow"


async def test_a_stalled_tool_that_gets_a_signal_to_end_ends_soon(rigs: Any, network: Any):
    """A tool that gets SIGTERM ends, though its last bytes will never cross."""
    async with rigs(network) as rig:
        armed(rig, "out", Stall(), 10)
        code = """
import os, signal, time
def end(number, frame):
    time.sleep(0.1)
    os._exit(6)
signal.signal(signal.SIGTERM, end)
os.write(1, b"0123456789abcdef")
signal.pause()
"""
        tool = await rig.python(code)
        assert await tool.read(10) == b"0123456789"
        os.kill(tool.pid, signal.SIGTERM)
        assert await tool.exits() == 6


async def test_a_stall_that_is_healed_ends_as_a_cut(rigs: Any, network: Any):
    """The bytes after it are lost, and the tool's exit status is passed on."""
    async with rigs(network) as rig:
        fault = armed(rig, "out", Stall(), 10)
        tool = await rig.start("sh", "-c", "echo 0123456789abcdef; exit 5")
        assert await tool.read(10) == b"0123456789"
        assert await tool.silent(0.3)
        assert tool.process.returncode is None, "what a stalled tool has to say has not arrived: it is not over"
        assert await (await fault).fired(PATIENCE_S) is not None
        await (await fault).heal()
        assert (await tool.rest(), await tool.exits()) == (b"", 5)


@pytest.mark.parametrize("ending", KINDS)
@pytest.mark.parametrize("when", ["from its start", "in mid conversation"])
async def test_a_hundred_faults_in_a_row_take_effect_at_their_byte(rigs: Any, network: Any, ending: str, when: str):
    """n bytes asked are n bytes received, each time, wherever the pipe is when the fault is armed.

    Ten of them by default, because each is two processes; `WEDGEHOG_LONG=1` makes it a hundred.
    """
    dice = random.Random(f"{network.name}{ending}{when}")
    wrong = []
    async with rigs(network, resets=ending == "rst") as rig:
        for turn in range(ROUNDS if os.environ.get("WEDGEHOG_LONG") else ROUNDS // 10):
            at = dice.choice([0, dice.randint(1, 2000), dice.randint(1, 200_000)])
            got = await (_from_start if when == "from its start" else _in_mid)(rig, KINDS[ending], ending, at)
            if got != (at, ending):
                wrong.append((turn, (at, ending), got))
    assert not wrong


ECHO = "import os\nwhile data := os.read(0, 65536):\n    while data: data = data[os.write(1, data):]\n"


async def _from_start(rig: Any, fault: WireFault, ending: str, at: int) -> tuple[int, str]:
    armed(rig, "out", fault, at)
    tool = await rig.start("head", "-c", str(at + 3000), "/dev/zero", stdin=asyncio.subprocess.DEVNULL)
    return await _ends(rig, tool, at, ending)


async def _in_mid(rig: Any, fault: WireFault, ending: str, at: int) -> tuple[int, str]:
    rig.watcher.on_open = _nothing
    tool = await rig.start("cat")
    tool.write(b"hello")
    assert await tool.read(5) == b"hello"
    await strike(tool.pipe, "out", fault, at)
    tool.write(bytes(at + 3000))
    return await _ends(rig, tool, at, ending)


async def _nothing(pipe: StdioSession) -> None:
    """Inject nothing."""


async def _ends(rig: Any, tool: Any, at: int, ending: str) -> tuple[int, str]:
    """How many bytes came, and what followed."""
    got = 0
    while True:
        wait_s = PATIENCE_S if ending != "stall" or got < at else 0.05
        try:
            data = await asyncio.wait_for(tool.process.stdout.read(1 << 16), wait_s)
        except TimeoutError:
            how = "stall"
            break
        if not data:
            await asyncio.sleep(0)
            how = "rst" if ending == "rst" and await tool.exits() == -signal.SIGKILL else "fin"
            break
        got += len(data)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(tool.pid, signal.SIGKILL)
    await tool.exits()
    tool.process._transport.close()
    rig.started.clear()
    await rig.until(lambda: tool.pipe in rig.watcher.gone)
    return got, how


async def test_a_link_that_dies_by_itself_is_our_trouble(rigs: Any, network: Any):
    """The harness gets the kind of end and the byte count; no fault was armed."""
    async with rigs(network) as rig:
        tool = await rig.start("cat")
        tool.write(b"hello")
        await tool.read(5)
        out = tool.pipe.ways["out"]
        await out.link.close()
        assert await asyncio.wait_for(out.ended, PATIENCE_S) == ("fin", 5)


async def test_pipe_and_command_carry_the_runs_mark_though_the_agent_removed_it(rigs: Any, network: Any, tmp_path: Any):
    """Its processes are found and ended by the mark; the rest of the environment is passed on unchanged."""
    async with rigs(network) as rig:
        (tmp_path / ".wedgehog-pipe").write_text(f"{rig.server.address}\ncampaign/run/agent\n")
        tool = await rig.start("cat", env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
        (proxy, command) = psutil.Process(tool.pid), psutil.Process(tool.pipe.child)
        await rig.until(lambda: command.name() == "cat")
        for process in (proxy, command, *proxy.children()):
            assert process.environ()["WEDGEHOG_RUN"] == "campaign/run/agent"
        assert len(proxy.children()) == 2, "the command and the guard"


async def test_nothing_of_a_run_outlives_its_harness(networks: Any, tmp_path: Any):
    """If the harness is killed, its pipes and tools end too."""
    code = """
import asyncio, sys
from wedgehog.harness.stdio_proxy.session import StdioServer
from wedgehog.harness.network.relay import EmbeddedNetwork
class Watcher:
    async def opened(self, pipe): print(pipe.pid, pipe.child, flush=True)
    async def closed(self, pipe): pass
    def trouble(self, what): pass
async def main():
    async with EmbeddedNetwork() as network, StdioServer(network, lambda _: False, Watcher()) as server:
        process = await asyncio.create_subprocess_exec(*sys.argv[1:], env={"WEDGEHOG_PIPE": server.address}, stdin=-1)
        await process.wait()
asyncio.run(main())
"""
    from wedgehog.harness.stdio_proxy.launch import ARGV

    argv = [sys.executable, "-c", code, *ARGV, "--", "/bin/sleep", "600"]
    harness = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    proxy, tool = map(psutil.Process, map(int, (await asyncio.wait_for(harness.stdout.readline(), PATIENCE_S)).split()))
    harness.kill()
    async with asyncio.timeout(PATIENCE_S):
        for process in (proxy, tool):
            while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                await asyncio.sleep(0.01)
    await harness.wait()
