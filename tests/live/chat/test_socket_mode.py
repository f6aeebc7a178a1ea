"""An agent in Slack's socket mode: events come again if they are not acknowledged, and connections end."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.live.together import JOBS

BOT = Path(__file__).with_name("socket_bot.py")
STORIES = ("slow-but-alive", "chat-poll-fails", "chat-is-down-for-a-while", "chat-mention-comes-as-two-events")


def bot(folder: Path, bug: str) -> list[str]:
    """The option that names a spec of the bot."""
    start = ["{python}", str(BOT), "{chat_url}", "{llm_url}", *([] if bug == "sound" else [bug])]
    chat = {"api": "slack", "event": "both", "start": start, "quiet_s": 0.5}
    spec = {"name": bug, "wire": "anthropic", "start_s": 12, "limits": {"turn_s": 30}, "chat": chat}
    (folder / f"{bug}.yaml").write_text(yaml.safe_dump(spec))
    return ["--agent", f"{bug}.yaml"]


def told_in(folder: Path) -> dict[tuple[str, str], tuple[str, list[str]]]:
    """Verdict and red invariants, by scenario and agent."""
    told = [json.loads(it.read_text()) for it in (folder / "runs" / "latest").glob("*/*/verdicts.json")]
    return {(it["scenario"], it["agent"]): (it["verdict"], it["violated"]) for it in told}


def test_a_sound_bot_passes_and_each_bug_is_red(wedgehog: Any, tmp_path: Path):
    """A late acknowledgement makes an event come again; without a new connection its user hears nothing."""
    done = wedgehog("run", *STORIES, *bot(tmp_path, "sound"), "--network", "embedded", JOBS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {told_in(tmp_path)[story, "sound"][0] for story in STORIES} == {"pass"}
    agents = [*bot(tmp_path, "acknowledges-late"), *bot(tmp_path, "connects-once")]
    done = wedgehog("run", "slow-but-alive", "chat-poll-fails", *agents, "--network", "embedded", JOBS)
    assert done.returncode == 1, done.stdout + done.stderr
    found = told_in(tmp_path)
    assert "handled_once" in found["slow-but-alive", "acknowledges-late"][1]
    assert found["slow-but-alive", "connects-once"][0] == "pass"
    assert "turn_deadline" in found["chat-poll-fails", "connects-once"][1]
