"""The same seed gives the same bytes at the same times, in one process and in several."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
