"""Agents with `links`: a worker of a cluster tries their servers itself, and a simulation has none."""

import platform
import socket
from pathlib import Path

import pytest
import yaml

from wedgehog.harness.agents.backend_links import BackendError
from wedgehog.harness.agents.simulated import why_not_simulated
from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.campaign.campaign_files import CampaignFiles
from wedgehog.harness.campaign.campaign_json import wedgehog_version
from wedgehog.harness.campaign.cluster_worker import RemoteRun, check_links, play_remote_run
from wedgehog.harness.campaign.plan import cells_of
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.scenario.scenario_file import load_scenario


def written(folder: Path, port: int, env: str = "{URL: '{link}'}") -> Path:
    """The spec of an agent with one link."""
    spec = folder / "mine.yaml"
    spec.write_text(
        f"name: mine\nwire: anthropic\ncommand: [x]\nlinks: {{db: {{to: '127.0.0.1:{port}', env: {env}}}}}\n"
    )
    return spec


def remote_run_of(spec: Path) -> RemoteRun:
    """A run of this agent, as the head sends it."""
    told = {"name": "well", "why": "w", "turns": [{"user": "x", "model": [{"text": "y"}]}]}
    scenario = spec.with_name("well.yaml")
    scenario.write_text(yaml.safe_dump(told))
    (cell,) = cells_of([Entry(load_scenario(scenario), load_spec(spec))], CampaignFiles())
    return RemoteRun(str(spec), wedgehog_version(), "embedded", "real", 0, (), cell, 1, ControlFacts(True), None)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.mark.parametrize(
    ("env", "says"),
    [("{URL: '{link}'}", "links: db: cannot connect to 127.0.0.1:"), ("NO_URL", "the variable NO_URL is not set")],
)
def test_a_worker_that_cannot_reach_a_server_ends_the_campaign_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: str, says: str
):
    """The head may reach it: that is another machine, with other variables."""
    monkeypatch.delenv("NO_URL", raising=False)
    result = play_remote_run(remote_run_of(written(tmp_path, closed_port(), env)))
    assert result.judgement is None and result.wrong.startswith(f"worker {platform.node()}: ") and says in result.wrong
    assert "\n" not in result.wrong


def test_a_server_is_tried_once_for_each_campaign(tmp_path: Path):
    """A fault of a later run may have closed it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        agent = load_spec(written(tmp_path, server.getsockname()[1]))
        check_links("one", agent)
    check_links("one", agent)
    with pytest.raises(BackendError, match="cannot connect"):
        check_links("another", agent)


def test_an_agent_with_links_is_not_played_in_virtual_time(tmp_path: Path):
    """Its servers are real."""
    agent = load_spec(written(tmp_path, 5432)).model_copy(update={"simulate": True})
    assert why_not_simulated(agent).startswith("its links lead to real servers (links): ")
