"""Agents whose model calls come over a WebSocket of the Responses API, by the official SDK, without and with repair."""

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
from websockets import ConnectionClosed

TERMINAL = ("response.completed", "response.incomplete", "response.failed", "error")
IDLE_S = 10


class ModelError(Exception):
    """The model gave no whole answer; it may be asked again after `wait_s`."""

    def __init__(self, message: str, wait_s: float = 1.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s


async def _ask(connection: Any, items: list[object]) -> str:
    await connection.response.create(model="gpt-5", input=items, store=False)
    while True:
        async with asyncio.timeout(IDLE_S):
            event = await connection.recv()
        if event.type in TERMINAL:
            break
    if event.type != "response.completed":
        told = getattr(event, "headers", None) or {}
        raise ModelError(f"Error: {event.type}: {getattr(event, 'error', '')}", float(told.get("retry-after", 1)))
    return str(event.response.output_text)


async def _answered(message: str, session_dir: str, llm_url: str, key: str, tries: int) -> str:
    file = Path(session_dir) / "session.json"
    items = json.loads(file.read_text()) if file.exists() else []
    items.append({"role": "user", "content": message})
    for left in reversed(range(tries)):
        try:
            client = openai.AsyncOpenAI(base_url=f"{llm_url}/v1", api_key=key)
            async with client, client.responses.connect() as connection:
                text = await _ask(connection, items)
            break
        except (ConnectionClosed, TimeoutError, OSError, ModelError) as wrong:
            if not left:
                raise ModelError(f"Error: the model's connection failed: {wrong!r}") from None
            await asyncio.sleep(getattr(wrong, "wait_s", 1.0))
    file.write_text(json.dumps([*items, {"role": "assistant", "content": text}]))
    return text


async def sound(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Connect anew after a connection that was lost, at most twice."""
    return await _answered(message, session_dir, llm_url, key, 3)


async def hangs(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """The bug: a connection that closes in the middle of a reply is waited for."""
    try:
        return await _answered(message, session_dir, llm_url, key, 1)
    except ModelError:
        await asyncio.Event().wait()
        raise


async def over_http(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Ask over HTTP."""
    async with openai.AsyncOpenAI(base_url=f"{llm_url}/v1", api_key=key, max_retries=0) as client:
        events = await client.responses.create(model="gpt-5", input=message, stream=True)
        return "".join([event.delta async for event in events if event.type == "response.output_text.delta"])
