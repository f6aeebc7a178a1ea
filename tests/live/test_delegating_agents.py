"""Agents with subagents, a planner and a judge, in virtual time: correct ones pass, and each bug has its name."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.record.event import RequestArrived
from wedgehog.harness.record.history import History, read

AGENTS = Path(__file__).with_name("delegating_agents.py")
WIRES = {"planner": "openai-chat", "waits": "openai-chat"}
PROMPTS = ["Read the first file.", "Read the second file."]
TURNS = [
    {
        "user": "Read both files, please.",
        "model": [
            [{"tool": "task", "args": {"title": prompt[:8], "prompt": prompt}} for prompt in PROMPTS],
            {"text": "Both are empty. {nonce}"},
        ],
    },
    {"user": "Thank you. And now?", "model": [{"text": "Now we rest. {nonce}"}]},
]


@pytest.fixture
def played(wedgehog: Any, tmp_path: Path) -> Any:
    """Plays scenarios with these agents: verdict, violated invariants and history, by scenario and agent."""

    def play(names: list[str], *scenarios: str) -> dict[tuple[str, str], tuple[str, list[str], History]]:
        words = []
        for name in names:
            spec = {"name": name, "wire": WIRES.get(name, "anthropic"), "callable": f"{AGENTS}:{name}", "recover_s": 0}
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
            words += ["--agent", f"{name}.yaml"]
        done = wedgehog("run", *scenarios, *words, "--world", "sim")
        assert done.returncode in (0, 1), done.stdout + done.stderr
        found = {}
        for folder in (tmp_path / "runs" / "latest").glob("*/*/verdicts.json"):
            told = json.loads(folder.read_text())
            history = read(folder.parent / "history.jsonl") if not told["skipped"] else History()
            found[told["scenario"], told["agent"]] = told["verdict"], told["violated"], history
        return found

    return play


def calls(history: History, turn: int) -> list[tuple[str, int, int]]:
    arrived = [event for event in history.of(RequestArrived) if event.turn == turn]
    return [(event.side, event.step, event.attempt) for event in arrived]


def test_subagents_planners_and_judges_are_no_attempts_of_the_step(played: Any, told: Any):
    """They have the tools and the system text of their parent. Taken for attempts, they get its own calls, for ever."""
    found = played(["readers", "planner"], told("two-readers", turns=TURNS))
    verdict, _, history = found["two-readers", "readers"]
    subagents = [("subagent 1", 1, 1), ("subagent 2", 1, 1)]
    assert verdict == "pass"
    assert calls(history, 1) == [("", 1, 1), *subagents, ("", 2, 1)]
    assert [event.quotes for event in history.of(RequestArrived)][:4] == [(), (), (), (2, 3)]
    verdict, _, history = found["two-readers", "planner"]
    assert verdict == "pass"
    assert calls(history, 1) == [("side 1", 1, 1), ("", 1, 1), *subagents, ("", 2, 1), ("side 2", 1, 1)]
    assert calls(history, 2) == [("side 3", 1, 1), ("", 1, 1), ("side 4", 1, 1)]
