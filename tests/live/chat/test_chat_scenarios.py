"""The stock scenarios of a chat: a sound bot passes, and each bug is red in the scenario that is about it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live.together import AT_ONCE, JOBS, Found, entry, play
from wedgehog.harness.campaign.options import Options

BOT = Path(__file__).with_name("chatting.py")
BUGS = (
    ("sends-once", "chat-send-fails-once"),
    ("sends-once", "chat-is-down-when-it-answers"),
    ("marks-up", "answer-has-marks"),
    ("marks-up tells", "answer-has-marks"),
    ("tags tells", "answer-has-marks"),
    ("draft edits-once", "chat-edit-is-limited"),
    ("must-type", "chat-typing-fails"),
    ("polls-once", "chat-poll-fails"),
    ("polls-for-ever", "chat-poll-stalls"),
)
OTHERS = (
    "chat-limits-its-rate",
    "chat-is-polled-by-another",
    "chat-is-down-for-a-while",
    "chat-send-is-not-acknowledged",
)


def bot(folder: Path, bugs: str, turn_s: float) -> str:
    """A spec of the bot; with a bug its turns may take less time, so that the run is short."""
    name = bugs.replace(" ", "-") or "sound"
    spec = {
        "name": name,
        "wire": "anthropic",
        "start_s": turn_s,
        "limits": {"turn_s": turn_s},
        "chat": {"start": ["{python}", str(BOT), "{chat_url}", "{llm_url}", *bugs.split()], "quiet_s": 0.5},
    }
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    return f"{name}.yaml"


def verdicts(folder: Path) -> dict[tuple[str, str], tuple[str, list[str]]]:
    """Status and red invariants by scenario and agent, without the control runs."""
    told = [json.loads(it.read_text()) for it in (folder / "runs" / "latest").glob("*/*/verdicts.json")]
    return {(it["scenario"], it["agent"]): (it["verdict"], it["violated"]) for it in told if it["scenario"] in STORIES}


STORIES = {*(story for _, story in BUGS), *OTHERS}


def test_a_sound_bot_passes_each_of_them_with_a_draft_and_without(wedgehog: Any, tmp_path: Path):
    """A bot without edits skips the scenario about them."""
    agents = [word for bugs in ("", "draft") for word in ("--agent", bot(tmp_path, bugs, 60))]
    done = wedgehog("run", *sorted(STORIES), *agents, "--network", "embedded", JOBS)
    assert done.returncode == 0, done.stdout + done.stderr
    found = verdicts(tmp_path)
    assert {key for key, (status, _) in found.items() if status != "pass"} <= {("chat-edit-is-limited", "sound")}
    assert len(found) >= 2 * len(STORIES) - 1


@pytest.mark.parametrize(("bugs", "status"), [("types tells", "pass"), ("types types-on tells", "fail")])
def test_a_bot_that_types_on_behind_its_error_is_red(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bugs: str, status: str
):
    """It shows that it types for as long as it works, or for ever once its model has failed."""
    for module in ("wedgehog.harness.agents.chat", "wedgehog.harness.invariants.user.typing_ends"):
        monkeypatch.setattr(f"{module}.TYPES_ON_S", 8.0)
    pair = entry("server-error-always", tmp_path / bot(tmp_path, bugs, 40))
    judged = play([pair], Options(tmp_path / "runs", network="embedded"))[pair.file.scenario.name, pair.agent.name]
    assert (judged.verdict, judged.violated) == (status, ("typing_ends",) if status == "fail" else ())


@pytest.mark.parametrize(("bugs", "status"), [("", "pass"), ("sends-both", "fail")])
def test_what_a_tool_has_sent_is_not_sent_again_as_the_reply(tmp_path: Path, bugs: str, status: str):
    """At level strict: the model itself has said it twice."""
    start = ["{python}", str(BOT.with_name("writing_bot.py")), "{chat_url}", "{llm_url}", *bugs.split()]
    spec = {"name": "bot", "wire": "openai-chat", "level": "strict", "chat": {"start": start, "quiet_s": 0.5}}
    (tmp_path / "bot.yaml").write_text(yaml.safe_dump(spec))
    pair = entry("answer-is-sent-by-a-tool", tmp_path / "bot.yaml")
    judged = play([pair], Options(tmp_path / "runs", network="embedded"))[pair.file.scenario.name, "bot"]
    assert (judged.verdict, judged.violated) == (status, ("output_once",) if status == "fail" else ()), judged.says


@pytest.mark.parametrize(
    ("bugs", "violated"),
    [("", ()), ("asks-on once", ()), ("fills", ("no_false_error",)), ("asks-on", ("output_once",))],
)
def test_what_a_tool_has_sent_is_an_answer_also_before_an_empty_reply(
    tmp_path: Path, bugs: str, violated: tuple[str, ...]
):
    """At level strict: no canned sentence stands beside it, and the model does not send it again."""
    start = ["{python}", str(BOT.with_name("writing_bot.py")), "{chat_url}", "{llm_url}", *bugs.split()]
    spec = {"name": "bot", "wire": "openai-chat", "level": "strict", "chat": {"start": start, "quiet_s": 0.5}}
    (tmp_path / "bot.yaml").write_text(yaml.safe_dump(spec))
    pair = entry("reply-is-empty-behind-a-sent-answer", tmp_path / "bot.yaml")
    judged = play([pair], Options(tmp_path / "runs", network="embedded"))[pair.file.scenario.name, "bot"]
    assert (judged.verdict, judged.violated) == ("fail" if violated else "pass", violated), judged.says


@pytest.mark.parametrize(("bugs", "status"), [("draft", "pass"), ("", "pass"), ("draft misreads", "fail")])
def test_an_edit_that_changes_nothing_has_not_failed(tmp_path: Path, bugs: str, status: str):
    """At level strict: "(No response)" beside the answer."""
    spec = tmp_path / bot(tmp_path, bugs, 60)
    spec.write_text(yaml.safe_dump({**yaml.safe_load(spec.read_text()), "level": "strict"}))
    pair = entry("next-message-goes-on", spec)
    judged = play([pair], Options(tmp_path / "runs", network="embedded"))[pair.file.scenario.name, pair.agent.name]
    assert (judged.verdict, judged.violated) == (status, ("no_false_error",) if status == "fail" else ()), judged.says


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """All bots with a bug, each in its scenario."""
    folder = tmp_path_factory.mktemp("bugs")
    pairs = [entry(story, folder / bot(folder, bugs, 10)) for bugs, story in BUGS]
    return play(pairs, Options(folder / "runs", network="embedded", jobs=AT_ONCE))


@pytest.mark.parametrize(("bugs", "story"), BUGS)
def test_a_bug_is_red_where_the_chat_fails(found: Found, bugs: str, story: str):
    """Its user waits, and hears nothing; an answer with marks must come, and no error in its place."""
    judged = found[story, bugs.replace(" ", "-")]
    assert judged.verdict == "fail"
    assert set(judged.violated) & {"turn_deadline", "error_surfaced", "turn_answered"}
