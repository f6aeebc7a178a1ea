"""Two chats of one bot: a sound bot passes on each vendor, and three bugs of bots with many chats are named."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live.together import JOBS

BOT = Path(__file__).with_name("many_chats.py")
AT_ONCE, IN_TURN, STALLS = "two-sessions-at-once", "two-sessions-take-turns", "one-of-two-sessions-stalls"
BUGS = (
    ("one-queue", STALLS, "session_unharmed: session B, which no fault struck: turn 2 waited"),
    ("one-conversation", IN_TURN, "sessions_apart: request 2, of turn 2 of session B, has words of session A (turn 1)"),
    ("answers-last", AT_ONCE, "sessions_apart: the chat of session B got the answer to turn 1 of session A"),
)


def bot(folder: Path, api: str, bug: str = "", **more: Any) -> list[str]:
    """The option that names a spec of the bot."""
    name = f"{api}-{bug or 'sound'}"
    place = "{port}" if api != "telegram" else "0"
    start = ["{python}", str(BOT), place, "{chat_url}", "{llm_url}", api, *bug.split()]
    hook = {"webhook": "/hook"} if api != "telegram" else {}
    chat = {"api": api, "start": start, "quiet_s": 0.5, "users": 2, **hook, **more}
    spec = {"name": name, "wire": "anthropic", "recover_s": 0, "limits": {"turn_s": 12}, "chat": chat}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    return ["--agent", f"{name}.yaml"]


def told_in(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What the verdicts say, by scenario and agent."""
    told = [json.loads(it.read_text()) for it in (folder / "runs" / "latest").glob("*/*/verdicts.json")]
    return {(it["scenario"], it["agent"]): it for it in told}


def test_a_sound_bot_passes_on_each_vendor(wedgehog: Any, tmp_path: Path):
    """It polls, or has a webhook. A fault on its process would hit both chats."""
    agents = [word for api in ("telegram", "slack", "whatsapp") for word in bot(tmp_path, api)]
    done = wedgehog("run", "--all", "-k", "sessions", *agents, "--network", "embedded", JOBS)
    assert done.returncode == 0, done.stdout + done.stderr
    found = told_in(tmp_path)
    passed = {scenario for (scenario, _), it in found.items() if it["verdict"] == "pass"}
    assert passed == {AT_ONCE, IN_TURN, STALLS}
    assert len([it for it in found.values() if it["verdict"] == "pass"]) == 9
    others = [it["skipped"] for (scenario, _), it in found.items() if scenario not in passed]
    assert others and all("all sessions of a service are one process" in it for it in others)


@pytest.mark.parametrize(("bug", "scenario", "says"), BUGS)
def test_a_bug_of_many_chats_is_named(wedgehog: Any, tmp_path: Path, bug: str, scenario: str, says: str):
    """One queue, one conversation, and an answer that goes to the chat that wrote last."""
    done = wedgehog("run", scenario, *bot(tmp_path, "telegram", bug), "--network", "embedded")
    assert done.returncode == 1, done.stdout + done.stderr
    (told,) = told_in(tmp_path).values()
    assert told["verdict"] == "fail" and says in told["says"]


def test_a_bot_of_one_user_skips_them(wedgehog: Any, tmp_path: Path):
    """It promises no more."""
    wedgehog("run", IN_TURN, *bot(tmp_path, "telegram", users=1), "--network", "embedded")
    (told,) = told_in(tmp_path).values()
    assert "chat: users: 2" in told["skipped"]
