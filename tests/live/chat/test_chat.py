"""An agent that polls a chat service over https on hard-coded hosts: its poll and its reply are harmed."""

import csv
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.campaign.selection import stock_folder
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import ChatAsked
from wedgehog.harness.record.history import read
from wedgehog.harness.sandbox.hosts.private_hosts import hosts_unavailable_reason

STORIES = {"chat-reply-upload-stalls": ["poll", "send"], "chat-poll-trickles": ["poll", "poll", "send"]}
"""What is asked in the first turn of the agent with all fixes."""


def ends_of_the_matrix(folder: Path) -> tuple[str, ...]:
    """The stories in a copy of their incident, which expect something of the agent without fixes and of the fixed."""
    incident = folder / "incident"
    shutil.copytree(stock_folder() / "incidents" / "silent-stall", incident)
    paths = [incident / "scenarios" / f"{story}.yaml" for story in STORIES]
    for path in paths:
        words = yaml.safe_load(path.read_text())
        expected = {agent: it for agents, it in words["expect"].items() for agent in agents.split(", ")}
        words["expect"] = {agent: expected[agent] for agent in ("buggy-chat", "fixed-chat")}
        path.write_text(yaml.safe_dump(words))
    return tuple(map(str, paths))


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    """The commands need not import this each."""
    return environment | {"WEDGEHOG_TEST_IMPORTS": "trustme"}


@pytest.mark.parametrize("network", ["embedded", "toxiproxy"], indirect=True)
def test_the_specimen_that_polls_a_chat_is_red_without_its_fixes_and_green_with_them(
    wedgehog: Any, tmp_path: Path, network: str
):
    """Every row of its fix matrix comes out as the story expects; the fault struck where it says.

    Both stories are one campaign, and its runs mostly wait: more of them at once than the machine has processors.
    The rows between the two differ in the agent's code alone, so one network plays them: that an agent sees the same
    through both is asserted of every fault in tests/parity.
    """
    if hosts_unavailable_reason():
        pytest.skip(hosts_unavailable_reason())
    stories = tuple(STORIES) if network == "--network=embedded" else ends_of_the_matrix(tmp_path)
    ran = wedgehog("run", *stories, network, "--jobs=4")
    assert ran.returncode == 0, ran.stderr[-2000:]
    folder = (tmp_path / "runs" / "latest").resolve()
    with (folder / "summary.csv").open(newline="") as file:
        rows = {(row["scenario"], row["agent"]): row for row in csv.DictReader(file)}
    for story, expected in STORIES.items():
        buggy, fixed = (rows[story, agent] for agent in ("buggy-chat", "fixed-chat"))
        assert (buggy["verdict"], fixed["verdict"]) == ("fail", "pass"), story
        history = read(folder / fixed["run_dir"] / "history.jsonl")
        (fired,) = history.of(FaultFired)
        assert fired.link == "chat" and fired.proof
        first = [event.what for event in history.of(ChatAsked) if event.id < history.turns[0].end.id]
        assert first == expected, story
