"""Two wire formats, both read into a Draft: the part of a streamed reply that has arrived."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

SYSTEM = "You look after the user's day. On a heartbeat, do what is due; if nothing is, say so in one sentence."
EXEC = "exec"
EXEC_SAYS = "Run a shell command and return what it prints."
EXEC_SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string", "description": "The command line."}},
    "required": ["command"],
}
MAX_TOKENS = 4096


class ProviderError(Exception):
    """The provider refused, or its reply broke off. It is not an idle timeout and is not retried."""


@dataclass
class ToolCall:
    id: str
    name: str
    arguments: str = ""


def parsed(arguments: str) -> dict[str, Any]:
    """A tool call's arguments; empty if they are not a JSON object."""
    try:
        found = json.loads(arguments)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@dataclass
class Draft:
    """`output` counts the pieces that arrive, about one token each. The `usage` of the first event is not used:
    real providers say `output_tokens: 1` before any output."""

    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    input_tokens: int = 0
    output: int = 0
    finished_blocks: int = 0
    done: bool = False


async def next_event(body: aiohttp.StreamReader) -> dict[str, Any] | None:
    """The model's next event, empty for `[DONE]`; None at the end. Comments and pings are not events of the model."""
    name, data = "", ""
    while line := (await body.readline()).decode():
        word, _, value = line.rstrip("\r\n").partition(":")
        if word == "event":
            name = value.strip()
        elif word == "data":
            data += value.strip()
        elif not line.strip() and data:
            if name != "ping":
                return {} if data == "[DONE]" else json.loads(data)
            name, data = "", ""
    return None


class Anthropic:
    path = "/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def body(self, model: str, messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {
            "model": model,
            "max_tokens": MAX_TOKENS,
            "stream": True,
            "system": SYSTEM,
            "messages": [self._message(message) for message in messages],
            "tools": [{"name": EXEC, "description": EXEC_SAYS, "input_schema": EXEC_SCHEMA}],
        }

    def _message(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["role"] == "tool":
            results = [
                {"type": "tool_result", "tool_use_id": result["id"], "content": result["text"]}
                for result in message["results"]
            ]
            return {"role": "user", "content": results}
        blocks = [{"type": "text", "text": message["text"]}] if message["text"] else []
        blocks += [
            {"type": "tool_use", "id": call["id"], "name": call["name"], "input": parsed(call["arguments"])}
            for call in message.get("calls", [])
        ]
        return {"role": message["role"], "content": blocks}

    def read(self, draft: Draft, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "message_start":
            draft.input_tokens = event["message"]["usage"]["input_tokens"]
        elif kind == "content_block_start" and event["content_block"]["type"] == "tool_use":
            draft.calls.append(ToolCall(event["content_block"]["id"], event["content_block"]["name"]))
        elif kind == "content_block_delta":
            self._delta(draft, event["delta"])
        elif kind == "content_block_stop":
            draft.finished_blocks += 1
        elif kind == "message_delta" and event["delta"]["stop_reason"] == "max_tokens":
            raise ProviderError("the reply was cut at its token limit")
        elif kind == "message_stop":
            draft.done = True
        elif kind == "error":
            raise ProviderError(f"the stream broke off: {event['error']['message']}")

    def _delta(self, draft: Draft, delta: dict[str, Any]) -> None:
        draft.output += any(delta.get(piece) for piece in ("text", "thinking", "partial_json"))
        draft.text += delta.get("text", "")
        if "partial_json" in delta:
            draft.calls[-1].arguments += delta["partial_json"]


class OpenAIChat:
    path = "/v1/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def body(self, model: str, messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
        function = {"name": EXEC, "description": EXEC_SAYS, "parameters": EXEC_SCHEMA}
        return {
            "model": model,
            "max_tokens": MAX_TOKENS,
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "system", "content": SYSTEM}]
            + [line for message in messages for line in self._lines(message)],
            "tools": [{"type": "function", "function": function}],
        }

    def _lines(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        if message["role"] == "tool":
            return [
                {"role": "tool", "tool_call_id": result["id"], "content": result["text"]}
                for result in message["results"]
            ]
        calls = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in message.get("calls", [])
        ]
        return [{"role": message["role"], "content": message["text"]} | ({"tool_calls": calls} if calls else {})]

    def read(self, draft: Draft, event: dict[str, Any]) -> None:
        if not event:  # [DONE]
            draft.done = True
            return
        if "error" in event:
            raise ProviderError(f"the stream broke off: {event['error']['message']}")
        draft.input_tokens = (event.get("usage") or {}).get("prompt_tokens", draft.input_tokens)
        for choice in event.get("choices", []):
            self._delta(draft, choice.get("delta") or {})
            if choice.get("finish_reason") not in (None, "stop", "tool_calls"):
                raise ProviderError(f"the reply is not whole: {choice['finish_reason']}")
            if choice.get("finish_reason"):
                draft.finished_blocks += bool(draft.text) + len(draft.calls)

    def _delta(self, draft: Draft, delta: dict[str, Any]) -> None:
        draft.text += delta.get("content") or ""
        for piece in delta.get("tool_calls") or []:
            if piece.get("id"):
                draft.calls.append(ToolCall(piece["id"], piece["function"]["name"]))
            draft.calls[-1].arguments += piece["function"].get("arguments") or ""
        if delta.get("content") or delta.get("tool_calls"):  # the first chunk has only a role
            draft.output += 1


Wire = Anthropic | OpenAIChat
WIRES: dict[str, Wire] = {"anthropic": Anthropic(), "openai-chat": OpenAIChat()}
