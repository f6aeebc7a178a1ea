"""The command: options in, words on stderr, tables on stdout, one line for a user's mistake."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from wedgehog.harness.campaign.campaign import Campaign
from wedgehog.harness.campaign.options import MOST_JOBS
from wedgehog.harness.commands.cli import app
from wedgehog.harness.record.events.run import RunStarted
from wedgehog.harness.record.judgement import Judgement

Wedgehog = Callable[..., Result]
STORY = {"name": "well", "why": "It goes well.", "turns": [{"user": "Go on.", "model": [{"text": "Done {nonce}"}]}]}
ASKS = """
import json, sys, urllib.request
body = {"model": "m", "max_tokens": 999, "messages": [{"role": "user", "content": sys.argv[2]}]}
head = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
asked = urllib.request.Request(sys.argv[1] + "/v1/messages", json.dumps(body).encode(), head)
print(json.load(urllib.request.urlopen(asked, timeout=20))["content"][0]["text"])
"""
SPEC = {"name": "mine", "wire": "anthropic", "command": ["{python}", "-c", "0", "{message}"]}


@pytest.fixture
def wedgehog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wedgehog:
    """Runs the command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "well.yaml").write_text(yaml.safe_dump(STORY))
    for name in ("mine.yaml", "specs/a.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(yaml.safe_dump(SPEC))
    return lambda *words: CliRunner().invoke(app, list(words))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "silent-stal"], "did you mean 'silent-stall'?"),
        (["run", "well.yaml"], "--agent SPEC"),
        (["run", "well.yaml", "--agent", "nobody"], "no agent spec 'nobody'"),
        (["run", "well.yaml", "--agent", "gone.yaml"], "gone.yaml: no such file"),
        (["run", "well.yaml", "--agent", "well.yaml"], "well.yaml: this is a scenario: name it without --agent"),
        (["run", "nowhere/"], "no scenario file, folder or stock name"),
        (["run", "silent-stall", "-k", "zzzz"], "no scenario matches 'zzzz'"),
        (["run", "mine.yaml"], "mine.yaml: this is an agent spec: use it with --agent mine.yaml"),
        (["run", "specs"], "specs/a.yaml: this is an agent spec: use it with --agent specs/a.yaml"),
        (["scenarios", "specs"], "specs/a.yaml: this is an agent spec: use it with --agent specs/a.yaml"),
        (["check", "."], "no run folder; expected that of a campaign"),
        (["check", "nowhere"], "nowhere: no such folder"),
        (["replay", "."], "no run's folder (it has no inputs.json)"),
        (["replay", "nope"], "nope: no such folder; expected that of one run"),
        (["run", "well.yaml", "--plugin", "gone.py"], "plugin gone.py: no such file"),
        (["check", ".", "--plugin", "gone.checks"], "plugin gone.checks: no such module"),
        (["scenarios", "--plugin", "well.yaml"], "plugin well.yaml: no such module"),
        (["schema", "scenario", "--plugin", "gone/"], "plugin gone/: no such file"),
        (["scenarios", "nowhere"], "no scenario file, folder or stock name 'nowhere'"),
        (["agents", "list", "empty"], "empty: no agent spec (*.yaml) in this folder"),
        (["agents", "timers", "gone.yaml"], "gone.yaml: no such file"),
        (["run", "well.yaml", "-a", "mine.yaml", "--baseline", "gone.yaml"], "gone.yaml: no such file"),
        (["run", "well.yaml", "-a", "mine.yaml", "--plan"], "--plan: expected --baseline FILE too"),
        (["baseline", "nowhere", "--into", "b.yaml"], "nowhere: no such folder"),
        (["serve", "--script", "gone.yaml"], "gone.yaml: no such file"),
        (["serve", "--script", "x.yaml", "--balance-usd", "1", "--balance-tokens", "1"], "in dollars or in tokens"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(wedgehog: Wedgehog, words: list[str], said: str):
    """On stderr, without a traceback, and nothing on stdout."""
    ran = wedgehog(*words)
    assert (ran.exit_code, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("wedgehog: ") and said in line


@pytest.mark.parametrize("command", [["run", "well.yaml", "--network", "embedded", "-a"], ["agents", "check"]])
def test_a_program_that_does_not_exist_is_one_mistake_before_anything_is_played(
    wedgehog: Wedgehog, tmp_path: Path, command: list[str]
):
    """Not an error of each scenario."""
    (tmp_path / "gone.yaml").write_text(yaml.safe_dump(SPEC | {"command": ["no-such-program", "{message}"]}))
    ran = wedgehog(*command, "gone.yaml")
    (line,) = ran.stderr.splitlines()
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert line.startswith(f"wedgehog: {tmp_path}/gone.yaml:1: command: there is no program 'no-such-program' in ")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("words", [["init", "x.yaml"], ["init", "x.yaml", "--name", "a", "--wire", "ollama"]])
def test_init_without_anybody_to_ask_names_the_options(wedgehog: Wedgehog, tmp_path: Path, words: list[str]):
    """Its stdin is at its end: exit code 2, and no file."""
    ran = wedgehog(*words)
    last = ran.stderr.splitlines()[-1]
    assert last == "wedgehog: stdin has no input: give --yes, or --name, --wire and --command (--resume is optional)"
    assert ran.exit_code == 2 and not (tmp_path / "x.yaml").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--network", "carrier-pigeon"],
        ["run", "--repeat", "0"],
        ["run", "--jobs", "0"],
        ["fly"],
        ["run", "--fly"],
    ],
)
def test_an_option_that_does_not_exist_is_bad_usage(wedgehog: Wedgehog, words: list[str]):
    """Exit code 2, as everywhere."""
    assert wedgehog(*words).exit_code == 2


def test_a_mistake_makes_no_run_folder(wedgehog: Wedgehog, tmp_path: Path):
    """All files are read before anything is made."""
    wedgehog("run", "well.yaml", "--agent", "well.yaml")
    assert not (tmp_path / "runs").exists()


def test_scenarios_are_listed_with_their_why(wedgehog: Wedgehog):
    """For people, and as JSON for programs."""
    assert "It goes well." in wedgehog("scenarios", "well.yaml").stdout
    rows = json.loads(wedgehog("scenarios", "--json").stdout)
    assert {"name", "family", "core", "why", "seen"} == set(rows[0])
    assert any(row["core"] for row in rows) and all(row["why"] for row in rows)


def test_scenarios_say_to_whom_they_happened(wedgehog: Wedgehog):
    """Where there is a public report; nothing is said where there is none."""
    assert "    seen: https://github.com/" in wedgehog("scenarios", "stall-always").stdout
    assert "seen:" not in wedgehog("scenarios", "well.yaml").stdout


@pytest.mark.parametrize(
    "words", [["agents", "install"], ["agents", "remove"], ["agents", "check"], ["run", "silent-stall", "--agent"]]
)
@pytest.mark.parametrize("name", ["codex@..", "codex@.", "codex@", "codex@1 2"])
def test_a_version_that_is_none_touches_nothing(
    wedgehog: Wedgehog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], name: str
):
    """One line that says what was expected, wherever a version can be named; what is installed stays."""
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda of: str(tmp_path / "cache" / of))
    monkeypatch.setenv("PATH", str(tmp_path))
    kept = tmp_path / "cache/wedgehog/agents/codex/0.1.0/installed.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    ran = wedgehog(*words, name)
    assert (ran.exit_code, ran.stdout) == (2, "") and kept.is_file()
    (line,) = ran.stderr.splitlines()
    assert f"{name}: expected a version such as 1.2.3, found {name[6:]!r}" in line


def test_agents_are_listed_with_their_fixes(wedgehog: Wedgehog):
    """The stock specimens, or the specs of a folder."""
    stock = wedgehog("agents").stdout
    assert "buggy" in stock and "fix retry-network-errors (in the fixed set): " in stock


def test_doctor_says_where_everything_is(wedgehog: Wedgehog):
    """Exit code 0 where nothing that is needed is missing."""
    ran = wedgehog("doctor")
    assert ran.exit_code == 0 and "ok   python: " in ran.stdout and "toxiproxy: " in ran.stdout


def test_help_names_every_command(wedgehog: Wedgehog):
    """What a user tries first."""
    said = wedgehog("--help").stdout
    assert all(command in said for command in ("run", "check", "replay", "scenarios", "agents", "serve", "doctor"))


@pytest.mark.parametrize(
    ("command", "most"),
    [
        ("run", f"one per processor, and up to three, {MOST_JOBS} in all, while they wait"),
        ("fuzz", f"two per processor, {2 * MOST_JOBS} at most; in virtual time one"),
    ],
)
def test_help_says_how_many_jobs_a_command_has(wedgehog: Wedgehog, command: str, most: str):
    """A search has twice as many as a campaign: most of its scenarios wait."""
    said = " ".join(wedgehog(command, "--help").stdout.replace("│", " ").split())
    assert most in said


def test_a_run_is_reported_and_its_exit_code_is_the_campaigns(wedgehog: Wedgehog, tmp_path: Path):
    """This agent never asks the model: an error, said with its reason; the files are there all the same."""
    ran = wedgehog("run", "well.yaml", "--agent", "mine.yaml", "--network", "embedded", "--json")
    assert ran.exit_code == 3, ran.output
    (row,) = json.loads(ran.stdout)
    assert (row["scenario"], row["agent"], row["verdict"]) == ("well", "mine", "error")
    folder = (tmp_path / "runs" / "latest").resolve()
    assert {"campaign.json", "summary.csv", "junit.xml", "report.html"} <= {path.name for path in folder.iterdir()}
    assert "[1/1] well x mine: error" in ran.stderr


UNMEASURED = dict.fromkeys(("paid_calls", "usd", "turn_s"), "unknown")


@pytest.mark.parametrize(("kept", "code"), [("failed", 0), ("passed", 1), (None, 1)])
def test_with_a_baseline_only_what_got_worse_fails(
    wedgehog: Wedgehog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str | None, code: int
):
    """A fail that the baseline has is accepted; the files of the gate lie beside the reports."""

    async def play(self: Campaign) -> list[Any]:
        run = self.store.run("well", "mine")
        run.write(RunStarted(scenario="well", agent="mine", network="embedded", time_scale=1.0, started="2025-05-01"))
        self.judgements.append(Judgement("well", "mine", "embedded", "fail", violated=("turn_deadline",)))
        run.close(self.judgements[-1])
        return self.judgements

    monkeypatch.setattr(Campaign, "play", play)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    cells = {"well": {"mine": {"result": kept} | UNMEASURED}} if kept else {}
    (tmp_path / "baseline.yaml").write_text(yaml.safe_dump({"world": "live", "cells": cells}))
    ran = wedgehog("run", "well.yaml", "-a", "mine.yaml", "--baseline", "baseline.yaml")
    assert ran.exit_code == code, ran.output
    assert ("✗ worse: well, mine: " in ran.stdout) == ("::error title=worse%3A well" in ran.stderr) == bool(code)
    assert {"gate.md", "gate.xml"} <= {path.name for path in (tmp_path / "runs" / "latest").iterdir()}


def test_a_plan_says_how_many_repeats_can_decide_and_plays_nothing(wedgehog: Wedgehog, tmp_path: Path):
    """By the size of the campaign, and by how much turns vary in the baseline."""
    cell = {
        "result": "passed",
        "repeats": 10,
        "paid_calls": 1,
        "usd": 0,
        "turn_s": [2.0, 2.1, 1.9, 2, 2.1, 2, 1.9, 2, 2.1, 2],
    }
    (tmp_path / "baseline.yaml").write_text(yaml.safe_dump({"world": "live", "cells": {"well": {"mine": cell}}}))
    ran = wedgehog("run", "well.yaml", "-a", "mine.yaml", "--baseline", "baseline.yaml", "--plan")
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.splitlines() == [
        "1 result with a baseline, 0 without: 3 numbers to compare, with a false alarm in at most 0.5% of campaigns",
        "the baseline has 10 repeats of each (at least): --repeat 1 finds in one scenario alone only what is "
        "beyond the margin; "
        "--repeat 4 is enough to decide",
        "turns vary by 3.7% between repeats: a turn that takes 30% longer is found in 19 of 20 campaigns "
        "with 6 repeats of both sides",
    ]
    assert not (tmp_path / "runs").exists()


def test_words_to_choose_by_add_up(wedgehog: Wedgehog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As one `-k` with both would."""
    seen: list[set[str]] = []

    async def play(self: Campaign) -> list[Any]:
        seen.append({entry.scenario.name for entry in self.entries})
        return []

    monkeypatch.setattr(Campaign, "play", play)
    for words in (["-k", "key-refused", "-k", "pings-only"], ["-k", "key-refused pings-only"]):
        wedgehog("run", "catalogue", "-a", "mine.yaml", *words)
    assert seen == [{"key-refused", "pings-only"}] * 2


def test_one_run_that_cannot_be_read_keeps_no_other_from_being_judged(wedgehog: Wedgehog, tmp_path: Path):
    """It is named, and counts like an error; alone it is a mistake."""
    names = []
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({**STORY, "name": name}))
        names.append(f"{name}.yaml")
    command = ["{python}", "-S", "-c", ASKS, "{llm_url}", "{message}"]
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**SPEC, "command": command}))
    assert wedgehog("run", *names, "--agent", "mine.yaml", "--network", "embedded").exit_code == 0
    (tmp_path / "runs" / "latest" / "c" / "mine" / "verdicts.json").unlink()
    unfinished = wedgehog("check", "runs/latest")
    assert (unfinished.exit_code, "1 unfinished" in unfinished.stdout) == (3, True)
    broken = tmp_path / "runs" / "latest" / "b" / "mine"
    (broken / "history.jsonl").write_text('{"event": "nonsense"}\n\n')
    ran = wedgehog("check", "runs/latest")
    assert ran.exit_code == 3 and f"{broken.resolve() / 'history.jsonl'}:1: unknown event 'nonsense'" in ran.stderr
    assert "Traceback" not in ran.output and ran.stderr.count("wedgehog: ") == 1
    assert wedgehog("check", str(broken)).exit_code == 2


def test_options_reach_the_campaign(wedgehog: Wedgehog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Out, network, jobs and seed."""
    seen: list[Any] = []

    async def play(self: Campaign) -> list[Any]:
        seen.append((self.options, len(self.entries)))
        return []

    monkeypatch.setattr(Campaign, "play", play)
    monkeypatch.setattr(sys, "argv", ["wedgehog", "run", "well.yaml", "-k", "two words"])
    words = ["--out", "here", "--network", "embedded", "--jobs", "7", "--seed", "9", "--repeat", "3"]
    assert wedgehog("run", "well.yaml", "-a", "mine.yaml", *words).exit_code == 0
    ((options, entries),) = seen
    assert (str(options.out), options.network, options.jobs, options.seed, entries) == ("here", "embedded", 7, 9, 3)
    assert options.command_line == "wedgehog run well.yaml -k 'two words'"


def test_a_port_that_is_taken_is_named(wedgehog: Wedgehog, tmp_path: Path):
    """With its address, and how to get another one."""
    (tmp_path / "script.yaml").write_text("replies: [{reply: [{text: Hi}]}]")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = wedgehog("serve", "--script", "script.yaml", "--port", str(port))
    assert ran.exit_code == 2
    assert (
        ran.stderr
        == f"wedgehog: can't listen at 127.0.0.1:{port}: Address already in use (--port 0 takes a free one)\n"
    )


def test_a_campaign_is_no_run_to_replay(wedgehog: Wedgehog):
    """One of its runs is named instead."""
    wedgehog("run", "well.yaml", "--agent", "mine.yaml", "--network", "embedded")
    ran = wedgehog("replay", "runs/latest")
    assert ran.exit_code == 2
    assert "a campaign's folder; expected that of one of its runs, such as runs/latest/well/mine" in ran.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("agents",), 0),
        (("scenarios",), 0),
        (("scenarios", "--json"), 0),
        (("schema", "scenario"), 0),
        (("run", "well.yaml", "--agent", "mine.yaml", "--network", "embedded", "--json"), 3),
    ],
)
@pytest.mark.usefixtures("wedgehog")
def test_a_reader_that_closes_stdout_changes_no_exit_code(words: tuple[str, ...], code: int):
    """As in `wedgehog agents | head`."""
    command = [sys.executable, "-m", "wedgehog.harness.commands.cli", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == code and b"Broken" not in said and b"Traceback" not in said


def test_a_reader_that_closes_stderr_changes_no_exit_code(wedgehog: Wedgehog):
    """As in `wedgehog run 2>&1 | head -1`."""
    command = [sys.executable, "-m", "wedgehog.harness.commands.cli", "run", "well.yaml", "--agent", "gone.yaml"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        process.stderr.close()
    assert process.returncode == wedgehog("run", "well.yaml", "--agent", "gone.yaml").exit_code == 2


def test_a_resume_command_is_looked_at_like_the_first(wedgehog: Wedgehog, tmp_path: Path):
    """It has to say where the message goes."""
    words = ("init", "--name", "mine", "--wire", "anthropic", "--command", "mine {message}")
    ran = wedgehog(*words, "--resume", "mine --continue")
    assert ran.exit_code == 2 and "{message}" in ran.stderr
    assert not (tmp_path / "agent.yaml").exists()
    assert wedgehog(*words).exit_code == 0
