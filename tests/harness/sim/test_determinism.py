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
    for agent in sys.argv[1:]:
        print(digest(world, agent, seed=7))
"""
AGENTS = ("aiohttp", "openai")
MANY = 100


def digests(hash_seed: int, *agents: str) -> list[str]:
    """Of runs of the benchmark's scenario by these agents, one after the other, in a new process."""
    command = [sys.executable, "-c", DIGESTS, *agents]
    env = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.fixture(scope="module")
def of_processes() -> list[list[str]]:
    """The digests of five processes, which import their agents once; the first one makes many runs."""
    more = ["httpx", *["aiohttp"] * (MANY - 1)]
    return [digests(hash_seed, *AGENTS, *([] if hash_seed else more)) for hash_seed in range(5)]


def test_a_hundred_runs_of_one_process_are_the_same(of_processes: list[list[str]]):
    once, _, _, *again = of_processes[0]
    assert [once, *again] == [once] * MANY


@pytest.mark.parametrize("agent", AGENTS)
def test_runs_of_five_processes_are_the_same(of_processes: list[list[str]], agent: str):
    """Whatever their hash seed is."""
    assert len({process[AGENTS.index(agent)] for process in of_processes}) == 1


def test_another_agent_gives_another_digest(of_processes: list[list[str]]):
    assert len(set(of_processes[0][:3])) == 3


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
