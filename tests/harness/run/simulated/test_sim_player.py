"""The worker process of the simulated world ends with its forks."""

import asyncio
import os
from pathlib import Path

import pytest

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.run.simulated.sim_player import why_not_in_virtual_time, worker_process
from wedgehog.harness.scenario.model import Scenario

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
    async with asyncio.timeout(10):  # (a killed process is gone a moment after the signal)
        while _runs(fork):
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("echo half; kill -9 $$", "the shell's '$$'"),
        ("read answer", "the command 'read'"),
        ("sleep 25 &", "'$$'"),
        ("echo on; sleep 25", ""),
    ],
)
def test_a_command_that_the_simulated_shell_does_not_know_needs_the_live_world(command: str, missing: str):
    """The agent cannot help it, so the scenario is skipped: an error would blame its spec."""
    turn = {"user": "x", "model": [[{"tool": "shell", "args": {"command": command}}], {"text": "{nonce}"}]}
    scenario = Scenario.model_validate({"name": "x", "why": "y", "turns": [turn]})
    spec = AgentSpec.model_validate({"name": "x", "wire": "anthropic", "callable": "x.py:answer"})
    why = why_not_in_virtual_time(scenario, spec)
    assert (missing in why and "--world live" in why) if missing else why == ""
