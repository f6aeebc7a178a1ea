"""A bot that gets its messages at a webhook, where the chat delivers one of them again."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.live.together import JOBS

BOT = Path(__file__).with_name("hooked.py")


def spec_of(folder: Path, bug: str, api: str = "telegram", **more: str) -> list[str]:
    """The option that names a spec of the bot."""
    words = ["{port}", "{chat_url}", "{llm_url}", api, *([] if bug == "sound" else [bug])]
    chat = {"api": api, "start": ["{python}", str(BOT), *words], "webhook": f"/{api}", "quiet_s": 0.5, **more}
    spec = {"name": bug, "wire": "anthropic", "limits": {"turn_s": 12}, "chat": chat, "env": {"KEY": "{key}"}}
    (folder / f"{bug}.yaml").write_text(yaml.safe_dump(spec))
    return ["--agent", f"{bug}.yaml"]


def told_in(folder: Path) -> dict[tuple[str, str], tuple[str, list[str], str]]:
    """Verdict, red invariants and reason to skip, by scenario and agent."""
    told = [json.loads(it.read_text()) for it in (folder / "runs" / "latest").glob("*/*/verdicts.json")]
    return {(it["scenario"], it["agent"]): (it["verdict"], it["violated"], it["skipped"]) for it in told}


def test_a_second_message_is_answered_too(wedgehog: Any, tmp_path: Path):
    """It waits while a command of the first one runs, and is answered once."""
    agents = [word for bug in ("sound", "drops", "queues-twice") for word in spec_of(tmp_path, bug)]
    done = wedgehog("run", "second-message-while-busy", *agents, "--network", "embedded", JOBS)
    assert done.returncode == 1, done.stdout + done.stderr
    found = told_in(tmp_path)
    assert found["second-message-while-busy", "sound"][0] == "pass"
    assert "error_surfaced" in found["second-message-while-busy", "drops"][1]
    assert found["second-message-while-busy", "queues-twice"][1] == ["handled_once"]


def test_a_message_that_comes_again_is_worked_on_once(wedgehog: Any, tmp_path: Path):
    """The id is the same; faults on polls do not apply."""
    agents = [word for bug in ("sound", "works-again", "works-first") for word in spec_of(tmp_path, bug)]
    stories = ("message-comes-twice", "message-comes-twice-while-busy", "chat-send-fails-once", "chat-poll-fails")
    done = wedgehog("run", *stories, *agents, "--network", "embedded", JOBS)
    assert done.returncode == 1, done.stdout + done.stderr
    found = told_in(tmp_path)
    assert {agent: found["message-comes-twice", agent][1] for agent in ("sound", "works-again", "works-first")} == {
        "sound": [],
        "works-again": ["handled_once"],
        "works-first": ["handled_once"],
    }
    assert found["message-comes-twice-while-busy", "sound"][0] == "pass"
    assert found["message-comes-twice-while-busy", "works-first"][0] == "fail"
    assert found["chat-send-fails-once", "sound"][0] == "pass", "its user reads an error"
    assert "the agent has a webhook" in found["chat-poll-fails", "sound"][2]


def test_slack_brings_an_event_again_after_three_seconds(wedgehog: Any, tmp_path: Path):
    """A bot that answers the event when its model has answered works on it twice; another one is never told again."""
    agents = [word for bug in ("sound", "works-first") for word in spec_of(tmp_path, bug, "slack")]
    done = wedgehog("run", "slow-but-alive", "chat-send-fails-once", *agents, "--network", "embedded", JOBS)
    assert done.returncode == 1, done.stdout + done.stderr
    found = told_in(tmp_path)
    assert found["slow-but-alive", "sound"][0] == found["chat-send-fails-once", "sound"][0] == "pass"
    assert "handled_once" in found["slow-but-alive", "works-first"][1]


def test_a_mention_that_comes_as_two_events_is_answered_once(wedgehog: Any, tmp_path: Path):
    """A bot may read both events and know the message, or read mentions only; its event's id alone is new."""
    agents = [
        word
        for bug in ("sound", "mentions-only", "both-events")
        for word in spec_of(tmp_path, bug, "slack", event="both")
    ]
    story = "chat-mention-comes-as-two-events"
    done = wedgehog("run", story, *agents, *spec_of(tmp_path, "drops", "slack"), "--network", "embedded", JOBS)
    assert done.returncode == 1, done.stdout + done.stderr
    found = told_in(tmp_path)
    assert {found[story, bug][0] for bug in ("sound", "mentions-only")} == {"pass"}
    assert "handled_once" in found[story, "both-events"][1]
    assert "chat: event: both" in found[story, "drops"][2], "its app gets one event for a message"


def test_a_notification_of_whatsapp_that_comes_again_is_worked_on_once(wedgehog: Any, tmp_path: Path):
    """Nothing but the message's id says that it is the same."""
    agents = [word for bug in ("sound", "works-again") for word in spec_of(tmp_path, bug, "whatsapp")]
    done = wedgehog("run", "message-comes-twice", *agents, "--network", "embedded", JOBS)
    assert done.returncode == 1, done.stdout + done.stderr
    found = told_in(tmp_path)
    assert found["message-comes-twice", "sound"][0] == "pass"
    assert found["message-comes-twice", "works-again"][1] == ["handled_once"]
