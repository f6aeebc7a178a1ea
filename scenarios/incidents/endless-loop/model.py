"""The client of the Anthropic API, with the timers of the report and of its patches."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from units import TOOL

MAX_TOKENS = 2048
RETRY_PAUSE_S = 0.5
SYSTEM = "You are Landscaper, the analyst of a land development project. Its data:\n" + "\n".join(
    f"Parcel {n}: zoned residential, absorption and rent roll as in the plan, costs by phase, see appraisal {n}."
    for n in range(1, 601)  # about 60 KB, 15,000 tokens; the report says 10 to 50 thousand
)


class ModelError(Exception):
    """Why there is no reply; the user reads it."""


@dataclass
class Reply:
    content: list[dict[str, Any]] = field(default_factory=list)
    stop_reason: str = ""

    @property
    def text(self) -> str:
        return "".join(block["text"] for block in self.content if block["type"] == "text")

    @property
    def tool_uses(self) -> list[dict[str, Any]]:
        return [block for block in self.content if block["type"] == "tool_use"]


@dataclass(frozen=True)
class Timers:
    """`inactive_s` starts again with each request and each byte; `ends_at` (monotonic) is the end of the turn's budget,
    None if there is no budget."""

    inactive_s: float
    ends_at: float | None

    def for_one_call(self) -> aiohttp.ClientTimeout:
        if self.ends_at is None:
            return aiohttp.ClientTimeout(total=None, sock_connect=self.inactive_s, sock_read=self.inactive_s)
        left_s = self.ends_at - time.monotonic()
        if left_s <= 0:
            raise ModelError("the time budget of this message is used up")
        return aiohttp.ClientTimeout(total=left_s)


class Model:
    def __init__(self, http: aiohttp.ClientSession, url: str, key: str, streaming: bool, sdk_retries: int) -> None:
        self._http = http
        self._url = f"{url}/v1/messages"
        self._headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
        self._streaming = streaming
        self._sdk_retries = sdk_retries

    async def create(self, messages: Sequence[dict[str, Any]], timers: Timers) -> Reply:
        """Ask, and repeat as often as the SDK does; each try gets the whole time again."""
        for tries_left in range(self._sdk_retries, -1, -1):
            try:
                return await self._once(messages, timers.for_one_call())
            except TimeoutError:
                if not tries_left:
                    raise ModelError("the request to the model timed out") from None
                await asyncio.sleep(RETRY_PAUSE_S)
        raise AssertionError("the last try returns or raises")

    async def _once(self, messages: Sequence[dict[str, Any]], timeout: aiohttp.ClientTimeout) -> Reply:
        body = {
            "model": "claude-sonnet-4-6",
            "max_tokens": MAX_TOKENS,
            "system": SYSTEM,
            "messages": list(messages),
            "tools": [TOOL],
            "stream": self._streaming,
        }
        async with self._http.post(self._url, headers=self._headers, json=body, timeout=timeout) as response:
            if response.status >= 400:
                raise ModelError(f"the model's provider said HTTP {response.status}: {(await response.text())[:200]}")
            if self._streaming:
                return await _assembled(response.content)
            whole = await response.json()
            return Reply(whole["content"], whole["stop_reason"])


async def _assembled(body: aiohttp.StreamReader) -> Reply:
    """The reply, from its stream of events."""
    reply, arguments = Reply(), ""
    async for line in body:
        word, _, data = line.decode().partition(":")
        if word != "data":
            continue
        event = json.loads(data)
        if event["type"] == "content_block_start":
            reply.content.append(event["content_block"])
            arguments = ""
        elif event["type"] == "content_block_delta" and "text" in event["delta"]:
            reply.content[-1]["text"] += event["delta"]["text"]
        elif event["type"] == "content_block_delta":
            arguments += event["delta"].get("partial_json", "")
        elif event["type"] == "content_block_stop" and arguments:
            reply.content[-1]["input"] = json.loads(arguments)
        elif event["type"] == "message_delta":
            reply.stop_reason = event["delta"]["stop_reason"]
        elif event["type"] == "error":
            raise ModelError(f"the stream broke off: {event['error']['message']}")
        elif event["type"] == "message_stop":
            return reply
    raise ModelError("the stream ended before the reply did")
