"""Script files and the words of items."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from wedgehog.fake_llm.conversation import Conversation, Message, ToolResultSeen
from wedgehog.fake_llm.reply import Failure, Reply, Text, Thinking, ToolCall, UnscriptedError, Usage
from wedgehog.fake_llm.script.items import ReplyConfig
from wedgehog.fake_llm.script.script_file import ScriptFile, WhenScript


def talk(*messages: Message, wire: str = "anthropic", model: str = "m5-mini") -> Conversation:
    return Conversation(wire, model, stream=False, messages=messages)


def user(text: str) -> Message:
    return Message("user", text)


def result() -> Message:
    return Message("tool", tool_results=(ToolResultSeen("a", "ok"),))


def script(*lines: Any) -> WhenScript:
    return WhenScript.of({"replies": [*lines, {"reply": {"text": "else"}}]})


def said(script: WhenScript, conversation: Conversation) -> str:
    answer = script.answer(1, conversation)
    assert isinstance(answer, Reply)
    assert isinstance(answer.items[0], Text)
    return answer.items[0].text


def test_every_item_word_finds_its_place_in_a_reply() -> None:
    """Text, thinking and tools are items; usage, stop and delay are about the whole reply."""
    words = [
        {"thinking": "Hm."},
        {"text": "Hi", "pace_ms": 200},
        {"tool": "shell", "args": {"command": "ls"}, "id": "1x2"},
        {"tool": "shell", "raw_args": '{"co'},
        {"usage": {"input_tokens": 8000}},
        {"stop": "max_tokens"},
        {"delay_s": 2},
    ]
    assert ReplyConfig.model_validate(words).reply() == Reply(
        (
            Thinking("Hm."),
            Text("Hi", 200),
            ToolCall("shell", {"command": "ls"}, "1x2"),
            ToolCall("shell", {}, "", '{"co'),
        ),
        Usage(8000, None),
        "max_tokens",
        2,
    )


def test_one_item_is_a_reply() -> None:
    """The list around a single item may be left out."""
    assert ReplyConfig.model_validate({"text": "Hi"}).reply() == Reply((Text("Hi"),))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"txt": "Hi"}, r"\n +an item with one of the keys text, thinking, tool"),
        ({"text": "Hi", "pace": 2}, "Extra inputs are not permitted"),
        ({"stop": "later"}, "'end', 'tool', 'max_tokens'"),
        ({"delay_s": -1}, "greater than or equal to 0"),
        ({"text": 21}, "valid string"),
    ],
)
def test_a_wrong_item_is_named(words: Any, complaint: str) -> None:
    """Unknown keys and bad values are errors that name what was expected."""
    with pytest.raises(ValidationError, match=complaint):
        ReplyConfig.model_validate(words)


@pytest.mark.parametrize(
    ("when", "fits", "fits_not"),
    [
        ({"user": "WEATHER"}, talk(user("hi"), user("The weather?")), talk(user("weather"), user("thanks"))),
        ({"user": r"/^rate.?limit$/"}, talk(user("rate limit")), talk(user("a rate limit"))),
        ({"tool_results": 0}, talk(result(), user("x")), talk(user("x"), result())),
        ({"tool_results": 2}, talk(result(), user("x"), result(), result()), talk(user("x"), result())),
        ({"model_name": "mini"}, talk(user("x")), talk(user("x"), model="m5")),
        ({"wire": "anthropic"}, talk(user("x")), talk(user("x"), wire="openai-chat")),
        ({"system": "brief"}, talk(Message("system", "Be brief."), user("x")), talk(user("brief"))),
    ],
)
def test_a_line_is_said_when_its_condition_holds(when: Any, fits: Conversation, fits_not: Conversation) -> None:
    """Each condition looks at its own part of the conversation."""
    lines = script({"when": when, "reply": {"text": "yes"}})
    assert (said(lines, fits), said(lines, fits_not)) == ("yes", "else")


def test_all_conditions_of_a_line_must_hold() -> None:
    """Two conditions are an and."""
    lines = script({"when": {"user": "x", "wire": "gemini"}, "reply": {"text": "yes"}})
    assert said(lines, talk(user("x"))) == "else"


def test_the_first_line_that_fits_is_said() -> None:
    """Order decides."""
    assert said(script({"reply": {"text": "first"}}, {"reply": {"text": "second"}}), talk(user("x"))) == "first"


def test_an_error_line_is_a_failure() -> None:
    """Status and Retry-After come as they are written."""
    lines = script({"error": {"status": 429, "retry_after": 2}})
    assert lines.answer(1, talk(user("x"))) == Failure(429, retry_after=2)
    assert script({"error": {"status": 502, "html": True}}).answer(1, talk(user("x"))) == Failure(502, html=True)


def test_nothing_that_fits_is_said_with_the_reason() -> None:
    """The reason shows the last user message and the results after it."""
    lines = WhenScript.of({"replies": [{"when": {"user": "weather"}, "reply": {"text": "21"}}]})
    with pytest.raises(UnscriptedError, match="1 lines fits the last user message 'time\\?' with 1 tool results"):
        lines.answer(1, talk(user("time?"), result()))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"when": {}}, "either `reply` or `error`"),
        ({"reply": {"text": "a"}, "error": {"status": 500}}, "either `reply` or `error`"),
        ({"when": {"user": "/(/"}, "reply": {"text": "a"}}, "expected a regular expression"),
        ({"wen": {}, "reply": {"text": "a"}}, "Extra inputs"),
        ({"error": {"status": 200}}, "greater than or equal to 400"),
    ],
)
def test_a_wrong_line_is_named(line: Any, complaint: str) -> None:
    """A script with a mistake is no script."""
    with pytest.raises(ValidationError, match=complaint):
        ScriptFile.model_validate({"replies": [line]})


def test_a_fault_is_left_to_the_server_of_the_script() -> None:
    """What happens to bytes is carried along unread."""
    fault = {"do": {"stall": "forever"}, "at": {"event": 5}}
    lines = script({"reply": {"text": "a"}, "fault": fault})
    assert lines.line(talk(user("x"))).fault == fault
