"""An answer that is longer than a message of a chat."""

import json
from pathlib import Path
from typing import Any

import yaml

BOT, DRAWS = (Path(__file__).with_name(name) for name in ("chatting.py", "drawing.py"))


def test_a_bot_splits_a_long_answer_and_is_red_where_its_user_gets_nothing_or_the_begin(wedgehog: Any, tmp_path: Path):
    """The chat takes no message of more than 4,096 characters; the verdict says so."""
    agents = []
    for bug in ("sound", "in-one", "the-first"):
        start = ["{python}", str(BOT), "{chat_url}", "{llm_url}", *([] if bug == "sound" else [bug])]
        spec = {"name": bug, "wire": "anthropic", "limits": {"turn_s": 5}, "chat": {"start": start, "quiet_s": 0.5}}
        (tmp_path / f"{bug}.yaml").write_text(yaml.safe_dump(spec))
        agents += ["--agent", f"{bug}.yaml"]
    done = wedgehog("run", "long-answer", *agents)
    assert done.returncode == 1, done.stdout + done.stderr
    found = {}
    for verdicts in (tmp_path / "runs" / "latest").glob("*/*/verdicts.json"):
        told = json.loads(verdicts.read_text())
        found[told["agent"]] = told["violated"], told["says"]
    assert {agent: violated for agent, (violated, _) in found.items()} == {
        "sound": [],
        "in-one": ["turn_deadline"],
        "the-first": ["truncation_noticed"],
    }
    assert "the chat refused what it sent: Bad Request: message is too long" in found["in-one"][1]


def test_an_answer_that_a_terminal_draws_anew_stands_there_twice(wedgehog: Any, tmp_path: Path):
    """At `strict`: its beginning has left the screen, and comes again."""
    agents = []
    for how in ("once", "redraws"):
        start = ["{python}", str(DRAWS), "{llm_url}", how]
        spec = {"name": how, "wire": "anthropic", "tui": {"start": start, "resume": start, "ready": "^> *$"}}
        (tmp_path / f"{how}.yaml").write_text(yaml.safe_dump(spec))
        agents += ["--agent", f"{how}.yaml"]
    done = wedgehog("run", "long-answer", "--level", "strict", *agents)
    assert done.returncode == 1, done.stdout + done.stderr
    verdicts = [json.loads(it.read_text()) for it in (tmp_path / "runs" / "latest").glob("*/*/verdicts.json")]
    assert {it["agent"]: it["violated"] for it in verdicts} == {"once": [], "redraws": ["output_once"]}
