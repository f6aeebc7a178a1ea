"""Thinking blocks and broken characters, refused as Anthropic refuses them."""

import json
from typing import Any

import pytest

from tests.harness.commands.test_provider import sent
from wedgehog.harness.commands.serve import Provider

HEADERS = {"anthropic-version": "2023-06-01", "x-api-key": "k"}
SCRIPT = {
    "replies": [
        {"when": {"tool_results": 0}, "reply": [{"thinking": "Hm."}, {"tool": "bash", "args": {"command": "ls"}}]},
        {"reply": {"text": "Done"}},
    ]
}
TOOL = {"name": "bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
ENABLED = {"type": "enabled", "budget_tokens": 1024}
USER = {"role": "user", "content": "Go on."}
PLACE = "messages.1.content.0"
INVALID = f"{PLACE}: Invalid `signature` in `thinking` block"


async def asked(llm: Provider, *messages: Any, thinking: Any = ENABLED) -> tuple[int, Any]:
    body = {"model": "m", "max_tokens": 4000, "messages": [USER, *messages], "tools": [TOOL], "thinking": thinking}
    status, told = await sent("POST", f"{llm.url}/v1/messages", body, HEADERS)
    return status, json.loads(told)


async def second(llm: Provider, mode: Any = ENABLED, **changed: Any) -> tuple[int, str]:
    """Status and error of the request with the tool's result; `changed` fields of the thinking block (None: none)."""
    _, reply = await asked(llm, thinking=mode)
    thought, call = reply["content"]
    thought = {key: value for key, value in (thought | changed).items() if value is not None}
    content = [call] if changed.get("type", "") is None else [thought, call]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "ok"}
    said = {"role": "assistant", "content": content}
    status, told = await asked(llm, said, {"role": "user", "content": [result]}, thinking=mode)
    return status, told.get("error", {}).get("message", "")


async def test_a_thinking_block_that_comes_back_as_it_was_passes():
    """Also without its text, which newer models leave out, or from another provider, or where thinking is off."""
    async with Provider(SCRIPT) as llm:
        assert await second(llm) == (200, "")
        assert await second(llm, thinking="") == (200, "")
        foreign = await second(llm, thinking="Of another day.", signature="ErUBCkYIBRgC")
        assert foreign == (200, "")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"signature": None}, f"{PLACE}.thinking.signature: Field required"),
        ({"signature": ""}, INVALID),
        ({"signature": "Eqcut"}, INVALID),
        ({"thinking": "Ha."}, f"{PLACE}: `thinking` or `redacted_thinking` blocks in the latest assistant message"),
        ({"type": None}, f"{PLACE}.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."),
    ],
)
async def test_a_thinking_block_that_was_changed_or_dropped_is_refused(changed: dict[str, Any], says: str):
    """In the provider's words, and only where thinking is enabled, but for a missing field."""
    async with Provider(SCRIPT) as llm:
        status, told = await second(llm, **changed)
        assert (status, told.startswith(says)) == (400, True), told
        off, _ = await second(llm, {"type": "disabled"}, **changed)
        assert off == (400 if changed == {"signature": None} else 200)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (r"half \ud83d of it", "The request body is not valid JSON: no low surrogate in string: line 1 column "),
        (r"half \uDE00 of it", "The request body is not valid JSON: invalid high surrogate in string: line 1 column "),
        (r"whole \ud83d\ude00", ""),
        (r"words \\ud83d", ""),
        (r"words \\\ud83d", "The request body is not valid JSON: no low surrogate in string: line 1 column "),
    ],
)
async def test_half_a_character_makes_the_body_no_json(text: str, says: str):
    """A backslash that is itself escaped begins no character."""
    body = '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"TEXT"}]}'.replace("TEXT", text)
    async with Provider({"replies": [{"reply": {"text": "Hi"}}]}) as llm:
        status, told = await sent("POST", f"{llm.url}/v1/messages", body.encode(), HEADERS)
    message = json.loads(told).get("error", {}).get("message", "")
    assert (status, message.startswith(says)) == (400 if says else 200, True), message
