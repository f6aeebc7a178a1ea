"""`wedgehog run` with --last-failed, --fail-fast, --dry-run and --quiet, on agents that need no model."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from wedgehog.harness.commands.cli import app

Wedgehog = Callable[..., Result]
ANSWERS = """
import asyncio, json, urllib.request
def agent(message, llm_url, **more):
    body = {"model": "m", "max_tokens": 999, "messages": [{"role": "user", "content": message}]}
    head = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
    asked = urllib.request.Request(llm_url + "/v1/messages", json.dumps(body).encode(), head)
    try:
        return json.load(urllib.request.urlopen(asked, timeout=20))["content"][0]["text"]
    except urllib.error.HTTPError:
        return ""
"""


def story(name: str, *faults: object) -> str:
    turn = {"user": "Go on.", "model": [{"text": "Done {nonce}"}]}
    return yaml.safe_dump({"name": name, "why": "It goes well.", "turns": [turn], "faults": list(faults)})


REFUSED = {"at": {"turn": 1, "step": 1}, "do": {"status": 500}, "times": "always"}
"""The agent shows its user an empty answer: a violation."""


@pytest.fixture
def wedgehog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wedgehog:
    """Runs the command in a folder with two scenarios: the agent passes `well` and fails `badly`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "mine.py").write_text(ANSWERS)
    spec = {"name": "mine", "wire": "anthropic", "callable": "mine.py:agent"}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(spec))
    (tmp_path / "well.yaml").write_text(story("well"))
    (tmp_path / "badly.yaml").write_text(story("badly", REFUSED))
    return lambda *words: CliRunner().invoke(app, ["run", "--network", "embedded", "--jobs", "1", *words])


def named(ran: Result) -> list[str]:
    return ran.stdout.split("\n")[:-1]


def test_only_what_failed_is_played_again_until_nothing_fails(wedgehog: Wedgehog, tmp_path: Path):
    """The files that the last run was played with count, as they are now."""
    assert wedgehog("well.yaml", "badly.yaml", "-a", "mine.yaml").exit_code == 1
    assert named(wedgehog("--last-failed", "--dry-run")) == ["badly x mine"]
    (tmp_path / "badly.yaml").write_text(story("badly"))
    mended = wedgehog("--lf")
    assert mended.exit_code == 0 and "1 passed, 0 failed" in mended.stdout
    done = wedgehog("--lf")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "wedgehog: 0 runs to play\n")


def test_a_campaign_stops_at_its_first_failure(wedgehog: Wedgehog):
    """Runs after it are not played; the report has those before."""
    ran = wedgehog("badly.yaml", "well.yaml", "-a", "mine.yaml", "--fail-fast")
    assert ran.exit_code == 1 and "wedgehog: stopped at the first failure: badly x mine" in ran.stderr
    assert "0 passed, 1 failed" in ran.stdout and "well x mine" not in ran.stderr


def test_a_dry_run_lists_the_runs_and_makes_no_folder(wedgehog: Wedgehog, tmp_path: Path):
    """Repeats each time."""
    ran = wedgehog("well.yaml", "badly.yaml", "-a", "mine.yaml", "--repeat", "2", "--dry-run")
    assert named(ran) == ["well x mine", "well x mine", "badly x mine", "badly x mine"]
    assert ran.stderr == "wedgehog: 4 runs to play\n" and not (tmp_path / "runs").exists()


def test_a_quiet_run_prints_failures_and_totals(wedgehog: Wedgehog):
    """No line for a pass, on either stream."""
    ran = wedgehog("well.yaml", "badly.yaml", "-a", "mine.yaml", "--quiet")
    assert "✗ badly, mine: " in ran.stdout and "1 passed, 1 failed" in ran.stdout
    assert "well" not in ran.output


@pytest.mark.parametrize("words", [(), ("well.yaml", "-a", "mine.yaml")])
def test_what_excludes_each_other_is_said(wedgehog: Wedgehog, tmp_path: Path, words: tuple[str, ...]):
    """One line and exit code 2; without an earlier run, that is what is said."""
    ran = wedgehog("--lf", *words)
    assert (ran.exit_code, ran.stderr) == (2, "wedgehog: --last-failed: no earlier run in runs\n")
    ran = wedgehog("--resume", "runs/none", *words)
    assert ran.exit_code == 2 and "says what is played" not in ran.stderr and "none" in ran.stderr
    (tmp_path / "runs" / "latest").mkdir(parents=True)
    ran = wedgehog("--lf", "well.yaml", "-a", "mine.yaml")
    assert ran.exit_code == 2 and "says what is played; leave out --agent, SCENARIOS" in ran.stderr


def test_an_agent_that_played_nothing_is_no_pass(wedgehog: Wedgehog, tmp_path: Path):
    """As where a package is missing that its hosts need: a CI would be green for ever."""
    model = [{"tool": "shell", "args": {"command": "ls"}}, {"text": "Done {nonce}"}]
    needs = {"name": "needs", "why": "It needs a tool.", "turns": [{"user": "Go on.", "model": model}]}
    (tmp_path / "needs.yaml").write_text(yaml.safe_dump(needs))
    ran = wedgehog("needs.yaml", "-a", "mine.yaml")
    assert ran.exit_code == 3
    assert "wedgehog: mine played no scenario: the agent advertises no tool shell" in ran.stderr
    assert CliRunner().invoke(app, ["check", "runs/latest"]).exit_code == 3
    assert wedgehog("needs.yaml", "well.yaml", "-a", "mine.yaml").exit_code == 0
