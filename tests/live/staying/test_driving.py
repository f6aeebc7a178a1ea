"""A program that runs another agent: a sound one passes when that dies or stands still, and each bug is named."""

import csv
from collections.abc import Callable
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
import yaml

from tests.live.conftest import PLAIN_HTTP, SOUND
from tests.live.together import JOBS

HERE = Path(__file__).parent
STORIES = ("worker-dies-in-mid-reply", "worker-dies-in-mid-tool", "worker-dies-each-time", "worker-stands-still")
RESUMED, HUNG = "worker-dies-when-it-resumes", "worker-stands-still-when-it-resumes"
WAITS = "second-message-while-a-worker-dies"
IDLE, STILL = "worker-dies-while-idle", "worker-stands-still-while-idle"
LINES: dict[str, Any] = {
    "send": {"type": "user", "text": "{message}"},
    "answer": "joined:text",
    "error": "jsonl:message",
    "done": {"type": "done"},
}
SERVES: dict[str, Any] = {
    "ready": "/",
    "url": "/",
    "body": {"text": "{message}"},
    "answer": "json:answer",
    "error": "json:error",
}


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., str]:
    """Writes the spec of the program, with a bug or without; the spec's name."""
    for file in (HERE / "driving.py", HERE / "staying.py", SOUND, PLAIN_HTTP):
        copy(file, tmp_path)

    def write(bug: str = "", *, stays: bool = False, serves: bool = False, turn_s: float = 16) -> str:
        name = f"{bug or 'sound'}{'-stays' if stays else '-serves' if serves else ''}"
        line = ["{python}", "-S", "-E", "{here}/driving.py", "{llm_url}", "{session_dir}"]
        line += ["--stays"] if stays else ["{port}", "--serves"] if serves else ["{message}"]
        line += [*(("--bug", bug) if bug else ())]
        kind = {"lines": {"start": line, **LINES}} if stays else {"command": line}
        kind = {"http": {"start": line, **SERVES}} if serves else kind
        spec = {"name": name, "wire": "anthropic", "recover_s": 0, "limits": {"turn_s": turn_s}, **kind}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec | {"session_files": ["{session_dir}/*.jsonl"]}))
        return f"{name}.yaml"

    return write


def played(wedgehog: Any, folder: Path, agents: list[str], *stories: str) -> dict[tuple[str, str], str]:
    """The verdict of each run with its violations, or none."""
    words = [word for agent in agents for word in ("--agent", agent)]
    done = wedgehog("run", *stories, *words, "--network=embedded", JOBS)
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    with (folder / "runs" / "latest" / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["scenario"], row["agent"]): row["violated"] or row["verdict"] for row in rows}


def test_a_sound_program_survives_its_worker(wedgehog: Any, program: Any, tmp_path: Path):
    """Whether it starts the agent for each message, or keeps it."""
    found = played(wedgehog, tmp_path, [program(), program(stays=True)], *STORIES, RESUMED, HUNG, IDLE, STILL)
    assert {found.pop((story, "sound")) for story in (IDLE, STILL)} == {"skipped"}
    assert len(found) == 14 and {*found.values()} == {"pass"}


def test_a_check_says_that_there_is_a_worker(wedgehog: Any, program: Any):
    """So its user learns of the scenarios."""
    assert "it runs another program that asks the model" in wedgehog("agents", "check", program()).stdout


def test_each_bug_has_its_name(wedgehog: Any, program: Any, tmp_path: Path):
    """Words in the place of an answer, a silent agent that is waited for, and one that is not started again."""
    wrong = [program("an-end-is-a-success"), program("has-no-timer"), program("never-starts-another", stays=True)]
    found = played(wedgehog, tmp_path, wrong, *STORIES[1:2], *STORIES[3:])
    assert {key: said for key, said in found.items() if said != "pass"} == {
        (STORIES[1], "an-end-is-a-success"): "error_surfaced",
        (STORIES[1], "never-starts-another-stays"): "session_recovers",
        (STORIES[3], "has-no-timer"): "turn_deadline",
    }


def test_a_worker_that_stands_still_between_two_messages_is_not_waited_for(wedgehog: Any, program: Any, tmp_path: Path):
    """A program without a timer waits for it."""
    found = played(wedgehog, tmp_path, [program("has-no-timer", stays=True)], STILL)
    assert found == {(STILL, "has-no-timer-stays"): "turn_deadline"}


def test_an_agent_that_dies_each_time_is_not_started_without_an_end(wedgehog: Any, program: Any, tmp_path: Path):
    """Each start is a paid request."""
    found = played(wedgehog, tmp_path, [program("starts-it-for-ever", turn_s=6)], STORIES[2])
    assert "paid_call_bound" in found[STORIES[2], "starts-it-for-ever"].split(";")


def test_a_session_that_could_not_be_resumed_is_neither_forgotten_nor_busy_for_ever(
    wedgehog: Any, program: Any, tmp_path: Path
):
    """The agent below dies each time that the second message starts it, and works again with the third."""
    wrong = [program("forgets-what-it-can-not-resume"), program("stays-busy")]
    wrong += [program("never-starts-another", stays=True)]
    assert played(wedgehog, tmp_path, wrong, RESUMED) == {
        (RESUMED, "forgets-what-it-can-not-resume"): "error_forgets_nothing",
        (RESUMED, "stays-busy"): "session_recovers",
        (RESUMED, "never-starts-another-stays"): "session_recovers",
    }


def test_a_session_whose_agent_hangs_when_it_is_resumed_is_neither_forgotten_nor_busy_for_ever(
    wedgehog: Any, program: Any, tmp_path: Path
):
    """The agent below stands still each time that the second message starts it."""
    wrong = [program("forgets-what-it-can-not-resume"), program("stays-busy"), program("has-no-timer")]
    assert played(wedgehog, tmp_path, wrong, HUNG) == {
        (HUNG, "forgets-what-it-can-not-resume"): "error_forgets_nothing",
        (HUNG, "stays-busy"): "session_recovers",
        (HUNG, "has-no-timer"): "turn_deadline",
    }


def test_an_agent_that_dies_between_two_messages_is_started_again_with_its_session(
    wedgehog: Any, program: Any, tmp_path: Path
):
    """No message waits for it when it dies."""
    wrong = [program("never-starts-another", stays=True), program("begins-a-new-session", stays=True)]
    assert played(wedgehog, tmp_path, wrong, IDLE) == {
        (IDLE, "never-starts-another-stays"): "session_recovers",
        (IDLE, "begins-a-new-session-stays"): "memory_loss_told",
    }


def test_a_message_that_waits_for_an_agent_which_can_not_start_is_not_lost(wedgehog: Any, program: Any, tmp_path: Path):
    """The agent below dies with the first message; the second one starts it again."""
    agents = [program(), program(stays=True), program(serves=True), program("drops-what-waits", serves=True)]
    found = played(wedgehog, tmp_path, agents, WAITS)
    assert found.pop((WAITS, "drops-what-waits-serves")) == "error_surfaced"
    assert found == dict.fromkeys([(WAITS, "sound"), (WAITS, "sound-stays"), (WAITS, "sound-serves")], "pass")


def test_an_agent_that_asks_the_model_itself_has_no_worker(wedgehog: Any, program: Any, tmp_path: Path):
    """The scenario is skipped, with the reason."""
    program()
    line = ["{python}", "-S", "-E", "{here}/sound.py", "{llm_url}", "{session_dir}", "{message}"]
    (tmp_path / "alone.yaml").write_text(yaml.safe_dump({"name": "alone", "wire": "anthropic", "command": line}))
    done = wedgehog("run", STORIES[0], "--agent", "alone.yaml", "--network=embedded")
    assert "the agent has no worker: no program below its own process" in done.stdout + done.stderr
