"""An agent that keeps an empty message of the model can't go on, on each wire where the provider refuses it."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

WIRES = ("openai-chat", "anthropic", "gemini")
STORIES = {"empty-reply-once": "empty", "closed-mid-reply": "failed"}


def _spec(folder: Path, wire: str, keeps: str) -> str:
    agent, name = str(Path(__file__).with_name("keeping.py")), f"{wire}-{keeps}"
    command = ["{python}", agent, wire, keeps, "{llm_url}", "{session_dir}", "{message}"]
    spec = {"name": name, "wire": wire, "command": command, "simulate": f"{agent}:simulate", "recover_s": 0}
    (folder / f"{name}.yaml").write_text(json.dumps(spec))
    return f"{name}.yaml"


@pytest.mark.parametrize("scenario", STORIES)
def test_a_kept_message_without_content_is_red_on_each_wire(wedgehog: Any, tmp_path: Path, scenario: str):
    """At level safe, in virtual time; the agent that keeps words instead passes."""
    bug = STORIES[scenario]
    agents = [word for wire in WIRES for keeps in ("words", bug) for word in ("--agent", _spec(tmp_path, wire, keeps))]
    ran = wedgehog("run", scenario, *agents, "--world", "sim")
    with (tmp_path / "runs" / "latest" / "summary.csv").open(newline="") as file:
        found = {row["agent"]: (row["verdict"], "session_recovers" in row["violated"]) for row in csv.DictReader(file)}
    expected = {f"{wire}-words": ("pass", False) for wire in WIRES} | {
        f"{wire}-{bug}": ("fail", True) for wire in WIRES
    }
    assert found == expected, ran.stdout + ran.stderr
