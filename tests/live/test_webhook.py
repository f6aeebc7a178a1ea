"""A bot that gets its messages at a webhook, where the chat delivers one of them again."""

import json
from pathlib import Path
from typing import Any

import yaml

BOT = Path(__file__).with_name("hooked.py")


def test_a_message_that_comes_again_is_worked_on_once(wedgehog: Any, tmp_path: Path):
    """The id is the same; faults on polls do not apply."""
    agents = []
    for bug in ("sound", "works-again", "works-first"):
        words = ["{port}", "{chat_url}", "{llm_url}", *([] if bug == "sound" else [bug])]
        chat = {"start": ["{python}", str(BOT), *words], "webhook": "/telegram", "quiet_s": 0.5}
        spec = {"name": bug, "wire": "anthropic", "limits": {"turn_s": 20}, "chat": chat}
        (tmp_path / f"{bug}.yaml").write_text(yaml.safe_dump(spec))
        agents += ["--agent", f"{bug}.yaml"]
    stories = ("message-comes-twice", "message-comes-twice-while-busy", "chat-send-fails-once", "chat-poll-fails")
    done = wedgehog("run", *stories, *agents, "--network", "embedded")
    assert done.returncode == 1, done.stdout + done.stderr
    found = {}
    for file in (tmp_path / "runs" / "latest").glob("*/*/verdicts.json"):
        told = json.loads(file.read_text())
        found[told["scenario"], told["agent"]] = told["verdict"], told["violated"], told["skipped"]
    assert {agent: found["message-comes-twice", agent][1] for agent in ("sound", "works-again", "works-first")} == {
        "sound": [],
        "works-again": ["handled_once"],
        "works-first": ["handled_once"],
    }
    assert found["message-comes-twice-while-busy", "sound"][0] == "pass"
    assert found["message-comes-twice-while-busy", "works-first"][0] == "fail"
    assert found["chat-send-fails-once", "sound"][0] == "pass", "its user reads an error"
    assert "the agent has a webhook" in found["chat-poll-fails", "sound"][2]
