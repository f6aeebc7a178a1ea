"""The worker process of the simulated world ends with its forks."""

import asyncio
import os
from pathlib import Path

from wedgehog.harness.run.sim_player import worker_process

FORKS = "sleep 300 & echo $!; wait"
"""A program with a child that holds its stdout, as a fork that plays a long run does."""


def _runs(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_an_interrupted_campaign_does_not_wait_for_the_runs_that_are_under_way(tmp_path: Path):
    """A fork holds the worker's stdout, and a run without a limit of rounds lasts for ten minutes."""
    with (tmp_path / "worker.log").open("wb") as log:
        async with asyncio.timeout(10), worker_process(["sh", "-c", FORKS], dict(os.environ), log) as worker:
            assert worker.stdout is not None
            fork = int(await worker.stdout.readline())
            assert _runs(fork)
    assert not _runs(fork)
