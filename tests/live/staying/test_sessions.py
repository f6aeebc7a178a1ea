"""Two sessions of one agent at once: sound agents of three kinds pass, and three bugs are named."""

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
STAYS = {
    "ready": {"type": "ready"},
    "send": {"type": "user", "text": "{message}"},
    "answer": "joined:text",
    "error": "jsonl:message",
    "done": {"type": "done"},
}
LOCK, OF_ALL = 'os.path.join(folder, "lock")', 'os.path.join(os.environ["HOME"], "lock")'
TAKES = "        fcntl.flock(lock, fcntl.LOCK_EX)"
BUGS: dict[str, tuple[dict[str, str], str, str]] = {
    "one-file-for-all": (
        {'os.path.join(folder, "messages': 'os.path.join(os.environ["HOME"], "messages'},
        "two-sessions-take-turns",
        "sessions_apart: request 2, of turn 2 of session B, has words of session A (turn 1)",
    ),
    "one-lock-for-all": (
        {LOCK: OF_ALL},
        "one-of-two-sessions-stalls",
        "session_unharmed: session B, which no fault struck: turn 2 waited",
    ),
    "tools-inherit-the-lock": (
        {
            LOCK: OF_ALL,
            TAKES: f"        os.set_inheritable(lock.fileno(), True)\n{TAKES}",
            "capture_output=True": "capture_output=True, close_fds=False",
        },
        "killed-session-holds-a-lock",
        "session_unharmed: session B, which no fault struck: turn 2 was not answered",
    ),
}
"""What is written otherwise in the sound agent, the scenario that shows it, and how the report names it."""


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """Writes the sound agent with other words, and its spec; the spec's name."""

    def write(name: str, wrong: dict[str, str], **way: Any) -> str:
        code = SOUND.read_text()
        for right, other in {"timeout_s=30": "timeout_s=5", **wrong}.items():
            assert right in code
            code = code.replace(right, other)
        (tmp_path / f"{name}.py").write_text(code)
        (tmp_path / "sound.py").write_text(code)  # the agent that stays imports it
        for file in (HERE / "staying.py", PLAIN_HTTP, HERE / "chats.py"):
            copy(file, tmp_path)
        spec = {"name": name, "wire": "anthropic", "recover_s": 0, "start_s": 7, "limits": {"turn_s": 20}, **way}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        return f"{name}.yaml"

    return write


def command(name: str) -> list[str]:
    return ["{python}", "-S", "-E", f"{{here}}/{name}.py", "{llm_url}", "{session_dir}", "{message}"]


@pytest.fixture
def says(wedgehog: Any, tmp_path: Path) -> Callable[..., dict[tuple[str, str], str]]:
    """Plays scenarios of the catalogue with agents; of each run its verdict and sentence."""

    def played(agents: list[str], *chosen: str) -> dict[tuple[str, str], str]:
        options = [word for agent in agents for word in ("--agent", agent)]
        ran = wedgehog("run", *chosen, *options, "--network=embedded", JOBS)
        assert "Traceback" not in ran.stderr, ran.stderr
        folder = (tmp_path / "runs" / "latest").resolve()
        with (folder / "summary.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        return {(row["agent"], row["scenario"]): _sentence(folder, row) for row in rows}

    return played


def _sentence(folder: Path, row: dict[str, str]) -> str:
    found = json.loads((folder / row["run_dir"] / "verdicts.json").read_text())
    return f"{row['verdict']}: {found['says']}"


def test_sound_agents_of_three_kinds_pass(says: Any, written: Any):
    """A command, a function and a process that stays: together, in turn, and while one of two stalls or dies."""
    lines = ["{python}", "-S", "-E", "{here}/staying.py", "lines", "{llm_url}", "{session_dir}"]
    agents = [
        written("command", {}, command=command("command")),
        written("function", {}, callable="function.py:call"),
        written("lines", {}, lines={"start": lines, **STAYS}),
    ]
    found = says(agents, "--all", "-k", "sessions")
    assert len(found) == 15
    assert [row for row in found.items() if not row[1].startswith("pass")] == []


def test_bugs_of_two_sessions_are_named(says: Any, written: Any):
    """One file of messages, one lock that is held while the model is asked, and a lock that a command inherits."""
    agents = [written(name, wrong, command=command(name)) for name, (wrong, _, _) in BUGS.items()]
    found = says(agents, *(scenario for _, scenario, _ in BUGS.values()))
    for name, (_, scenario, words) in BUGS.items():
        assert found[name, scenario].startswith("fail") and words in found[name, scenario], found[name, scenario]


def test_a_function_with_one_list_for_all_sessions_is_named(says: Any, written: Any):
    """A global variable: a process that serves one session only would never show it."""
    one_list = {"self.messages = list(self._read())": "self.messages = ALL", "LOST = ": "ALL = []\nLOST = "}
    (found,) = says([written("global", one_list, callable="global.py:call")], "two-sessions-take-turns").values()
    assert found.startswith("fail") and "has words of session A (turn 1)" in found, found


def chats(*bug: str) -> dict[str, Any]:
    return {"start": ["{python}", "-S", "-E", "{here}/chats.py", "{llm_url}", "{session_dir}", *bug]}


def test_two_chats_of_one_process_pass_and_their_bugs_are_named(says: Any, written: Any):
    """Over the Agent Client Protocol: one conversation for all chats, and chats that wait for each other."""
    agents = [
        written("chats", {}, acp=chats()),
        written("mixes", {}, acp=chats("--bug", "mixes")),
        written("one-at-a-time", {}, acp=chats("--bug", "one-at-a-time")),
    ]
    found = says(agents, "--all", "-k", "sessions")
    assert [row for row in found.items() if row[0][0] == "chats" and not row[1].startswith("pass")] == []
    assert len([agent for agent, _ in found if agent == "chats"]) == 5
    mixed = found["mixes", "two-sessions-take-turns"]
    assert mixed.startswith("fail: sessions_apart") and "has words of session A (turn 1)" in mixed
    waits = found["one-at-a-time", "one-of-two-sessions-stalls"]
    assert waits.startswith("fail: session_unharmed: session B, which no fault struck: turn 2 wa"), waits


def test_an_agent_that_continues_the_last_session_is_skipped(says: Any, written: Any):
    """Nothing in its spec says which session a message belongs to."""
    way = {"command": [*command("last")[:4], "{llm_url}", "{home}", "{message}"]}
    (found,) = says([written("last", {}, **way)], "two-sessions-take-turns").values()
    assert found.startswith("skipped: skipped: one session: nothing in its spec tells one session from another")
