"""Runs on a Dask cluster: each run once, also if a worker and then the head are killed; the same verdicts."""

import io
import json
import subprocess
import sys
import tarfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.campaign.cluster import ClusterCampaign, ClusterError, check_address
from wedgehog.harness.campaign.cluster_worker import RemoteResult, pack, unpack
from wedgehog.harness.campaign.options import NoProgress, Options
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import read_run, run_folders
from wedgehog.harness.scenario.scenario_file import load_scenario

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="Dask is not installed")
"""Not imported when tests are collected: that takes a quarter of a second, and each worker collects all tests."""

AGENT = """\
import aiohttp

async def answer(message, *, session_dir, llm_url, key):
    body = {"model": "claude-sonnet-4-6", "max_tokens": 99, "messages": [{"role": "user", "content": message}]}
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as client:
        async with client.post(f"{llm_url}/v1/messages", json=body, headers=headers) as reply:
            return (await reply.json())["content"][0]["text"]
"""
STALL = [{"link": "llm", "at": {"turn": 1, "step": 1, "phase": "headers"}, "do": {"stall": "forever"}}]
REPEATS = 4
PLAYS = """
import asyncio, os, signal, sys
from dataclasses import replace
from pathlib import Path
from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.campaign.options import NoProgress, Options
from wedgehog.harness.campaign.cluster import ClusterCampaign
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.scenario.scenario_file import load_scenario

class Kills(NoProgress):
    ended_runs = 0

    def ended(self, what, judgement):
        self.ended_runs += judgement is not None
        if judgement is not None and self.ended_runs == 1:
            self.killing = asyncio.create_task(self.kill_a_worker())
        if judgement is not None and self.ended_runs == 4:
            os.kill(os.getpid(), signal.SIGKILL)

    async def kill_a_worker(self):
        address = min(await campaign._client.nthreads())
        (pid,) = (await campaign._client.run(os.getpid, workers=[address])).values()
        os.kill(pid, signal.SIGKILL)
        print("killed", flush=True)

async def main():
    global campaign
    agent = load_spec(Path("mine.yaml"))
    first = [Entry(load_scenario(Path(name)), agent) for name in ("well.yaml", "stall.yaml")]
    entries = [replace(entry, repeat=n) for n in range(1, REPEATS + 1) for entry in first]
    options = Options(Path("runs"), seed=5, world="sim")
    campaign = ClusterCampaign("local:2", entries, options, Kills(), lambda line: print(line, flush=True))
    await campaign.play()

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_each_run_is_played_once_though_a_worker_and_the_head_are_killed(tmp_path: Path):
    """The runs of the worker are played by others, those of the head by the command that takes the campaign up."""
    turns = [{"user": "Go on.", "model": [{"text": "Done {nonce}"}]}]
    bound = {"turn_deadline": {"turn_s": 20}}
    for name, more in (("well", {}), ("stall", {"faults": STALL, "invariants": bound})):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({"name": name, "why": "w", "turns": turns, **more}))
    (tmp_path / "agent.py").write_text(AGENT)
    spec = {"name": "mine", "wire": "anthropic", "callable": f"{tmp_path / 'agent.py'}:answer", "recover_s": 0}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(spec))
    (tmp_path / "plays.py").write_text(PLAYS.replace("REPEATS", str(REPEATS)))
    head = subprocess.run([sys.executable, "plays.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert head.returncode == -9 and "killed" in head.stdout, head.stdout + head.stderr
    assert "cluster tcp://127.0.0.1:" in head.stdout and ": 2 runs at the same time" in head.stdout
    campaign = tmp_path / "runs" / "latest"
    before = {run.name: (run / "history.jsonl").stat().st_mtime_ns for run in run_folders(campaign / "stall")}
    words = [sys.executable, "-m", "wedgehog.harness.commands.cli", "run", "--resume", "runs/latest", "--json"]
    ran = subprocess.run([*words, "--cluster", "local:1"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr
    rows = json.loads(ran.stdout)
    assert sorted((row["scenario"], row["repeat"]) for row in rows) == sorted(
        (name, n) for name in ("well", "stall") for n in range(1, REPEATS + 1)
    )
    assert {(row["scenario"], row["verdict"], row["violated"]) for row in rows} == {
        ("well", "pass", ""),
        ("stall", "fail", "turn_deadline"),
    }
    after = {run.name: (run / "history.jsonl").stat().st_mtime_ns for run in run_folders(campaign / "stall")}
    assert before.items() <= after.items() and len(after) == REPEATS
    one = read_run(next(run_folders(campaign / "stall")))
    assert f"/{campaign.resolve().name}/stall/mine " in one.judgement.replay
    bodies = {event["body_hash"] for event in _requests(one.folder)}
    assert bodies and all((campaign / "bodies" / name).is_file() for name in bodies)
    assert not list(campaign.rglob("plan.json"))[1:]


def _requests(run: Path) -> list[dict[str, Any]]:
    events = map(json.loads, (run / "history.jsonl").read_text().splitlines())
    return [event for event in events if event["event"] == "request_arrived"]


@pytest.mark.parametrize("address", ["local:0", "local", "4", "127.0.0.1:8786", "http://127.0.0.1:1"])
def test_an_address_that_is_none_is_one_line(address: str):
    with pytest.raises(ClusterError, match=r"expected local:N, or the address of a scheduler"):
        check_address(address)


def test_without_dask_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """And makes no folder."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install 'wedgehog\[dask\]'"):
        ClusterCampaign("local:2", [], Options(tmp_path / "runs"), NoProgress(), print)
    assert not (tmp_path / "runs").exists()


def test_a_run_is_sent_with_its_bodies_and_without_its_judgement(tmp_path: Path):
    """The head writes the judgement last: until then the run is unfinished."""
    there, here = tmp_path / "there", tmp_path / "here"
    run = there / "s" / "a.2"
    (run / "session").mkdir(parents=True)
    (there / "bodies").mkdir()
    (run / "history.jsonl").write_text('{"body_hash": "0123456789abcdef"}\n')
    (run / "verdicts.json").write_text("{}")
    (run / "session" / "verdicts.json").write_text("of the agent")
    for name in ("0123456789abcdef", "fedcba9876543210"):
        (there / "bodies" / name).write_text(name)
    unpack(pack(run, there), here)
    found = sorted(str(path.relative_to(here)) for path in here.rglob("*") if path.is_file())
    assert found == ["bodies/0123456789abcdef", "s/a.2/history.jsonl", "s/a.2/session/verdicts.json"]


def test_a_second_result_names_the_first_one(tmp_path: Path):
    """As in a campaign without a cluster."""
    (tmp_path / "well.yaml").write_text(yaml.safe_dump({"name": "well", "why": "w", "turns": [{"user": "Go on."}]}))
    (tmp_path / "agent.py").write_text(AGENT)
    spec = {"name": "mine", "wire": "anthropic", "callable": "{here}/agent.py:answer"}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(spec))
    entry = Entry(load_scenario(tmp_path / "well.yaml"), load_spec(tmp_path / "mine.yaml"))
    campaign = ClusterCampaign("local:2", [entry], Options(tmp_path / "runs"), NoProgress(), print)
    failed = Judgement("well", "mine", "embedded", "fail", violated=("turn_answered",), lacked_processors=True)
    campaign._busy.again([(entry, failed)])
    there = tmp_path / "there" / "well" / "mine"
    there.mkdir(parents=True)
    (there / "history.jsonl").write_text("")
    result = RemoteResult(replace(failed, verdict="pass", violated=()), pack(there, tmp_path / "there"))
    (remark,) = campaign._unpacked(entry, result).remarks
    assert remark.startswith("on a busy machine it first violated turn_answered")


def test_a_parcel_writes_nothing_outside_the_campaign(tmp_path: Path):
    """A name with `..` is refused."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("../evil"))
    with pytest.raises(tarfile.OutsideDestinationError):
        unpack(target.getvalue(), tmp_path / "campaign")
    assert not (tmp_path / "evil").exists()
