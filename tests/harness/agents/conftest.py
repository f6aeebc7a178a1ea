"""Small real agents, written to a file and run as processes."""

import os
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.spec import AgentSpec, load_spec
from wedgehog.harness.record.clock import WallClock


@pytest.fixture
def context(tmp_path: Path) -> AgentContext:
    """A context for one run, with a unique mark."""
    return AgentContext(
        folder=tmp_path / "run",
        llm_url="http://127.0.0.1:9",
        key="canary",
        session="s1",
        run_id=f"test-{os.getpid()}-{tmp_path.name}/run",
        log=tmp_path / "agent.log",
        clock=WallClock(),
        time_scale=50,
    )


@pytest.fixture
def spec_of(tmp_path: Path) -> Callable[..., AgentSpec]:
    """Writes `code` to agent.py and the given keys to agent.yaml, and loads the spec."""

    def make(code: str = "", **keys: object) -> AgentSpec:
        (tmp_path / "agent.py").write_text(dedent(code))
        if not {"callable", "http", "page", "chat", "lines", "acp", "tui"} & keys.keys():
            keys = {"command": ["{python}", "{here}/agent.py", "{message}"], **keys}
        (tmp_path / "agent.yaml").write_text(yaml.safe_dump({"name": "a", "wire": "openai-chat", **keys}))
        return load_spec(tmp_path / "agent.yaml")

    return make
