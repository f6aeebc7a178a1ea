"""A model's window of a scripted size, as `serve` plays it on each wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness.commands.test_provider import sent
from wedgehog.harness.commands.serve import Provider
from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.faults.parameters import FaultError

HEADERS = {"anthropic-version": "2023-06-01", "x-api-key": "k", "Authorization": "Bearer k", "x-goog-api-key": "k"}
LONG = "word " * 200
"""250 tokens."""


def script(do: object) -> dict[str, Any]:
    """One answer for all, behind a window."""
    return {"replies": [{"reply": {"text": "Yes."}, "fault": {"do": do}}]}


def chat(*texts: str) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": text} for text in texts]}


def given(*texts: str) -> dict[str, Any]:
    return {"model": "m", "input": [{"role": "user", "content": text} for text in texts]}


def contents(*texts: str) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": text}]} for text in texts]}


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/v1/messages", chat, "prompt is too long: 253 tokens > 100 maximum"),
        (
            "/v1/chat/completions",
            chat,
            "maximum context length is 100 tokens. However, your messages resulted in 253 tokens. Please reduce",
        ),
        ("/v1/responses", given, "Your input exceeds the context window of this model."),
        (
            "/v1beta/models/gemini-2.5-flash:generateContent",
            contents,
            "The input token count (253) exceeds the maximum number of tokens allowed (100).",
        ),
    ],
)
async def test_a_request_that_is_longer_than_the_window_is_refused_in_the_providers_words(path, body, said):
    """A shorter one passes, before and after."""
    with Provider(script({"window": {"tokens": 100}})) as llm:
        answers = [await sent("POST", llm.url + path, body(text), HEADERS) for text in ("Hi", LONG, "Hi")]
    assert [status for status, _ in answers] == [200, 400, 200]
    assert said in answers[1][1].decode(), answers[1]


async def test_ollama_drops_the_beginning_in_silence_and_counts_only_the_rest():
    """No error tells the client; `prompt_eval_count` is all that it can see."""
    with Provider(script({"window": {"tokens": 100}})) as llm:
        status, body = await sent("POST", llm.url + "/api/chat", {**chat(LONG), "stream": False}, HEADERS)
    assert status == 200
    assert json.loads(body)["prompt_eval_count"] == 100


async def test_a_window_of_so_many_more_tokens_counts_from_the_first_request():
    """Agents differ in the size of their instructions and tools."""
    with Provider(script({"window": {"more": 260}})) as llm:
        path = llm.url + "/v1/messages"
        answers = [await sent("POST", path, chat(*(many * [LONG])), HEADERS) for many in (1, 2, 3, 1)]
    statuses = [status for status, _ in answers]
    assert statuses == [200, 200, 400, 200]


async def test_a_request_for_a_title_before_it_is_not_the_first_request():
    """It is short, and has no tools: the conversation would not fit into the room beside it."""
    tools = [{"name": "bash", "input_schema": {"type": "object"}, "description": LONG}]
    with Provider(script({"window": {"more": 260}})) as llm:
        path = llm.url + "/v1/messages"
        bodies = [chat("Hi"), *({**chat(*(many * [LONG])), "tools": tools} for many in (2, 3, 4)), chat("Hi")]
        answers = [await sent("POST", path, body, HEADERS) for body in bodies]
    assert [status for status, _ in answers] == [200, 200, 200, 400, 200]


@pytest.mark.parametrize("do", [{"window": {}}, "window", {"window": {"tokens": 5, "more": 5}}])
def test_a_window_has_one_size(do: object):
    """Neither none nor two."""
    with pytest.raises(FaultError, match="either `tokens` or `more`"):
        parse_fault(do)
