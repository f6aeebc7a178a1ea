"""The specimen's model: one streamed call of the OpenAI chat wire, without a timer and without retries."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

MODEL = "gpt-4.1-mini"
SYSTEM = "You are a coding agent. Use the shell; answer briefly."
BASH = {
    "name": "bash",
    "description": "Run a shell command and return its output.",
    "parameters": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
}

Json = dict[str, Any]


class ProviderError(Exception):
    """The provider refused, or its stream broke off."""


@dataclass(frozen=True, slots=True)
class Provider:
    """The model's address and key."""

    url: str
    key: str

    async def complete(self, messages: Sequence[Json]) -> Json:
        """The next assistant message, when its stream is complete."""
        request = {
            "model": MODEL,
            "stream": True,
            "tools": [{"type": "function", "function": BASH}],
            "messages": [{"role": "system", "content": SYSTEM}, *messages],
        }
        headers = {"Authorization": f"Bearer {self.key}"}
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as http,
            http.post(f"{self.url}/v1/chat/completions", json=request, headers=headers) as response,
        ):
            if not response.ok:
                raise ProviderError(f"HTTP {response.status}: {await response.text()}")
            return await _assemble(_events(response.content))


async def _events(body: aiohttp.StreamReader) -> AsyncIterator[Json]:
    async for line in body:
        name, _, data = line.decode().strip().partition(":")
        if name == "data" and data.strip() != "[DONE]":
            yield json.loads(data)


async def _assemble(events: AsyncIterator[Json]) -> Json:
    text, finish = "", ""
    calls: dict[int, Json] = {}
    async for event in events:
        if "error" in event:
            raise ProviderError(event["error"].get("message", "the stream ended in an error"))
        for choice in event["choices"]:
            delta = choice.get("delta") or {}
            text += delta.get("content") or delta.get("refusal") or ""
            for part in delta.get("tool_calls") or ():
                _extend(calls.setdefault(part["index"], {"id": "", "type": "function", "function": {}}), part)
            finish = choice.get("finish_reason") or finish
    if finish not in ("stop", "tool_calls"):
        raise ProviderError(f"the reply is not whole: {finish or 'its stream ended early'}")
    return {"role": "assistant", "content": text} | ({"tool_calls": list(calls.values())} if calls else {})


def _extend(call: Json, part: Json) -> None:
    call["id"] += part.get("id") or ""
    for key in ("name", "arguments"):
        call["function"][key] = call["function"].get(key, "") + (part.get("function", {}).get(key) or "")
