"""Agents of a shop: two tools of their own, and no shell."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp

ORDER = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
TOOLS = [
    {"name": "look_up_order", "description": "Reads an order.", "input_schema": ORDER},
    {"name": "refund_order", "description": "Pays an order back.", "input_schema": ORDER},
]
MOST_ROUNDS = 20
Messages = list[dict[str, Any]]


class RefusedError(Exception):
    """The provider has refused a request."""


async def sound(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Sends each result, stops after some rounds, and forgets a turn that failed."""
    said = _read(session_dir)
    try:
        answer = await _rounds(said, message, llm_url, key)
    except (RefusedError, aiohttp.ClientError, TimeoutError, ValueError) as wrong:
        return f"Error: the model cannot be reached ({wrong or type(wrong).__name__})"
    _write(session_dir, said)
    return answer


async def stores_a_call_alone(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Stores what the model said before the result is there."""
    said = _read(session_dir)
    try:
        answer = await _rounds(said, message, llm_url, key)
    except (RefusedError, aiohttp.ClientError, TimeoutError, ValueError) as wrong:
        _write(session_dir, said[:-1])
        return f"Error: the model cannot be reached ({wrong or type(wrong).__name__})"
    _write(session_dir, said)
    return answer


async def sends_one_result(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Runs the first call of a reply only."""
    said = _read(session_dir)
    try:
        answer = await _rounds(said, message, llm_url, key, most_calls=1)
    except (RefusedError, aiohttp.ClientError, TimeoutError) as wrong:
        return f"Error: the model cannot be reached ({wrong or type(wrong).__name__})"
    _write(session_dir, said)
    return answer


async def has_no_limit(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Goes on as long as the model calls tools."""
    said = _read(session_dir)
    answer = await _rounds(said, message, llm_url, key, most_rounds=10_000)
    _write(session_dir, said)
    return answer


async def _rounds(
    said: Messages, message: str, llm_url: str, key: str, most_calls: int = 99, most_rounds: int = MOST_ROUNDS
) -> str:
    said.append({"role": "user", "content": message})
    for _ in range(most_rounds):
        content = await _asked(said, llm_url, key)
        said.append({"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        if not calls:
            return "".join(block["text"] for block in content) or "Error: the model gave no answer"
        said.append({"role": "user", "content": [_result(call) for call in calls[:most_calls]]})
    raise ValueError(f"stopped after {most_rounds} rounds of tools")


def _result(call: dict[str, Any]) -> dict[str, Any]:
    known = call["name"] in {tool["name"] for tool in TOOLS} and isinstance(call["input"], dict)
    order = call["input"].get("order") if known else None
    words = f"order {order}: on its way" if isinstance(order, str) else "expected a tool that exists, and an order"
    return {"type": "tool_result", "tool_use_id": call["id"], "content": words, "is_error": not isinstance(order, str)}


async def _asked(said: Messages, llm_url: str, key: str) -> list[dict[str, Any]]:
    body = {"model": "claude-sonnet-4-6", "max_tokens": 500, "messages": said, "tools": TOOLS}
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    await asyncio.sleep(0)
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=50)) as client,
        client.post(f"{llm_url}/v1/messages", json=body, headers=headers) as reply,
    ):
        told = await reply.json()
        if reply.status != 200:
            raise RefusedError(f"status {reply.status}: {told['error']['message']}")
        content: list[dict[str, Any]] = told["content"]
        return content


def _read(folder: str) -> Messages:
    file = Path(folder) / "session.json"
    said: Messages = json.loads(file.read_text()) if file.exists() else []
    return said


def _write(folder: str, said: Messages) -> None:
    (Path(folder) / "session.json").write_text(json.dumps(said))
