"""An agent in Discord: a sound bot passes the stock scenarios of a chat, and each bug is red in the one about it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live.together import AT_ONCE, JOBS, Found, entry, play
from wedgehog.harness.campaign.options import Options

BOT = Path(__file__).with_name("gateway_bot.py")
BUGS = (
    ("sends-once", "chat-send-fails-once", "turn_deadline"),
    ("sends-once", "chat-is-down-when-it-answers", "turn_deadline"),
    ("in-one", "long-answer", "turn_deadline"),
    ("must-type", "chat-typing-fails", "turn_deadline"),
    ("draft edits-once", "chat-edit-is-limited", "turn_deadline"),
    ("connects-once", "chat-is-down-for-a-while", "session_recovers"),
    ("connects-once", "chat-poll-fails", "session_recovers"),
    ("trusts-silence", "chat-poll-stalls", "turn_deadline"),
    ("forgets-numbers", "chat-poll-fails", "handled_once"),
)
OTHERS = ("chat-limits-its-rate", "chat-send-is-not-acknowledged", "answer-has-marks")


def bot(folder: Path, bugs: str, turn_s: float) -> str:
    """A spec of the bot; with a bug its turns may take less time, so that the run is short."""
    name = bugs.replace(" ", "-") or "sound"
    start = ["{python}", str(BOT), "{chat_url}", "{llm_url}", *bugs.split()]
    spec = {
        "name": name,
        "wire": "anthropic",
        "start_s": turn_s,
        "limits": {"turn_s": turn_s},
        "chat": {"api": "discord", "start": start, "quiet_s": 0.5},
    }
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    return f"{name}.yaml"


def told_in(folder: Path) -> dict[str, tuple[str, list[str], str]]:
    """Verdict, red invariants and reason to skip, by scenario."""
    told = [json.loads(it.read_text()) for it in (folder / "runs" / "latest").glob("*/*/verdicts.json")]
    return {it["scenario"]: (it["verdict"], it["violated"], it["skipped"]) for it in told}


def test_a_sound_bot_passes_each_of_them(wedgehog: Any, tmp_path: Path):
    """It shows its answer while it grows. Another one at the gateway is not in its way, so that one is skipped."""
    stories = {*(story for _, story, _ in BUGS), *OTHERS}
    done = wedgehog(
        "run",
        *sorted(stories),
        "chat-is-polled-by-another",
        *("--agent", bot(tmp_path, "draft", 60), "--network", "embedded", JOBS),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = told_in(tmp_path)
    assert {story: found[story][0] for story in stories} == dict.fromkeys(stories, "pass")
    assert "the agent has a WebSocket" in found["chat-is-polled-by-another"][2]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """All bots with a bug, each in its scenario."""
    folder = tmp_path_factory.mktemp("bugs")
    pairs = [entry(story, folder / bot(folder, bugs, 12)) for bugs, story, _ in BUGS]
    return play(pairs, Options(folder / "runs", network="embedded", jobs=AT_ONCE))


@pytest.mark.parametrize(("bugs", "story", "invariant"), BUGS)
def test_a_bug_is_red_where_the_gateway_or_the_chat_fails(found: Found, bugs: str, story: str, invariant: str):
    """Its user waits, and hears nothing, or gets an answer twice."""
    judged = found[story, bugs.replace(" ", "-")]
    assert judged.verdict == "fail" and invariant in judged.violated
