"""Agents of the official SDK whose model calls come over a WebSocket, in virtual time."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytestmark = pytest.mark.skipif(find_spec("openai") is None, reason="the OpenAI package is not installed")

AGENTS = Path(__file__).with_name("websocket_agents.py")
CLOSED = """
name: closed
why: The server closes a WebSocket in the middle of a reply.
turns:
  - user: What is a hedgehog?
    model: [{text: "A small animal that rolls itself up when it is worried. {nonce}"}]
faults:
  - {at: {turn: 1, step: 1, phase: middle}, do: {ws_close: 1012}}
"""
SCENARIOS = ("closed.yaml", "stall-once", "reset-mid-reply", "rate-limited-once")


def test_a_websocket_is_closed_cut_and_stalled_and_only_an_agent_that_connects_anew_goes_on(
    wedgehog: Any, tmp_path: Path
):
    """The frames, bytes and refusals that a scenario names are those of the WebSocket; HTTP has no close frame."""
    (tmp_path / "closed.yaml").write_text(CLOSED)
    words = []
    for name in ("sound", "hangs", "over_http"):
        spec = f"name: {name}\nwire: openai-responses\ncallable: '{AGENTS}:{name}'\nrecover_s: 0\n"
        (tmp_path / f"{name}.yaml").write_text(spec)
        words += ["--agent", str(tmp_path / f"{name}.yaml")]
    files = (str(tmp_path / "closed.yaml"), *SCENARIOS[1:])
    done = wedgehog("run", *files, *words, "--world", "sim", "--out", str(tmp_path / "runs"))
    rows = pd.read_csv(tmp_path / "runs" / "latest" / "summary.csv", keep_default_na=False)
    found = {(row.agent, row.scenario): (row.verdict, row.violated) for row in rows.itertuples()}
    names = [name.removesuffix(".yaml") for name in SCENARIOS]
    assert {found["sound", name] for name in names} == {("pass", "")}, done.stdout
    assert {found["hangs", name] for name in names} == {("fail", "turn_deadline")}, done.stdout
    assert found["over_http", "closed"] == ("skipped", ""), done.stdout
    assert {str(fired) for fired in rows[rows.agent == "sound"].faults_fired} == {"1"}
