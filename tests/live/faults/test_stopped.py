"""Stopped in mid run, by a signal or by the death of the network: nothing runs on, and what was finished is told."""

import csv
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from wedgehog.harness.record.history import read
from wedgehog.harness.record.store import run_folders
from wedgehog.reports.campaign_folder import load

WAITS: list[Any] = [[{"text": "Done {nonce}"}, {"delay_s": 300}]]


@pytest.fixture
def under_way(begin: Any, told: Any, agent: Any) -> Any:
    """A campaign of which one run is finished and the other waits for its model, a helper of its agent beside it."""

    def start(network: str) -> Any:
        quick, slow = told("quick"), told("slow", *WAITS, user="linger")
        running = begin("run", quick, slow, "--agent", agent(), network)
        running.until(lambda: "quick x mine: pass" in running.said and "request_arrived" in running.history("slow"))
        running.until(lambda: len(running.marked("/")) >= 2)
        return running

    return start


@pytest.mark.parametrize(
    ("number", "network"), [(signal.SIGINT, "toxiproxy"), (signal.SIGTERM, "embedded")], indirect=["network"]
)
def test_a_signal_ends_everything_and_what_was_finished_is_reported(
    under_way: Any, network: str, patience: Any, number: signal.Signals
):
    """Within five seconds nothing of the run is left; exit code 130; the stopped run is no verdict."""
    running = under_way(network)
    running.process.send_signal(number)
    assert patience(lambda: not running.marked(), 5), running.marked()
    assert running.ends() == 130
    assert "interrupted" in running.said and "Traceback" not in running.said
    with (running.folder / "summary.csv").open(newline="") as file:
        assert [(row["scenario"], row["verdict"]) for row in csv.DictReader(file)] == [("quick", "pass")]
    assert [folder.parent.name for folder in run_folders(running.folder)] == ["quick"]
    assert (running.folder / "report.html").is_file()


def test_a_harness_that_is_killed_takes_everything_with_it(under_way: Any, toxiproxy: str, patience: Any):
    """SIGKILL leaves it no time: its warden ends what it owned, and the folder can be read."""
    running = under_way(toxiproxy)
    homes = {Path(process.environ()["HOME"]) for process in running.marked("/") if "HOME" in process.environ()}
    mine = {home.parents[1] for home in homes if home.name == "home"}
    assert mine and all(folder.name.startswith("wedgehog-") and folder.is_dir() for folder in mine)
    running.process.kill()
    running.ends()
    assert patience(lambda: not running.marked(), 5), running.marked()
    assert patience(lambda: not any(folder.exists() for folder in mine), 5), "the agent's folders stay behind"
    history = read(running.folder / "slow" / "mine" / "history.jsonl")
    assert "request_arrived" in [event.kind for event in history.events]
    campaign = load(running.folder)
    assert [run.judgement.verdict for run in campaign.runs] == ["pass"]
    assert [left.folder.parent.name for left in campaign.unfinished] == ["slow"]


def test_a_network_that_is_killed_is_our_error_and_nothing_is_left(under_way: Any, toxiproxy: str):
    """Toxiproxy dies in mid run: verdict error, exit code 3, never the agent's fault."""
    running = under_way(toxiproxy)
    (server,) = running.marked("/toxiproxy")
    server.kill()
    assert running.ends() == 3, running.said
    with (running.folder / "summary.csv").open(newline="") as file:
        found = {row["scenario"]: (row["verdict"], row["violated"]) for row in csv.DictReader(file)}
    assert found == {"quick": ("pass", ""), "slow": ("error", "")}
    assert running.marked() == []


def test_a_second_ctrl_c_changes_nothing(under_way: Any, patience: Any):
    """An impatient user does not leave half of it behind."""
    running = under_way("--network=embedded")
    running.process.send_signal(signal.SIGINT)
    running.process.send_signal(signal.SIGINT)
    assert patience(lambda: not running.marked(), 5), running.marked()
    assert running.ends() == 130 and "Traceback" not in running.said


def test_everything_that_listens_listens_on_loopback_only(under_way: Any, toxiproxy: str):
    """The fake provider, the pages, Toxiproxy and its API."""
    running = under_way(toxiproxy)
    ours = [psutil.Process(running.process.pid), *running.marked()]
    listening = [
        conn.laddr.ip for process in ours for conn in process.net_connections() if conn.status == psutil.CONN_LISTEN
    ]
    assert listening and set(listening) == {"127.0.0.1"}
