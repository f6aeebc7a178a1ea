"""What is asked about a spec whose agent makes `wedgehog agents check` wait."""

import asyncio
from typing import Any

import pytest

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.commands import check_hints
from wedgehog.harness.commands.check_hints import noted, question, unended
from wedgehog.harness.commands.other_kind import other_kind
from wedgehog.harness.commands.unended_lines import lines_hint
from wedgehog.harness.testing import HistoryBuilder

COMMAND = {"command": ["a", "{message}"]}
LINES = {"lines": {"start": ["a"], "send": {"text": "{message}"}, "done": '"reply":'}}
SCREEN = {"tui": {"start": ["a"], "ready": "^> *$", "busy": "working"}}
SERVICE = {"http": {"start": ["a", "{port}"], "url": "/ask", "body": "{message}"}}


def agent(keys: dict[str, object]) -> AgentSpec:
    return AgentSpec.model_validate({"name": "mine", "wire": "ollama", **keys})


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        (LINES, """does it understand {"text": "{message}"} (`send`), and does the last line of its answer fit"""),
        (SERVICE, "does the service listen on {port}, and are `url` and `body` right?"),
        (SCREEN, "does its screen show '^> *$' while it waits (`ready`), and no longer 'working' (`busy`)?"),
        (COMMAND, ""),
    ],
)
def test_the_question_names_the_keys_of_the_agents_kind(keys: dict[str, object], asked: str):
    assert question(agent(keys)).startswith(asked) and bool(question(agent(keys))) is bool(asked)


async def test_a_long_wait_is_said_once(monkeypatch: pytest.MonkeyPatch):
    """With the time that a first request may take."""
    monkeypatch.setattr(check_hints, "NOTE_AFTER_S", 0.0)
    said: list[str] = []
    with noted(agent(SERVICE), said.append, "its answer"):
        for _ in range(5):
            await asyncio.sleep(0)
    assert len(said) == 1
    waits = "after 0 s still waiting for its answer; the first request may take 60 s, a turn 120 s: does the service"
    assert said[0].startswith(waits)


async def test_a_short_one_is_not_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(check_hints, "NOTE_AFTER_S", 0.0)
    said: list[str] = []
    with noted(agent(SERVICE), said.append, "its answer"):
        pass
    for _ in range(5):
        await asyncio.sleep(0)
    assert said == []


@pytest.mark.parametrize("ends", [True, False])
def test_an_answered_turn_that_does_not_end_is_a_finding(ends: bool):
    """A turn of two minutes looks like success otherwise."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    if not ends:
        tell.deadline(bound_s=120)
    said = [it.says.partition(": this line came")[0] for it in unended(agent(LINES), tell.end().seal())]
    assert said == ([] if ends else ["turn 1: answered, but it did not end within 120 s"])


THINKS, WELL = '{"event": "thinking"}', '{"event": "done", "output": "x"}'


@pytest.mark.parametrize(
    ("came", "well", "hint"),
    [
        (
            '{"event": "failed", "message": "401"}',
            f"{THINKS}\n{WELL}",
            """write `done: '"event": *"(done|failed)"'`, and `error: jsonl:message` or `answer: jsonl:message`""",
        ),
        (
            f"{THINKS}\n{WELL}",
            "",
            'write `done: {"event": "done"}`, and `error: jsonl:output` or `answer: jsonl:output`',
        ),
        ('{"reply": "x"}', "", """write `done: '^\\{"(reply)":'`"""),
        ('{"error": "x"}', '{"reply": "x"}', """write `done: '^\\{"(reply|error)":'`, and `error: jsonl:error`"""),
        ("A hedgehog.", "", "write a pattern of the line that ends each answer, such as a prompt"),
        ("", "", "no line came"),
    ],
)
def test_the_lines_of_a_turn_that_does_not_end_show_what_would_fit(came: str, well: str, hint: str):
    """A key that says what a line is; else the first key of the line."""
    tell = HistoryBuilder()
    for text in (came, well):
        tell.message()
        tell.answer_step(1)
        tell.end(text)
    turns = tell.seal().turns
    lines = {"lines": LINES["lines"] | {"answer": "jsonl:reply"}}
    assert hint in lines_hint(agent(lines), turns[0], turns[1] if well else None)
    assert lines_hint(agent(SERVICE), turns[0]) == ""


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ({"answer": "\x1b[?1049h\x1b[1;1HAsk me"}, "it wants a terminal, but a `command` has none: write `tui`"),
        ({"stderr": "_curses.error: nocbreak() returned ERR", "exit_code": 1}, "it wants a terminal"),
        ({"stderr": "Warning: Input is not a terminal (fd=0)."}, "it wants a terminal"),
        ({"stderr": "EOFError: EOF when reading a line", "exit_code": 1}, "it reads its messages from stdin"),
        ({}, "does the agent use {llm_url}? If it reads its messages from stdin, write `lines` in place of `command`"),
        ({"answer": "usage: agent [-h]"}, ""),
        ({"stderr": "No key.", "exit_code": 1}, ""),
    ],
)
def test_a_command_that_takes_its_messages_in_another_way_gets_a_hint(words: dict[str, Any], hint: str):
    """It ends without a request, because it has no terminal and nothing on its stdin."""
    tell = HistoryBuilder()
    tell.message()
    history = tell.end(**{"answer": "", **words}).seal()
    assert other_kind(agent(COMMAND), history).startswith(hint)
    assert bool(hint) is bool(other_kind(agent(COMMAND), history))
    assert other_kind(agent(LINES), history) == ""
