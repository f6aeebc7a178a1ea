"""Pipes that end while a fault is armed on them: the fault misses, and the network has not failed.

`WEDGEHOG_PIPES=200` runs so many in each way; the default is a few.
"""

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parity.conftest import PATIENCE_S
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.network.base import Network
from wedgehog.harness.record.clock import WallClock, first_of
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import Trouble
from wedgehog.harness.record.events.service import PipeClosed, PipeOpened
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.fault_config import FaultConfig
from wedgehog.harness.scenario.fault_plan import FaultPlan
from wedgehog.harness.stdio_proxy.launch import ARGV
from wedgehog.harness.stdio_proxy.session import StdioServer

PIPES = int(os.environ.get("WEDGEHOG_PIPES", "8"))
AT_ONCE = 8
WAYS = ("by itself", "killed", "left", "young")
SAYS = "head -c 3000 /dev/zero; sleep 0.0$1; head -c 3000 /dev/zero"
LINE = {"link": "ipc:tool", "times": "always"}
PLANS: dict[str, Any] = {
    "stall": {"at": {"byte": 3000}, "do": "stall"},
    "stall-at-the-last-byte": {"at": {"byte": 6000}, "do": "stall"},
    "pause": {"at": {"byte": 3000}, "do": {"stall": 0.02}},
    "cut": {"at": {"byte": 4000}, "do": "cut"},
    "reset": {"at": {"byte": 4000}, "do": {"cut": "rst"}},
    "latency": {"at": {"after_s": 0.03}, "do": {"latency": 0.01}},
    "late-stall": {"at": {"after_s": 0.03}, "do": "stall"},
    "stdin": {"at": {"phase": "request", "byte": 50}, "do": "cut"},
}
MAY_MISS = ("latency", "late-stall", "stdin")
"""The command may have ended before these faults can take effect."""


@pytest.fixture(params=["embedded", "toxiproxy"])
async def network(request: pytest.FixtureRequest, networks: Any) -> AsyncIterator[Network]:
    """Both networks, one after the other."""
    async with networks(request.param) as network:
        yield network


async def comes_and_goes(ends: str, draw: random.Random, address: str, home: Path, history: History) -> None:
    """A command that ends by itself, is killed, or whose agent ends, within a few hundredths of a second."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "WEDGEHOG_PIPE": address}
    argv = (*ARGV, "--name", "tool", "--", "sh", "-c", SAYS, "sh", str(draw.randrange(1, 8)))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=pipe, stdout=pipe, env=env, start_new_session=True, stderr=asyncio.subprocess.DEVNULL
    )
    process.stdin.write(b"x" * 100)
    lives_s = draw.uniform(0, 0.1)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(10 * lives_s if ends == "young" else None):
            while process.returncode is None and all(seen.pid != process.pid for seen in history.of(PipeOpened)):
                await asyncio.sleep(0.005)
        async with asyncio.timeout(PATIENCE_S if ends == "by itself" else lives_s):
            await first_of(process.stdout.read(), struck(history))
    if ends == "left":
        for descriptor in (0, 1):
            process._transport.get_pipe_transport(descriptor).close()
        await asyncio.sleep(lives_s)
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    await process.wait()


async def struck(history: History) -> None:
    """Two seconds, and longer if no fault has fired by then: on a busy machine it takes its time."""
    await asyncio.sleep(2)
    while not list(history.of(FaultFired)):
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("plan", PLANS)
async def test_a_pipe_that_ends_while_a_fault_is_armed_is_no_trouble(
    network: Network, tmp_path: Path, plan: str, settled_pipes: Callable[..., Any]
):
    """Every pipe is opened and closed in the history, and the network has not failed."""
    history, draw = History(WallClock()), random.Random(plan)
    faults = FaultPlan((FaultConfig.model_validate(LINE | PLANS[plan]).planned(),))
    injector = Injector(faults, {}, history, WallClock())
    async with StdioServer(network, injector.pipes.resets, injector.pipes) as server:
        for wave in range(-(-PIPES // AT_ONCE)):
            await injector.before_turn(1)
            async with asyncio.TaskGroup() as group:
                for number in range(AT_ONCE):
                    ends = WAYS[number % len(WAYS)]
                    group.create_task(comes_and_goes(ends, draw, server.address, tmp_path, history))
            if wave % 2:
                await settled_pipes(history)
    await injector.after_turn(1)
    await injector.close()
    assert [event.what for event in history.of(Trouble)] == [] and not injector.broken.is_set()
    assert len(list(history.of(PipeOpened))) == len(list(history.of(PipeClosed))) >= PIPES // 2
    assert list(history.of(FaultFired)) or plan in MAY_MISS, "no fault ever fired"


@pytest.fixture
def settled_pipes() -> Callable[..., Any]:
    """Waits until every opened pipe has closed."""

    async def settled(history: History) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(list(history.of(PipeOpened))) > len(list(history.of(PipeClosed))):
                await asyncio.sleep(0.01)

    return settled
