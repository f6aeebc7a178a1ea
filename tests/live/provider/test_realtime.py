"""Agents of the official SDK that talk to the Realtime API, in virtual time."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytestmark = pytest.mark.skipif(find_spec("openai") is None, reason="the OpenAI package is not installed")

AGENTS = Path(__file__).with_name("realtime_agents.py")
CLOSED = """
name: closed
why: The server closes a WebSocket in the middle of a reply.
turns:
  - user: What is a hedgehog?
    model: [{text: "A small animal that rolls itself up when it is worried. {nonce}"}]
faults:
  - {at: {turn: 1, step: 1, phase: middle}, do: {ws_close: 1012}}
"""
HEALTHY = (
    "stall-inside-a-tool-call",
    "reset-mid-reply",
    "rate-limited-once",
    "service-unavailable-once",
    "overloaded-always",
    "stream-ends-early-inside-a-tool-call",
    "error-in-stream",
    "broken-event-once",
    "garbage-arguments",
    "window-reached",
    "balance-used-up",
)


@pytest.fixture
def played(wedgehog: Any, tmp_path: Path) -> Any:
    """Plays scenarios with one of the agents: each one's verdict, what it violated, and why."""

    def play(agent: str, *scenarios: str) -> tuple[dict[str, tuple[str, str]], str]:
        (tmp_path / "closed.yaml").write_text(CLOSED)
        spec = f"name: {agent}\nwire: openai-realtime\ncallable: '{AGENTS}:{agent}'\nrecover_s: 0\n"
        (tmp_path / f"{agent}.yaml").write_text(spec)
        words = ("--agent", str(tmp_path / f"{agent}.yaml"), "--world", "sim", "--out", str(tmp_path / agent))
        done = wedgehog("run", *scenarios, *words)
        rows = pd.read_csv(tmp_path / agent / "latest" / "summary.csv", keep_default_na=False)
        fired = {str(row.scenario) for row in rows.itertuples() if row.verdict == "pass" and not int(row.faults_fired)}
        assert fired == set(), f"passed without its fault: {done.stdout}"
        return {row.scenario: (row.verdict, row.violated) for row in rows.itertuples()}, done.stdout

    return play


def test_an_agent_with_a_time_limit_passes_what_the_other_wires_play(played: Any, tmp_path: Path) -> None:
    """Faults act inside frames, refusals are events, and what the wire does not have is skipped with its reason."""
    found, said = played("sound", str(tmp_path / "closed.yaml"), *HEALTHY, "poisoned-thinking")
    skipped = found.pop("poisoned-thinking")
    assert found == dict.fromkeys(("closed", *HEALTHY), ("pass", "")), said
    assert skipped == ("skipped", "") and "no provider of openai-realtime signs what its model thought" in said


def test_an_agent_that_waits_for_ever_for_the_next_event_fails(played: Any) -> None:
    """A stalled response ends its turn at the deadline only."""
    found, said = played("waits", "stall-always")
    assert found["stall-always"][0] == "fail" and "turn_deadline" in found["stall-always"][1], said
