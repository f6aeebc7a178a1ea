"""`wedgehog fuzz` in virtual time: bugs that need two faults are found, and what is found also fails live."""

import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml
from rich.console import Console

from wedgehog.harness.campaign.options import Options
from wedgehog.harness.campaign.selection import named_agent
from wedgehog.harness.commands import fuzz

Wedgehog = Callable[..., "CompletedProcess[str]"]

AGENT = '''\
"""It asks once more after an error. If that reply is lost too, it answers with nothing: the planted bug."""
import asyncio
import aiohttp

runs = []


async def ask(message, *, session_dir, llm_url, key):
    runs.append(message)
    body = {{"model": "m", "messages": [{{"role": "user", "content": message}}]}}
    lost, pause_s, limit = [], 0.0, aiohttp.ClientTimeout(total=5)
    async with aiohttp.ClientSession(timeout=limit, headers={{"authorization": f"Bearer {{key}}"}}) as client:
        for attempt in (1, 2):
            try:
                async with client.post(f"{{llm_url}}/v1/chat/completions", json=body) as reply:
                    answer = await reply.json()
                    pause_s = float(reply.headers.get("retry-after", 0))
                    if reply.status in (400, 401, 403, 404, 413):
                        return f"Error: {{answer}}"
                    if reply.status >= 400:
                        raise RuntimeError(str(answer))
                    said = answer["choices"][0]["message"].get("content")
                    if answer["choices"][0]["finish_reason"] != "stop" or not said:
                        raise RuntimeError("no whole answer")
                    return said
            except (aiohttp.ClientError, TimeoutError, ValueError, RuntimeError) as wrong:
                {bug}
                if attempt == 2:
                    raise
                await asyncio.sleep(pause_s)
'''
TIMED_OUT_AND_REFUSED = (
    "lost.append(type(wrong).__name__)\n                if set(lost) == {'RuntimeError', 'TimeoutError'}: return ''"
)
LOCKS = '''\
"""It locks its session while it works. An abort of its second try leaves the lock: the planted bug."""
import asyncio, pathlib
import aiohttp


async def ask(message, *, session_dir, llm_url, key):
    lock = pathlib.Path(session_dir) / "lock"
    if lock.exists():
        return "Error: I am still busy with your last message"
    lock.touch()
    body = {"model": "m", "messages": [{"role": "user", "content": message}]}
    limit = aiohttp.ClientTimeout(total=5)
    async with aiohttp.ClientSession(timeout=limit, headers={"authorization": f"Bearer {key}"}) as client:
        for attempt in (1, 2):
            try:
                async with client.post(f"{llm_url}/v1/chat/completions", json=body) as reply:
                    answer = await reply.json()
                    if reply.status >= 400 or answer["choices"][0]["finish_reason"] != "stop":
                        raise RuntimeError(f"no whole answer: {answer}")
                lock.unlink()
                return answer["choices"][0]["message"].get("content") or "Error: an empty reply"
            except asyncio.CancelledError:
                if attempt == 1:
                    lock.unlink()
                raise
            except (aiohttp.ClientError, TimeoutError, ValueError, RuntimeError):
                if attempt == 2:
                    lock.unlink()
                    raise
'''


def agent(folder: Path, bug: str) -> None:
    (folder / "agent.py").write_text(AGENT.format(bug=bug))
    spec = {"name": "mine", "wire": "openai-chat", "callable": "agent:ask", "recover_s": 0}
    (folder / "mine.yaml").write_text(yaml.safe_dump(spec))


def faults_of(path: Path) -> list[str]:
    lines = yaml.safe_load(path.read_text())["faults"]
    return sorted(it["do"] if isinstance(it["do"], str) else next(iter(it["do"])) for it in lines)


def test_a_bug_that_needs_two_faults_is_found_and_fails_live_too(tmp_path: Path, wedgehog: Wedgehog):
    """A time-out and a refusal; the file has these two, and it is an ordinary scenario."""
    agent(tmp_path, TIMED_OUT_AND_REFUSED)
    done = wedgehog("fuzz", "--agent", "mine.yaml", "--scenarios", "70")
    found = sorted((tmp_path / "fuzz/mine/found").glob("*.yaml"))
    assert done.returncode == 1 and found, done.stdout + done.stderr
    assert all(len(faults_of(path)) == 2 for path in found), done.stdout
    assert "play it: wedgehog run fuzz/mine/found/" in done.stdout
    assert "✗ error_surfaced: turn" in done.stdout and "live:" not in done.stdout
    _fails_in_both_worlds(wedgehog, found[-1], "error_surfaced")
    agent(tmp_path, "pass")
    mended = wedgehog("fuzz", "--agent", "mine.yaml", "--scenarios", "5")
    assert f"✓ {found[-1].stem} passes now" in mended.stdout, mended.stdout + mended.stderr


def test_two_processes_share_the_faults_to_try_alone(tmp_path: Path, wedgehog: Wedgehog):
    """Each is tried once; then both know the pairs that can tell most, as one process does."""
    agent(tmp_path, TIMED_OUT_AND_REFUSED)
    done = wedgehog("fuzz", "--agent", "mine.yaml", "--scenarios", "70", "--jobs", "2")
    assert done.returncode == 1 and "error_surfaced" in done.stdout, done.stdout + done.stderr
    batches = map(json.loads, (tmp_path / "fuzz/mine/tried-sim.jsonl").read_text().splitlines())
    alone = [fault for batch in batches for fault in batch.get("alone") or ()]
    assert len(alone) > 20 and len(alone) == len(set(alone))


def test_a_bug_that_needs_a_fault_and_an_abort_is_found_and_fails_live_too(tmp_path: Path, wedgehog: Wedgehog):
    """The abort comes while the agent tries again."""
    agent(tmp_path, "pass")
    (tmp_path / "agent.py").write_text(LOCKS)
    done = wedgehog("fuzz", "--agent", "mine.yaml", "--scenarios", "100")
    found = sorted((tmp_path / "fuzz/mine/found").glob("session-recovers-abort*.yaml"))
    assert done.returncode == 1 and found, done.stdout + done.stderr
    assert len(faults_of(found[0])) == 2, done.stdout
    _fails_in_both_worlds(wedgehog, found[0], "session_recovers")


def test_the_greatest_scenario_of_a_search_is_shown_and_saved(tmp_path: Path, wedgehog: Wedgehog):
    """It is no failure, and plays as it was found."""
    agent(tmp_path, "pass")
    done = wedgehog("fuzz", "--agent", "mine.yaml", "--scenarios", "25", "--worst", "silence")
    measures = r"simulated cost \$[\d.e-]+, \d paid calls?, the longest turn took (\d+\.\d) s"
    said = re.search(f"greatest silence: {measures}", done.stdout)
    assert done.returncode == 0 and said is not None and float(said[1]) >= 10, done.stdout + done.stderr
    assert "play it: wedgehog run fuzz/mine/greatest-silence.yaml --agent mine.yaml" in done.stdout
    played = wedgehog("run", "fuzz/mine/greatest-silence.yaml", "--agent", "mine.yaml", "--world", "sim")
    assert played.returncode == 0 and f"virtual time: {float(said[1]):.0f} s" in played.stdout, (
        played.stdout + played.stderr
    )


def _fails_in_both_worlds(wedgehog: Wedgehog, scenario: Path, violated: str) -> None:
    for world in ("sim", "live"):
        again = wedgehog("run", str(scenario), "--agent", "mine.yaml", "--world", world, "--network", "embedded")
        assert again.returncode == 1 and violated in again.stdout, again.stdout + again.stderr


def test_a_failure_that_only_a_used_process_shows_is_not_told(tmp_path: Path, wedgehog: Wedgehog):
    """A package keeps what earlier scenarios did; a fresh process does not fail."""
    agent(tmp_path, "import decimal; decimal.runs = getattr(decimal, 'runs', 0) + 1; answer = decimal.runs > 9 and ''")
    text = (tmp_path / "agent.py").read_text()
    leaky = "if answer == '': return ''\n                if attempt == 2:"
    (tmp_path / "agent.py").write_text(text.replace("if attempt == 2:", leaky))
    done = wedgehog("fuzz", "--agent", "mine.yaml", "--scenarios", "25")
    assert "failed once and not again" in done.stdout, done.stdout + done.stderr
    assert not list((tmp_path / "fuzz/mine/found").glob("*.yaml"))


def test_the_agents_own_modules_are_new_in_each_scenario(tmp_path: Path, wedgehog: Wedgehog):
    """A list in its module never grows."""
    agent(tmp_path, "if len(runs) > 4: return ''")
    done = wedgehog("fuzz", "--agent", "mine.yaml", "--scenarios", "25")
    assert "failed once and not again" not in done.stdout and done.returncode == 0, done.stdout + done.stderr


def test_an_agent_that_ends_the_process_of_the_search_is_told_in_one_line(tmp_path: Path, wedgehog: Wedgehog):
    """The control run has another message and passes."""
    agent(tmp_path, "pass")
    text = (tmp_path / "agent.py").read_text()
    ends = "import os\n    if 'hedgehog' in message: os._exit(1)\n    runs.append(message)"
    (tmp_path / "agent.py").write_text(text.replace("runs.append(message)", ends, 1))
    done = wedgehog("fuzz", "--agent", "mine.yaml", "--scenarios", "5")
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert "the process of the search ended; worker.log" in done.stderr


async def test_without_hypothesis_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With `--world sim` it is an error; otherwise the search is live."""
    monkeypatch.setattr(fuzz, "find_spec", lambda name: None)
    agent(tmp_path, "pass")
    mine = named_agent(str(tmp_path / "mine.yaml"))
    wish = fuzz.FuzzOptions((mine,), ("mine.yaml",), 1.0, tmp_path / "fuzz", world="sim")
    with pytest.raises(ValueError, match=r"^a search in virtual time needs Hypothesis: pip install 'wedgehog\[fuzz"):
        await fuzz.Fuzz(wish, Options(tmp_path / "runs"), Console(file=sys.stderr)).run()


BY_CHANCE = "import random\n                if random.random() < 0.3: return ''"
PLAIN = {"why": "?", "turns": [{"user": "Hi", "model": [{"text": "Yes. {nonce}"}]}]}
DICE = '''\
"""It takes a random time."""
import asyncio, random
import aiohttp


async def ask(message, *, session_dir, llm_url, key):
    body = {"model": "m", "messages": [{"role": "user", "content": message}]}
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {key}"}) as client:
        async with client.post(f"{llm_url}/v1/chat/completions", json=body) as reply:
            await asyncio.sleep(random.uniform(1, 9))
            return (await reply.json())["choices"][0]["message"]["content"]
'''


@pytest.mark.parametrize("seed", ["0", "3"])
def test_a_bug_that_shows_by_chance_shows_again_in_the_saved_file(tmp_path: Path, wedgehog: Wedgehog, seed: str):
    """The file says from what its random numbers follow, so neither its name nor the seed of the search matters."""
    agent(tmp_path, BY_CHANCE)
    done = wedgehog("fuzz", "--agent", "mine.yaml", "--scenarios", "70", "--seed", seed)
    found = sorted((tmp_path / "fuzz/mine/found").glob("*.yaml"))
    assert found and "failed once and not again" not in done.stdout, done.stdout + done.stderr
    played = wedgehog("run", *map(str, found), "--agent", "mine.yaml", "--world", "sim", "--quiet")
    assert f"0 passed, {len(found)} failed" in played.stdout + played.stderr, played.stdout + played.stderr


def test_scenarios_of_one_campaign_have_other_luck_and_its_agents_the_same(tmp_path: Path, wedgehog: Wedgehog):
    """So the scenarios are independent, as the gate's tests assume; and the same command plays the same again."""
    (tmp_path / "agent.py").write_text(DICE)
    for name in ("mine", "other"):
        spec = {"name": name, "wire": "openai-chat", "callable": "agent:ask", "recover_s": 0}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    for name in ("first", "second"):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({"name": name, **PLAIN}))
    words = ("first.yaml", "second.yaml", "--agent", "mine.yaml", "--agent", "other.yaml", "--repeat", "2")
    took_s = [_turn_times(wedgehog, *words, "--out", str(tmp_path / out)) for out in ("a", "b")]
    assert took_s[0] == took_s[1]
    assert len(set(took_s[0]["mine"])) == 4 and took_s[0]["mine"] == took_s[0]["other"], took_s[0]


def _turn_times(wedgehog: Wedgehog, *words: str) -> dict[str, list[str]]:
    """The longest turns of each agent, in the order of scenarios and repeats."""
    done = wedgehog("run", *words, "--world", "sim", "--quiet")
    assert done.returncode == 0, done.stdout + done.stderr
    with Path(words[-1], "latest", "summary.csv").open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (row["scenario"], row["run_dir"]))
    return {agent: [row["turn_s"] for row in rows if row["agent"] == agent] for agent in ("mine", "other")}
