"""An agent that gets no processor: what it is late for that reason alone is inconclusive, and nothing else is."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.live.conftest import PLAIN_HTTP
from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.campaign.campaign import Campaign
from wedgehog.harness.campaign.options import Options
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.commands.console import LineProgress
from wedgehog.harness.record.events.run import CpuWaitSeen
from wedgehog.harness.record.history import read
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.sandbox.run_queue import RunQueue
from wedgehog.harness.scenario.scenario_file import load_scenario

pytestmark = pytest.mark.skipif(not RunQueue("none").counts, reason="this system does not count waits")

AGENT = '''\
"""Asks, then works (or sleeps) before it tells the answer, on one processor that it shares with others."""
import json, os, sys, time
from plain_http import post
url, core, how, spin, message = sys.argv[1:6]
body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": message}]}
headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
answer = json.loads(post(url + "/v1/messages", body, headers, timeout_s=100).read())["content"][0]["text"]
if "Go on." in message:  # (in its control run it shows how fast it can be)
    os.sched_setaffinity(0, {int(core)})
    time.sleep(4.5 if how == "sleeps" else 0)  # (a process that sleeps does not see what the others do meanwhile)
    open(spin, "w").close()
    time.sleep(0.5 if how == "sleeps" else 0)
    until = time.thread_time() + (1.0 if how == "works" else 0)
    while time.thread_time() < until:
        pass
print(answer)
'''
SPINS = """\
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
end = time.monotonic() + 60
while time.monotonic() < end:
    pass
"""
"""From the moment at which the agent is at work or wakes up: the other tests need the processors too."""
STORY = {
    "name": "in-time",
    "why": "w",
    "turns": [{"user": "Go on.", "model": [{"text": "Done. {nonce}"}]}],
    "invariants": {"turn_deadline": {"turn_s": 0.5}},
}


@pytest.fixture
def core(tmp_path: Path) -> Iterator[int]:
    """A processor on which five others never stop."""
    core = max(os.sched_getaffinity(0))
    words = [sys.executable, "-S", "-E", "-c", SPINS, str(core), str(tmp_path / "spin")]
    spinning = [subprocess.Popen(words) for _ in range(5)]
    yield core
    for process in spinning:
        process.kill()
        process.wait()


async def judged(tmp_path: Path, core: int, how: str) -> tuple[Judgement, Path]:
    (tmp_path / "agent.py").write_text(AGENT)
    shutil.copy(PLAIN_HTTP, tmp_path)
    (tmp_path / "story.yaml").write_text(yaml.safe_dump(STORY))
    command = ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}", str(core), how]
    command += [str(tmp_path / "spin"), "{message}"]
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump({"name": how, "wire": "anthropic", "command": command}))
    entry = Entry(load_scenario(tmp_path / "story.yaml"), load_spec(tmp_path / "agent.yaml"))
    campaign = Campaign([entry], Options(tmp_path / "runs", "embedded", 1), _Progress(), lambda line: None)
    (judgement,) = await campaign.play()
    return judgement, campaign.store.folder / "in-time" / how / "history.jsonl"


async def test_an_agent_that_gets_no_processor_is_not_blamed_for_it(tmp_path: Path, core: int):
    """It needs 1.0 s of a processor, and may have 1.5 s; it gets a sixth of one, or half if Linux shares by session."""
    judgement, history = await judged(tmp_path, core, "works")
    assert judgement.verdict == "inconclusive", judgement.says
    # The longest wait stands first, and on a busy machine that may be the harness's own.
    assert re.search(r"but .*\bthe agent (waited )?\d+\.\d s", judgement.says), judgement.says
    assert max(wait.agent_s for seen in read(history).of(CpuWaitSeen) for wait in seen.waits) > 0.05


async def test_an_agent_that_sleeps_beside_them_is_blamed(tmp_path: Path, core: int):
    """It is late by five seconds, and waited for a processor for much less."""
    judgement, _ = await judged(tmp_path, core, "sleeps")
    assert judgement.violated == ("turn_deadline",), judgement.says


class _Progress(LineProgress):
    """Says nothing."""

    def __init__(self) -> None:
        """Nothing to show."""

    def begins(self, what: str) -> None:
        """Not told."""

    def ended(self, what: str, judgement: Judgement | None) -> None:
        """Not told."""
