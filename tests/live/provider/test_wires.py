"""The same story in each wire format, played by a small agent that speaks it."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live.conftest import PLAIN_HTTP
from wedgehog.harness.record.history import read

WIRES = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama")
POLYGLOT = Path(__file__).with_name("polyglot.py")
MODEL = [
    {"tool": "shell", "args": {"command": "echo one"}},
    [{"text": "And again."}, {"tool": "shell", "args": {"command": "echo two"}}],
    {"text": "Done. {nonce}"},
]


@pytest.fixture
def play(wedgehog: Any, told: Any, tmp_path: Path) -> Callable[..., dict[str, dict[str, str]]]:
    """Plays a story against an agent for each wire: the rows of the summary by wire."""

    def played(*extra: str, wires: tuple[str, ...] = WIRES, **story: Any) -> dict[str, dict[str, str]]:
        for file in (POLYGLOT, PLAIN_HTTP):
            shutil.copy(file, tmp_path)
        for wire in wires:
            command = ["{python}", "-S", "-E", "{here}/polyglot.py", wire, "{llm_url}", "{message}", *extra]
            spec = {"name": wire, "wire": wire, "command": command, "recover_s": 0}
            (tmp_path / f"{wire}.yaml").write_text(yaml.safe_dump(spec))
        agents = [word for wire in wires for word in ("--agent", f"{wire}.yaml")]
        ran = wedgehog("run", told("story", *MODEL, **story), *agents, "--network=embedded")
        assert "Traceback" not in ran.stderr, ran.stderr
        with (tmp_path / "runs" / "latest" / "summary.csv").open(newline="") as file:
            return {row["agent"]: row for row in csv.DictReader(file)}

    return played


def test_steps_are_counted_in_every_wire_format(play: Any, tmp_path: Path):
    """Two rounds of tools and an answer: three calls at steps 1, 2 and 3, each tool run once, and a pass."""
    rows = play()
    assert {wire: row["verdict"] for wire, row in rows.items()} == dict.fromkeys(WIRES, "pass")
    for row in rows.values():
        history = read(tmp_path / "runs" / "latest" / row["run_dir"] / "history.jsonl")
        calls = [event for event in history.events if type(event).__name__ == "RequestArrived" and event.turn == 1]
        assert [(call.step, call.attempt) for call in calls] == [(1, 1), (2, 1), (3, 1)], row


def test_a_reply_that_is_cut_is_an_error_in_every_wire_format(play: Any, tmp_path: Path):
    """Bytes are counted the same way whatever they say; each agent tells of it."""
    rows = play(faults=[{"at": {"turn": 1, "step": 2, "byte": 40}, "do": {"cut": "rst"}}])
    assert {wire: row["verdict"] for wire, row in rows.items()} == dict.fromkeys(WIRES, "pass")
    for row in rows.values():
        history = read(tmp_path / "runs" / "latest" / row["run_dir"] / "history.jsonl")
        (ended,) = (event for event in history.events if type(event).__name__ == "ReplyEnded" and event.how == "cut")
        assert ended.bytes_delivered == 40


def test_a_lost_result_is_refused_in_the_words_of_each_provider(play: Any):
    """Pairing is judged by what each provider refuses; Ollama, which refuses nothing of the kind, is not asked."""
    strict = tuple(wire for wire in WIRES if wire != "ollama")
    rows = play("forget", wires=strict)
    verdicts = {wire: (row["verdict"], row["violated"]) for wire, row in rows.items()}
    assert verdicts == dict.fromkeys(strict, ("fail", "tool_call_pairing"))


def test_a_call_that_the_provider_could_not_read_must_not_end_the_turn_silently(play: Any):
    """Gemini says so by a reason of its own, and the reply has no parts."""
    fault = {"at": {"turn": 1, "step": 1}, "do": {"empty_reply": "broken_call"}}
    strict, lenient = (play(*words, wires=("gemini",), faults=[fault])["gemini"] for words in ((), ("lenient",)))
    assert (strict["verdict"], strict["violated"]) == ("pass", "")
    assert (lenient["verdict"], lenient["violated"]) == ("fail", "error_surfaced")
