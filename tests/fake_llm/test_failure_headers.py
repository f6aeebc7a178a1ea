"""The headers of a failure on which clients act."""

import asyncio
import http.client
import json
from typing import Any

import pytest

from wedgehog.harness.commands.serve import Provider

CHAT = ("/v1/chat/completions", {"model": "gpt-5", "messages": [{"role": "user", "content": "Hi"}]})
AZURE = ("/openai/v1/chat/completions", CHAT[1])
MESSAGES = ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]})
ACTED_ON = ("retry-after", "x-should-retry", "x-ratelimit-", "anthropic-ratelimit-")


async def headers_of(do: Any, request: tuple[str, Any]) -> dict[str, str]:
    """The headers of a failure on which clients act."""
    path, body = request
    script = {"replies": [{"reply": {"text": "Hi"}, "fault": {"do": do}}]}

    def ask(port: int) -> dict[str, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        bearer = {"Authorization": "Bearer k"}
        known = {**bearer, "x-api-key": "k", "anthropic-version": "2023-06-01"}
        connection.request(
            "POST", path, json.dumps(body), {MESSAGES[0]: known, AZURE[0]: {"api-key": "k"}}.get(path, bearer)
        )
        found = connection.getresponse().headers.items()
        connection.close()
        return {name.lower(): value for name, value in found if name.lower().startswith(ACTED_ON)}

    async with Provider(script) as llm:
        return await asyncio.to_thread(ask, int(llm.url.rpartition(":")[2]))


async def test_a_rate_limit_of_anthropic_names_its_limits_and_asks_for_a_retry():
    """The reset is a time."""
    found = await headers_of({"status": {"code": 429, "retry_after": 2}}, MESSAGES)
    resets = {value for name, value in found.items() if name.endswith("-reset")}
    assert len(resets) == 1 and resets.pop().endswith("Z")
    assert {name: value for name, value in found.items() if not name.endswith("-reset")} == {
        "retry-after": "2",
        "x-should-retry": "true",
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-tokens-limit": "50000",
        "anthropic-ratelimit-tokens-remaining": "50000",
    }


async def test_a_rate_limit_of_openai_names_the_time_until_its_reset():
    """As a duration."""
    assert await headers_of({"status": {"code": 429, "retry_after": 2}}, CHAT) == {
        "retry-after": "2",
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "2s",
        "x-ratelimit-limit-tokens": "150000",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6ms",
    }


@pytest.mark.parametrize(("do", "ms"), [({"status": {"code": 429, "retry_after": 2}}, "2000"), ({"status": 429}, None)])
async def test_azure_asks_for_the_wait_in_milliseconds_too(do: Any, ms: str | None):
    """Beside Retry-After, to a client with Azure's key."""
    found = await headers_of(do, AZURE)
    assert (found.get("retry-after-ms"), found.get("retry-after")) == (ms, "2" if ms else None)


@pytest.mark.parametrize(
    ("do", "request_", "found"),
    [
        ({"status": 529}, MESSAGES, {"x-should-retry": "true"}),
        ({"status": 400}, MESSAGES, {}),
        ({"status": 500}, CHAT, {}),
        ("balance", CHAT, {}),
        ({"html_body": 429}, CHAT, {}),
        ("error_body", CHAT, {}),
    ],
)
async def test_other_failures_have_only_what_their_service_sends(do: Any, request_: Any, found: dict[str, str]):
    """A used-up quota is no rate limit, and a gateway's page has no headers of the provider."""
    assert await headers_of(do, request_) == found
