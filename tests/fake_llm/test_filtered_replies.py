"""A reply that a filter of the provider cuts: what has come, and each provider's own reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake_llm.conftest import Anthropic, Gemini, OpenAI, Provider, Responses
from wedgehog.fake_llm.reply import Reply, Text

HALF = Reply((Text("A small ani"),), stop="filter")


def _reason(provider: Provider, body: dict[str, Any]) -> Any:
    if provider is Anthropic:
        return body["stop_reason"]
    if provider is OpenAI:
        return body["choices"][0]["finish_reason"]
    if provider is Gemini:
        return body["candidates"][0]["finishReason"]
    return body["status"], body["incomplete_details"]["reason"], body["output"][0]["status"]


@pytest.mark.parametrize(
    ("provider", "reason"),
    [
        (Anthropic, "refusal"),
        (OpenAI, "content_filter"),
        (Gemini, "SAFETY"),
        (Responses, ("incomplete", "content_filter", "incomplete")),
    ],
)
async def test_a_filtered_reply_has_its_first_words_and_the_providers_reason(
    open_llm: Any, ask: Any, provider: Provider, reason: Any
) -> None:
    """It is no refusal: its words are the answer's, and lack their end."""
    received = await ask(await open_llm(HALF), provider)
    assert b"A small ani" in received.body and received.status == 200
    assert _reason(provider, received.json) == reason
