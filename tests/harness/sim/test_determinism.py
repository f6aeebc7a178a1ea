"""The same seed gives the same bytes at the same times, in one process and in several."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from wedgehog.harness.faults.wire.cut import Refuse
from wedgehog.harness.network.base import WholeLink
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.sim.loop import SimLoop
from wedgehog.harness.sim.net import Net
from wedgehog.harness.sim.network import SimNetwork
from wedgehog.harness.sim.world import simulate

ROOT = Path(__file__).parents[3]
DIGESTS = """
import sys
from benchmarks.sim import SimWorld, digest
with SimWorld() as world:
    for _ in range(int(sys.argv[2])):
        print(digest(world, sys.argv[1], seed=7))
"""


def digests(agent: str, count: int, hash_seed: int) -> list[str]:
    """Of `count` runs of the benchmark's scenario in a new process."""
    command = [sys.executable, "-c", DIGESTS, agent, str(count)]
    env = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_hundred_runs_of_one_process_are_the_same():
    assert len(set(digests("aiohttp", 100, 0))) == 1


@pytest.mark.parametrize("agent", ["aiohttp", "openai"])
def test_runs_of_five_processes_are_the_same(agent: str):
    """Whatever their hash seed is."""
    assert len({it for hash_seed in range(5) for it in digests(agent, 1, hash_seed)}) == 1


def test_another_agent_gives_another_digest():
    assert digests("aiohttp", 1, 0) != digests("httpx", 1, 0)


def test_connections_are_ended_in_the_order_in_which_they_began():
    """A set of objects would have them in the order of their addresses, which differs from run to run."""

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, HOST, 0)
        async with SimNetwork() as network:
            link = await network.open_link("llm", server.sockets[0].getsockname(), resets=False)
            clients = [await asyncio.open_connection(*link.address) for _ in range(20)]
            await link.strike(Refuse(), WholeLink())
            await asyncio.sleep(1)
            for _, writer in clients:
                writer.close()

    def ended() -> list[str]:
        net, labels = Net(), list[str]()
        net.observe = lambda now, label, part: labels.append(label) if part == "fin" else None
        simulate(main, loop=SimLoop(net))
        return labels

    wanted, kept = ended(), []
    for _ in range(10):
        kept.append([bytearray(7) for _ in range(1013)])  # so that addresses differ
        assert ended() == wanted
    assert [int(label[:-1]) for label in wanted[:39]] == list(range(1, 40))
