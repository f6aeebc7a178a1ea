"""`serve` refuses what carries a poisoned item, in each provider's own words."""

from typing import Any

import pytest

from tests.harness.commands.test_provider import sent
from wedgehog.harness.commands.serve import Provider

HEADERS = {"anthropic-version": "2023-06-01", "x-api-key": "k", "Authorization": "Bearer k", "x-goog-api-key": "k"}
USER = {"role": "user", "content": "Go on."}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}
CALLED = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}}
ANTHROPIC: dict[str, tuple[Any, ...]] = {
    "image": ({"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": "iVBORw0KGgo="}}]},),
    "thinking": (USER, {"role": "assistant", "content": [SIGNED, {"type": "text", "text": "Yes."}]}, USER),
    "tool_result": (
        USER,
        {"role": "assistant", "content": [CALLED]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "built"}]},
    ),
}
GEMINI_PICTURE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}
CASES: list[tuple[str, str, dict[str, Any], str]] = [
    ("image", "/v1/messages", {"messages": ANTHROPIC["image"]}, "Could not process image"),
    (
        "thinking",
        "/v1/messages",
        {"messages": ANTHROPIC["thinking"]},
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    (
        "tool_result",
        "/v1/messages",
        {"messages": ANTHROPIC["tool_result"]},
        "not valid JSON: no low surrogate",
    ),
    (
        "image",
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": [PICTURE]}]},
        "The image data you provided does not represent a valid image.",
    ),
    ("text", "/v1/chat/completions", {"messages": [USER]}, "We could not parse the JSON body of your request."),
    (
        "image",
        "/v1/responses",
        {
            "input": [
                {
                    "role": "user",
                    "content": [{"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}],
                }
            ]
        },
        "The image data you provided does not represent a valid image.",
    ),
    (
        "thinking",
        "/v1/responses",
        {"input": [USER, REASONING, SAID, USER]},
        "The encrypted content for item rs_1 could not be verified.",
    ),
    (
        "image",
        "/v1beta/models/gemini-2.5-flash:generateContent",
        {"contents": [{"role": "user", "parts": [GEMINI_PICTURE]}]},
        "Unable to process input image.",
    ),
    (
        "thinking",
        "/v1beta/models/gemini-2.5-flash:generateContent",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "Go on."}]},
                {"role": "model", "parts": [{"text": "Yes.", "thoughtSignature": "c2ln"}]},
                {"role": "user", "parts": [{"text": "Go on."}]},
            ]
        },
        "Corrupted thought signature.",
    ),
    ("image", "/api/chat", {"messages": [USER | {"images": ["iVBORw0KGgo="]}]}, "bad request"),
]


@pytest.mark.parametrize(("kind", "path", "words", "says"), CASES)
async def test_each_provider_refuses_an_item_in_its_own_words(kind: str, path: str, words: dict[str, Any], says: str):
    """With 400, again and again, and no other request of the session; another session is another one."""
    whole = {"model": "gpt-5", "max_tokens": 99, "stream": False} | words
    plain = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]} if "contents" in words else {}
    plain |= {"input": "Hi"} if "input" in words else {"messages": [{"role": "user", "content": "Hi"}]}
    script = {"replies": [{"reply": {"text": "Hi"}, "fault": {"do": {"poison": kind}}}]}
    kept = {"replies": [{"reply": {"text": "Hi"}, "fault": {"do": {"poison": {"kind": kind, "text": "Go"}}}}]}
    async with Provider(kept if kind == "text" else script) as llm:
        for _ in range(2):
            status, told = await sent("POST", llm.session_url("red") + path, whole, HEADERS)
            assert (status, says.encode() in told) == (400, True), told
        status, told = await sent("POST", llm.session_url("red") + path, whole | plain, HEADERS)
        assert status == 200, told
        entry = llm.ledger("red")[0]
        assert (entry["fault"]["name"], entry["error"]["scripted"]) == ("poison", True)
