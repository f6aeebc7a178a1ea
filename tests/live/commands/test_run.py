"""`wedgehog run` from end to end, and what can be done with what it leaves."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.campaign.selection import stock_folder
from wedgehog.harness.record.events.run import ConnectionsWatched
from wedgehog.harness.record.history import read
from wedgehog.reports.rows import COLUMNS

STORY = "continuation-fin-mid-body"


def rows(folder: Path) -> list[dict[str, str]]:
    """summary.csv."""
    with (folder / "summary.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def incident(tmp_path: Path) -> str:
    """One scenario of a stock incident with its specimen, without a fix and with all of them."""
    folder = tmp_path / "incident"
    shutil.copytree(stock_folder() / "incidents" / "silent-stall", folder)
    for path in (folder / "scenarios").iterdir():
        if path.stem != STORY:
            path.unlink()
    path = folder / "scenarios" / f"{STORY}.yaml"
    words = yaml.safe_load(path.read_text())
    expected = {agent: it for agents, it in words["expect"].items() for agent in agents.split(", ")}
    words["expect"] = {agent: expected[agent] for agent in ("buggy", "fixed")}
    path.write_text(yaml.safe_dump(words))
    return "incident"


def test_an_incident_is_red_without_its_fix_and_green_with_it(
    wedgehog: Any, incident: str, network: str, tmp_path: Path
):
    """Exit code 0 means as expected; every file is there, and the summary has its columns."""
    ran = wedgehog("run", incident, network)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    folder = (tmp_path / "runs" / "latest").resolve()
    names = {path.name for path in folder.iterdir()}
    assert {"campaign.json", "summary.csv", "junit.xml", "report.html", "bodies"} <= names
    buggy, fixed = rows(folder)
    assert tuple(buggy) == COLUMNS
    assert (buggy["verdict"], buggy["violated"], buggy["faults_fired"]) == ("fail", "turn_answered", "1")
    assert (fixed["verdict"], fixed["violated"], fixed["answered"]) == ("pass", "", "True")
    assert {buggy["network"], fixed["network"]} == {network.partition("=")[2]}
    for row in (buggy, fixed):
        kept = {path.name for path in (folder / row["run_dir"]).iterdir()}
        assert {"scenario.yaml", "history.jsonl", "verdicts.json", "agent.log", "session"} <= kept


def test_a_run_can_be_judged_again_and_played_again(wedgehog: Any, told: Any, agent: Any, tmp_path: Path):
    """`check` gives the same verdicts and the same table; `replay` is what the report says it is."""
    story = told("cut", faults=[{"at": {"byte": 10}, "do": "cut"}], invariants={"turn_answered": {}})
    assert wedgehog("run", story, "--agent", agent(), "--network=embedded").returncode == 1
    folder = (tmp_path / "runs" / "latest").resolve()
    (row,) = rows(folder)
    verdicts = folder / row["run_dir"] / "verdicts.json"
    before = verdicts.read_text()
    verdicts.write_text(before.replace('"verdict": "fail"', '"verdict": "pass"'))
    (folder / "summary.csv").unlink()
    assert wedgehog("check", str(folder)).returncode == 1
    assert (verdicts.read_text(), rows(folder)) == (before, [row])

    words = row["replay"].split()
    assert words[:2] == ["wedgehog", "replay"]
    assert wedgehog("replay", *words[2:], "--network=embedded").returncode == 1
    (again,) = rows((tmp_path / "runs" / "latest").resolve())
    assert {key: again[key] for key in ("scenario", "agent", "verdict", "violated", "faults_fired")} == {
        "scenario": "cut",
        "agent": "mine",
        "verdict": "fail",
        "violated": "turn_answered",
        "faults_fired": "1",
    }


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the sockets of other processes")
def test_connections_are_looked_for_in_each_run(wedgehog: Any, told: Any, agent: Any, tmp_path: Path):
    """The runs of a campaign share the looks, also where one begins and ends while another goes on."""
    ran = wedgehog("run", told("well"), told("good"), "--agent", agent(), "--network=embedded", "--jobs=2")
    assert ran.returncode == 0, ran.stderr
    histories = list((tmp_path / "runs" / "latest").resolve().glob("*/mine/history.jsonl"))
    watched = [read(path).first(ConnectionsWatched) for path in histories]
    assert len(watched) >= 2 and all(it is not None and not it.others for it in watched), watched


def test_a_fault_that_never_fires_is_no_pass(wedgehog: Any, told: Any, agent: Any, toxiproxy: str, tmp_path: Path):
    """The reply is shorter than the trigger: inconclusive, exit code 3, and the sentence says why."""
    ran = wedgehog("run", told("short", faults=[{"at": {"byte": 10**6}, "do": "cut"}]), "--agent", agent(), toxiproxy)
    assert ran.returncode == 3, ran.stderr
    (row,) = rows((tmp_path / "runs" / "latest").resolve())
    assert (row["verdict"], row["faults_fired"]) == ("inconclusive", "0")
    assert "the fault never fired: cut on llm at step 1 of turn 1" in ran.stdout


def test_no_key_and_no_proxy_of_the_user_reaches_the_agent(wedgehog: Any, told: Any, agent: Any, tmp_path: Path):
    """Nor do they disturb us: the run passes though every proxy variable leads nowhere."""
    secrets = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN")
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    mine = dict.fromkeys(secrets, "sk-real-money") | dict.fromkeys(proxies, "http://127.0.0.1:9")
    ran = wedgehog("run", told("well"), "--agent", agent(), "--network=auto", **mine)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    folder = (tmp_path / "runs" / "latest").resolve()
    (kept,) = (folder / "well" / "mine" / "session").rglob("environment.json")
    found = json.loads(kept.read_text())
    assert not set(found) & {*secrets, *proxies} and "sk-real-money" not in found.values()
    assert found["KEY"].startswith("sk-wedgehog-canary") and found["WEDGEHOG_RUN"]
    assert found["HOME"] != str(Path.home())
    assert all(b"sk-real-money" not in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_what_is_wrong_with_an_agent_is_said_in_words_that_help(wedgehog: Any, told: Any, agent: Any, tmp_path: Path):
    """A missing command is one line; one that never asks the model, or crashes, is an error by its control run."""
    missing = agent("missing", command=["no-such-program-here", "{message}"])
    ran = wedgehog("run", told("well"), "--agent", missing)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "missing.yaml:1: command: there is no program 'no-such-program-here' in " in ran.stderr
    specs = [
        agent("idle", code="print('I would rather not.')"),
        agent("crashes", code="raise RuntimeError('my hat is gone')"),
    ]
    ran = wedgehog("run", told("well"), *(word for spec in specs for word in ("--agent", spec)), "--network=embedded")
    assert ran.returncode == 3, ran.stderr
    folder = (tmp_path / "runs" / "latest").resolve()
    assert {row["agent"]: row["verdict"] for row in rows(folder)} == dict.fromkeys(("idle", "crashes"), "error")
    said = {path.parent.name: json.loads(path.read_text())["says"] for path in folder.rglob("verdicts.json")}
    assert "no request for the model arrived, and the agent ended with exit code 0" in said["idle"]
    assert "does the agent use {llm_url}?" in said["idle"]
    assert "I would rather not." in said["idle"]
    assert "my hat is gone" in said["crashes"]
    assert "Traceback (most recent call last)" not in ran.stderr


TURN = "  - user: Hi.\n    model: [{text: Hello}]\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("bad.yaml", f"name: bad\nwhy: w\nturms:\n{TURN}", "bad.yaml:3: unknown key 'turms' (did you mean 'turns'?)"),
        ("mine.yaml", "name: mine\nwire: anthropic\ncommand: 7\n", "mine.yaml:3: "),
        ("mine.yaml", None, "mine.yaml: no such file"),
    ],
)
def test_a_bad_file_is_one_line(
    wedgehog: Any, told: Any, agent: Any, tmp_path: Path, name: str, text: str | None, said: str
):
    """File, line and what was expected; exit code 2, no traceback, no run folder."""
    told("bad")
    agent()
    (tmp_path / name).unlink() if text is None else (tmp_path / name).write_text(text)
    ran = wedgehog("run", "bad.yaml", "--agent", "mine.yaml")
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("wedgehog: ") and said in line
    assert not (tmp_path / "runs").exists()


IMPATIENT = '''\
"""Asks the model with urllib, which says `Connection: close`; its patience is three seconds."""
import json, sys, time, urllib.request
body = {"model": "m", "max_tokens": 999, "messages": [{"role": "user", "content": sys.argv[3]}]}
request = urllib.request.Request(sys.argv[1] + "/v1/messages", json.dumps(body).encode(), {
    "content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"})
began = time.monotonic()
try:
    print(json.load(urllib.request.urlopen(request, timeout=3))["content"][0]["text"])
except Exception as wrong:
    sys.exit(f"Error: {type(wrong).__name__}: {wrong} after {time.monotonic() - began:.1f} s")
'''


def test_a_stalled_client_that_asked_for_a_close_waits_for_its_own_timer(
    wedgehog: Any, told: Any, agent: Any, network: str, tmp_path: Path
):
    """Nobody closes on it: it hangs up when its time is over, and the history says so."""
    story = told("stall", faults=[{"at": {"byte": 10}, "do": {"stall": "forever"}, "times": "always"}])
    ran = wedgehog("run", story, "--agent", agent(code=IMPATIENT), network)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    folder = (tmp_path / "runs" / "latest").resolve()
    (row,) = rows(folder)
    history = read(folder / row["run_dir"] / "history.jsonl")
    first = history.calls[0]
    assert first.ended is not None and first.hung_up is not None
    assert (first.ended.how, first.ended.bytes_delivered) == ("stalled", 10)
    assert first.hung_up.at_s - first.at_s >= 2.8
    assert "TimeoutError: timed out after " in history.turns[0].end.stderr


def test_a_reader_that_leaves_changes_no_exit_code(tmp_path: Path, environment: dict[str, str], told: Any, agent: Any):
    """`wedgehog run … | head -1` with pipefail: the runs passed, and their page is whole, with its drawings."""
    words = ["run", told("well"), "--agent", agent(), "--network=embedded", "--repeat=5"]
    process = subprocess.Popen(
        [sys.executable, "-m", "wedgehog.harness.commands.cli", *words],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate(timeout=60)
    assert (process.returncode, "Error" in said) == (0, False), said
    pytest.importorskip("matplotlib")
    assert '<figure class="distribution"' in (tmp_path / "runs" / "latest" / "report.html").read_text()
