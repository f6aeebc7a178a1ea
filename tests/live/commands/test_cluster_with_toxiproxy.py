"""A cluster whose workers make their faults with Toxiproxy: each its own server, and none outlives its worker."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
import yaml

from tests.live.conftest import patiently
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.store import read_run, run_folders

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="Dask is not installed")

AGENT = """\
import json, urllib.request

def answer(message, *, session_dir, llm_url, key):
    body = {"model": "claude-sonnet-4-6", "max_tokens": 99, "messages": [{"role": "user", "content": message}]}
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01", "content-type": "application/json"}
    asked = urllib.request.Request(f"{llm_url}/v1/messages", json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(asked, timeout=60))["content"][0]["text"]
"""
CUT = {
    "name": "cut",
    "why": "A reply that ends early is said.",
    "turns": [{"user": "Go on.", "model": [{"text": "Done {nonce}"}]}],
    "faults": [{"link": "llm", "at": {"turn": 1, "step": 1, "byte": 40}, "do": {"cut": "rst"}}],
}
REPEATS = 5
PLAYS = """
import asyncio, json, os, signal, sys
from dataclasses import replace
from pathlib import Path
from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.campaign.options import NoProgress, Options
from wedgehog.harness.campaign.cluster import ClusterCampaign
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.scenario.scenario_file import load_scenario

def servers():
    import os, psutil
    # A worker that starts asks the program for its version first: that is no server.
    found = psutil.Process().children()
    return os.getpid(), [it.pid for it in found if it.name().startswith("toxiproxy") and "-port" in it.cmdline()]

class Kills(NoProgress):
    def __init__(self):
        self.looks, self.seen, self.killed = [], {}, None

    def ended(self, what, judgement):
        if judgement is not None:
            self.looks.append(asyncio.create_task(self.look()))

    async def look(self):
        for worker, found in (await campaign._client.run(servers, on_error="ignore")).values():
            self.seen.setdefault(worker, set()).update(found)
            if found and self.killed is None:
                self.killed = worker
                os.kill(worker, signal.SIGKILL)

async def main():
    global campaign
    one = Entry(load_scenario(Path("cut.yaml")), load_spec(Path("mine.yaml")))
    kills = Kills()
    entries = [replace(one, repeat=n) for n in range(1, REPEATS + 1)]
    campaign = ClusterCampaign("local:2", entries, Options(Path("runs"), "toxiproxy"), kills, lambda line: None)
    await campaign.play()
    seen = {worker: sorted(found) for worker, found in kills.seen.items()}
    print(json.dumps({"seen": seen, "killed": kills.killed}))

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.usefixtures("toxiproxy")
def test_each_worker_has_a_toxiproxy_that_ends_with_it(tmp_path: Path):
    """Also one that is killed: its run is played by another, and its server is gone."""
    (tmp_path / "cut.yaml").write_text(yaml.safe_dump(CUT))
    (tmp_path / "agent.py").write_text(AGENT)
    spec = {"name": "mine", "wire": "anthropic", "callable": f"{tmp_path / 'agent.py'}:answer", "recover_s": 0}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(spec))
    (tmp_path / "plays.py").write_text(PLAYS.replace("REPEATS", str(REPEATS)))
    head = subprocess.run([sys.executable, "plays.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert head.returncode == 0, head.stderr
    runs = [read_run(folder) for folder in run_folders(tmp_path / "runs" / "latest" / "cut")]
    assert [run.judgement.repeat for run in runs] == list(range(1, REPEATS + 1))
    assert {(run.judgement.verdict, run.history.run.network) for run in runs} == {("pass", "toxiproxy")}
    assert all("relay" not in fired.proof for run in runs for fired in run.history.of(FaultFired))
    said = json.loads(head.stdout)
    pids = [pid for found in said["seen"].values() for pid in found]
    assert said["killed"] and len(set(pids)) == len(pids) >= 2  # that of the killed worker and of another one
    assert all(len(found) <= 1 for found in said["seen"].values())
    assert patiently(lambda: not any(map(_is_a_server, pids)), 10), [
        psutil.Process(pid) for pid in pids if _is_a_server(pid)
    ]


def _is_a_server(pid: int) -> bool:
    """Whether it runs; one that has ended and is not reaped yet does not."""
    try:
        process = psutil.Process(pid)
        return process.name().startswith("toxiproxy") and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
