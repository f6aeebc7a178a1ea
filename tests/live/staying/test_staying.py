"""Agents that stay, in three kinds: a sound one passes whatever happens to it, and a bug of each kind is named."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
import yaml

from tests.live.conftest import PLAIN_HTTP, SOUND
from tests.live.together import JOBS

HERE = Path(__file__).parent
CATALOGUE = HERE.parents[2] / "scenarios" / "catalogue"
KINDS: dict[str, dict[str, Any]] = {
    "lines": {
        "ready": {"type": "ready"},
        "send": {"type": "user", "text": "{message}"},
        "answer": "joined:text",
        "error": "jsonl:message",
        "done": {"type": "done"},
    },
    "acp": {},
    "tui": {"ready": "^> ?$", "quiet_s": 0.3},
}
LAST = {"user": "And now?", "model": [{"text": "All is well. {nonce}"}]}


def work(command: str) -> list[dict[str, Any]]:
    return [{"tool": "shell", "args": {"command": command}}, {"text": "It went well. {nonce}"}]


def story(command: str, *faults: dict[str, Any], during: dict[str, Any] | None = None) -> dict[str, Any]:
    """A turn with a command, perhaps a message during it, and one more message."""
    second = [{"user": "And this?", "during": during, "model": [{"text": "That too. {nonce}"}]}] if during else []
    faults_on_agent = [{"link": "agent", **fault} for fault in faults]
    return {"turns": [{"user": "Run it.", "model": work(command)}, *second, LAST], "faults": faults_on_agent}


IN_MID_TOOL = {"turn": 1, "step": 1, "tool": 1, "when": "started"}
STORIES = {
    "killed": story("sleep 30", {"at": IN_MID_TOOL, "do": "kill"}),
    "orphaned": story("sleep 30", {"at": IN_MID_TOOL, "do": {"kill": {"whom": "leader"}}}),
    "frozen": story("sleep 1.5", {"at": IN_MID_TOOL, "do": {"freeze": {"for_s": 1}}}),
    "aborted": story("sleep 30", {"at": IN_MID_TOOL, "do": "abort"}),
    "two-at-once": story("sleep 0.5", during=IN_MID_TOOL),
    "reads": story("cat"),
    "refused": {**story("true"), "faults": [{"at": {"turn": 1, "step": 2}, "do": {"status": 500}, "times": "always"}]},
}
BUGS = {
    "stale-lock": ("lines", "killed", "session_recovers: the message after healing was not answered"),
    "tools-inherit-its-lock": ("lines", "orphaned", "session_recovers: the message after healing was not answered"),
    "ends-without-a-word": ("acp", "refused", "error_surfaced: turn 1: no answer and no word of an error"),
    "says-it-whole-again": ("acp", "reads", "answered_once: turn 1: its user got the whole answer 2 times"),
    "shares-its-terminal": ("tui", "reads", "turn_deadline: turn 1 gave no answer and no error within"),
}
"""Each bug with its kind, the story that shows it, and how the report names it."""


def sentence(folder: Path, row: dict[str, str]) -> str:
    found = json.loads((folder / row["run_dir"] / "verdicts.json").read_text())
    return f"{row['verdict']}: {found['says']}"


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    """The commands need not import these each."""
    return environment | {"WEDGEHOG_TEST_IMPORTS": "wedgehog.harness.agents.acp wedgehog.harness.agents.tui"}


@pytest.fixture
def agent_of(tmp_path: Path) -> Callable[..., str]:
    """Writes the spec of the agent that stays, as one kind; the spec's name."""
    for file in (HERE / "staying.py", SOUND, PLAIN_HTTP):
        copy(file, tmp_path)

    def write(name: str, kind: str, *options: str, turn_s: float = 6, **more: Any) -> str:
        line = ["{python}", "-S", "-E", "{here}/staying.py", kind, "{llm_url}", "{session_dir}", *options]
        spec = {
            "name": name,
            "wire": "anthropic",
            "recover_s": 0,
            "start_s": 3,
            kind: {"start": line, **KINDS[kind], **more},
        }
        spec |= {"session_files": ["{session_dir}/*.jsonl"], "limits": {"turn_s": turn_s}}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        return f"{name}.yaml"

    return write


@pytest.fixture
def says(wedgehog: Any, told: Any, tmp_path: Path) -> Callable[..., dict[tuple[str, str], str]]:
    """Plays stories with agents in one campaign; the verdict and sentence of each run."""

    def played(agents: list[str], names: list[str]) -> dict[tuple[str, str], str]:
        files = [told(name, **STORIES[name]) for name in names]
        options = [word for agent in agents for word in ("--agent", agent)]
        ran = wedgehog("run", *files, *options, "--network=embedded", JOBS)
        assert "Traceback" not in ran.stderr, ran.stderr
        folder = (tmp_path / "runs" / "latest").resolve()
        with (folder / "summary.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        return {(row["agent"], row["scenario"]): sentence(folder, row) for row in rows}

    return played


@pytest.fixture
def asked(wedgehog: Any, tmp_path: Path) -> Callable[..., dict[tuple[str, str], str]]:
    """Plays stock scenarios, by default those about permission; of each run its verdict, with all that is violated."""

    def played(agents: list[str], names: str = "permission-*") -> dict[tuple[str, str], str]:
        options = [word for agent in agents for word in ("--agent", agent)]
        files = map(str, CATALOGUE.glob(f"{names}.yaml"))
        ran = wedgehog("run", *files, *options, "--network=embedded", JOBS)
        assert "Traceback" not in ran.stderr, ran.stderr
        with (tmp_path / "runs" / "latest" / "summary.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        return {(it["agent"], it["scenario"]): f"{it['verdict']}: {it['violated'] or it['strict']}" for it in rows}

    return played


def test_a_sound_agent_of_each_kind_passes_whatever_happens_to_its_process(says: Any, agent_of: Any):
    """Killed, frozen, stopped, written to from a second window; a command that reads input, a model that refuses."""
    found = says([agent_of(kind, kind) for kind in KINDS], list(STORIES))
    assert len(found) == len(KINDS) * len(STORIES)
    assert [row for row in found.items() if not row[1].startswith("pass")] == []


ASKS = {"permission-denied-every-time": ("waits-for-a-yes", "turn_deadline")}
OTHERS = {
    "permission-denied-once": ("waits-for-a-result-of-a-denied-call", "turn_deadline"),
    "permission-unanswered-then-stopped": ("question-stays-open", "turn_deadline"),
    "permission-allowed-always": ("dies-of-always", "turn_answered"),
}
ELSE = {"permission-denied-for-one-of-two": ("runs-what-is-denied", "no_denied_calls")}
ONCE = {"permission-allowed-once": ("one-yes-for-all", "asked_each_time")}
"""Red at level `strict`; at `safe` it is undecided, as its user has not been asked, and could not deny."""
LOST = {"permission-unanswered-then-killed": ("waits-for-a-lost-answer", "turn_deadline")}
"""Each scenario about permission, with the bug that no other one shows, and the invariant that names it."""


def test_an_agent_that_is_denied_or_not_answered_goes_on_and_the_bugs_are_named(asked: Any, agent_of: Any):
    """A person denies once, each time, or does not answer and stops the turn; one that asks for none is skipped."""
    agents = {"sound": ("acp",), "silent": ("lines",)}
    for name, bugs in ("asks", ASKS), ("others", OTHERS), ("else", ELSE), ("once", ONCE), ("lost", LOST):
        agents[name] = ("acp", "--bug", ",".join(bug for bug, _ in bugs.values()))
    found = asked([agent_of(name, *words, turn_s=4) for name, words in agents.items()])
    sound = {name: says for (agent, name), says in found.items() if agent == "sound"}
    assert set(sound) == set(ASKS | OTHERS | ELSE | ONCE | LOST)
    assert [it for it in sound.items() if not it[1].startswith("pass")] == []
    assert {says for (agent, _), says in found.items() if agent == "silent"} == {"skipped: "}
    for agent, bugs in ("asks", ASKS), ("others", OTHERS), ("else", ELSE), ("lost", LOST):
        for name, (_, invariant) in bugs.items():
            assert found[agent, name].startswith("fail") and invariant in found[agent, name], found[agent, name]
    assert [found["once", name] for name in ONCE] == [f"inconclusive: {it}" for _, it in ONCE.values()]


ANSWERS = {
    "lines": {
        "shows": {"type": "ask"},
        "allow": {"id": "jsonl:question.id", "allow": True},
        "deny": {"id": "jsonl:question.id", "allow": False},
    },
    "tui": {"shows": r"\[y/n\] ?$", "allow": "y\r", "deny": "n\r"},
}


def test_a_question_in_lines_or_on_the_screen_is_answered_too(asked: Any, agent_of: Any):
    """The same stories, but that this agent knows no answer for ever; a bug of it is named in lines as well."""
    agents = [agent_of(kind, kind, "--asks", asks=asks) for kind, asks in ANSWERS.items()]
    bug = agent_of("bug", "lines", "--asks", "--bug", "runs-what-is-denied", asks=ANSWERS["lines"])
    found = asked([*agents, bug])
    skipped = {name for (_, name), says in found.items() if says.startswith("skipped")}
    assert skipped == {"permission-allowed-always"}
    sound = {of: says for of, says in found.items() if of[0] != "bug" and of[1] not in skipped}
    assert [it for it in sound.items() if not it[1].startswith("pass")] == []
    assert found["bug", "permission-denied-for-one-of-two"] == "fail: no_denied_calls"


def test_two_sessions_of_one_process_are_apart_and_a_bug_is_named(asked: Any, agent_of: Any):
    """As in an editor with two chats; one that answers each `session/new` with the same session mixes them up."""
    agents = [agent_of("sound", "acp"), agent_of("bug", "acp", "--bug", "one-session-for-all")]
    found = asked(agents, "two-sessions-*")
    sound = {of: says for of, says in found.items() if of[0] == "sound"}
    assert len(sound) == 2 and [it for it in sound.items() if not it[1].startswith("pass")] == []
    for of in found.keys() - sound.keys():
        assert found[of].startswith("fail") and "sessions_apart" in found[of], found[of]


def test_a_bug_of_each_kind_is_named(says: Any, agent_of: Any):
    """A lock that outlives a killed process, or that its command holds; a silent error; a shared terminal."""
    agents = [agent_of(bug, kind, "--bug", bug) for bug, (kind, _, _) in BUGS.items()]
    found = says(agents, list(dict.fromkeys(name for _, name, _ in BUGS.values())))
    for bug, (_, name, words) in BUGS.items():
        assert found[bug, name].startswith("fail") and words in found[bug, name], found[bug, name]
