"""Agents that are compared are judged by one bound of time; what a spec promises beyond it is shown apart."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.campaign.common_bound import CommonBound, common_bound_of
from wedgehog.harness.campaign.selection import Wanted, select
from wedgehog.harness.commands.cli import app
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.scenario_file import load_scenario
from wedgehog.harness.testing import HistoryBuilder

ASKS = """
import json, sys, urllib.request
body = {"model": "m", "max_tokens": 999, "messages": [{"role": "user", "content": sys.argv[2]}]}
head = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
asked = urllib.request.Request(sys.argv[1] + "/v1/messages", json.dumps(body).encode(), head)
print(json.load(urllib.request.urlopen(asked, timeout=20))["content"][0]["text"])
"""
STORY = {
    "name": "well",
    "why": "The reply takes four seconds.",
    "turns": [{"user": "Hi", "model": [{"text": "Hello {nonce}"}]}],
    "faults": [{"at": {"turn": 1, "step": 1}, "do": {"slow": 4}}],
}


@pytest.fixture
def wedgehog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Two specs of one program that promise different times, and a scenario that names none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "well.yaml").write_text(yaml.safe_dump(STORY))
    for name, turn_s in (("strict", 0.2), ("patient", 8)):
        command = ["{python}", "-S", "-c", ASKS, "{llm_url}", "{message}"]
        spec = {"name": name, "wire": "anthropic", "command": command, "limits": {"turn_s": turn_s}}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    return lambda *words: CliRunner().invoke(app, list(words))


def test_one_program_gets_one_verdict_whatever_its_specs_promise(wedgehog: Callable[..., Result], tmp_path: Path):
    """Both pass by the common bound, the tighter limit is named; judged again, it is the same."""
    ran = wedgehog("run", "well.yaml", "-a", "strict.yaml", "-a", "patient.yaml", "--network", "embedded")
    assert ran.exit_code == 0, ran.output
    assert "Over their own limits, which are not judged here" in ran.stdout
    assert "well, strict (1 run): turn 1 took " in ran.stdout and "0.2 s allowed" in ran.stdout
    assert "well, patient (1 run)" not in ran.stdout
    strict = tmp_path / "runs" / "latest" / "well" / "strict"
    kept = json.loads((strict / "verdicts.json").read_text())
    assert wedgehog("check", "runs/latest").exit_code == 0
    assert json.loads((strict / "verdicts.json").read_text()) == kept
    assert "took" in kept["own_limit"]
    page = (tmp_path / "runs" / "latest" / "report.html").read_text()
    for said in (ran.stdout, page):
        assert "A turn of every agent may take 120 s, the stock bound: well." in said
    assert wedgehog("baseline", "runs/latest", "--into", "kept.yaml").exit_code == 0
    assert (tmp_path / "kept.yaml").read_text().count("bound_s: 120") == 2
    assert "<h3>Over their own limits, which are not judged here</h3>" in page


def test_the_bound_of_a_scenario_is_named_in_real_seconds():
    """It is divided by the time scale; a scenario that bounds no turn has none."""
    turns = [{"user": "Hi", "model": [{"text": "Hello"}]}]
    slow = Scenario(name="s", why="w", turns=turns, invariants={"turn_deadline": {"turn_s": 60}})
    assert CommonBound().says(slow, 10) == "6 s, by the scenario"
    assert CommonBound(7).says(slow, 10) == "7 s, by --turn-s"
    assert CommonBound(7).says(slow.model_copy(update={"invariants": {"turn_deadline": None}}), 10) == ""


def test_a_turn_over_the_common_bound_is_not_told_again_as_over_the_own_limit(wedgehog: Any, tmp_path: Path):
    """It is judged: the run fails."""
    agent, scenario = load_spec(tmp_path / "strict.yaml"), load_scenario(tmp_path / "well.yaml").scenario
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}", took_s=5)
    history = tell.end().seal()

    def own_limit(*violated: str) -> str:
        failed = Judgement(scenario="well", agent="strict", network="sim", verdict="fail", violated=violated)
        return CommonBound(3).beside(failed, history, scenario, agent).own_limit

    assert own_limit("turn_deadline") == ""
    assert own_limit("error_surfaced") == "turn 1 took 5.0 s, 0.2 s allowed"


def test_alone_an_agent_is_held_to_its_own_limit(wedgehog: Callable[..., Result]):
    """Without another agent there is nothing to compare; `--turn-s` is a common bound all the same."""
    assert wedgehog("run", "well.yaml", "-a", "strict.yaml", "--network", "embedded").exit_code == 1
    ran = wedgehog("run", "well.yaml", "-a", "strict.yaml", "--network", "embedded", "--turn-s", "6")
    assert "A turn of every agent may take 6 s, by --turn-s: well." in ran.stdout
    assert ran.exit_code == 0, ran.output


def test_only_different_limits_need_a_common_bound(wedgehog: Callable[..., Result], tmp_path: Path):
    """Specimens of an incident keep theirs: the scenario says what must come of each."""

    wanted = Wanted(("well.yaml",), ("strict.yaml", "patient.yaml"))

    def common(**expect: object) -> list[CommonBound | None]:
        (tmp_path / "well.yaml").write_text(yaml.safe_dump({**STORY, "expect": expect} if expect else STORY))
        entries = select(wanted)
        return [common_bound_of(entry, entries, None) for entry in entries]

    assert common() == [CommonBound(), CommonBound()]
    thrice = [replace(entry, repeat=number) for entry in select(wanted) for number in (1, 2, 3)]
    last = [entry for entry in thrice if entry.repeat == 3]
    assert [common_bound_of(entry, last, None) for entry in thrice] == [CommonBound()] * 6
    assert common(strict="pass") == [None, None]
    (tmp_path / "patient.yaml").write_text((tmp_path / "strict.yaml").read_text().replace("strict", "patient"))
    assert common() == [None, None]


AWAITS = """
import aiohttp

async def answer(message, *, llm_url, key):
    asked = {"model": "m", "max_tokens": 999, "messages": [{"role": "user", "content": message}]}
    async with aiohttp.ClientSession(headers={"x-api-key": key, "anthropic-version": "2023-06-01"}) as client:
        async with client.post(llm_url + "/v1/messages", json=asked) as reply:
            return (await reply.json())["content"][0]["text"]
"""


def test_an_agent_that_skips_the_scenario_changes_the_bound_of_no_other(
    wedgehog: Callable[..., Result], tmp_path: Path
):
    """A command is not played in virtual time, so nothing is compared: the other one keeps its promise of 0.2 s."""
    (tmp_path / "agent.py").write_text(AWAITS)
    spec = {"name": "strict", "wire": "anthropic", "callable": "agent.py:answer", "limits": {"turn_s": 0.2}}
    (tmp_path / "strict.yaml").write_text(yaml.safe_dump(spec))
    ran = wedgehog("run", "well.yaml", "-a", "strict.yaml", "-a", "patient.yaml", "--world", "sim")
    assert "turn 1 gave no answer and no error within 0.2 s" in ran.stdout and "A turn of every agent" not in ran.stdout
    assert ran.exit_code == 1
