"""Agents that talk to the Realtime API by the official SDK, without and with a time limit on its events."""

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
from websockets import WebSocketException

IDLE_S = 10
TRIES = 4
STEPS = 12
COMMAND_S = 20
SHELL = {
    "type": "function",
    "name": "bash",
    "description": "Run a shell command.",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
FINAL = ("invalid_request_error", "insufficient_quota")
"""Errors that another try does not heal."""


class ModelError(Exception):
    """The model gave no whole answer; it may be asked again after `wait_s`, never if that is None."""

    def __init__(self, message: str, wait_s: float | None = 1.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s


async def sound(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Connect anew after a connection that was lost or is silent, and bring the conversation back."""
    return await _turn(message, Path(session_dir) / "session.json", f"{llm_url}/v1", key, IDLE_S)


async def waits(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """The bug: nothing limits the time for which the next event is waited, the client's own pings neither."""
    return await _turn(message, Path(session_dir) / "session.json", f"{llm_url}/v1", key, None)


async def _turn(message: str, file: Path, url: str, key: str, idle_s: float | None) -> str:
    items = json.loads(file.read_text()) if file.exists() else []
    items.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": message}]})
    try:
        for _ in range(STEPS):
            said = await _asked(items, url, key, idle_s)
            items += [_again(item) for item in said]
            calls = [item for item in said if item.type == "function_call"]
            items += [await _result(call) for call in calls]
            if not calls:
                return "\n".join(part.text for item in said for part in item.content)
        raise ModelError(f"Error: no answer after {STEPS} steps", None)
    finally:
        file.write_text(json.dumps(items))


async def _asked(items: list[Any], url: str, key: str, idle_s: float | None) -> list[Any]:
    for left in reversed(range(TRIES)):
        try:
            async with openai.AsyncOpenAI(base_url=url, api_key=key) as client:
                return await _said(client, items, idle_s)
        except (WebSocketException, TimeoutError, OSError, ValueError, ModelError) as wrong:
            wait_s = getattr(wrong, "wait_s", 1.0)
            if not left or wait_s is None:
                raise ModelError(f"Error: the model does not answer: {wrong!r}", None) from None
            await asyncio.sleep(wait_s)
    raise AssertionError


async def _said(client: Any, items: list[Any], idle_s: float | None) -> list[Any]:
    wait_s, whole = 1.0, []
    pings: Any = {"ping_interval": 20 if idle_s else None}
    connecting = client.realtime.connect(model="gpt-realtime", websocket_connection_options=pings)
    async with asyncio.timeout(idle_s) as limit, connecting as connection:
        text_only = {"type": "realtime", "output_modalities": ["text"], "tools": [SHELL]}
        await connection.session.update(session=text_only)
        for item in items:
            await connection.conversation.item.create(item=item)
        await connection.response.create()
        while True:
            event = await connection.recv()
            limit.reschedule(None if idle_s is None else asyncio.get_running_loop().time() + idle_s)
            if event.type == "response.output_item.done":
                whole.append(event.item)
            elif event.type == "rate_limits.updated":
                wait_s = event.rate_limits[0].reset_seconds
            elif event.type == "error":
                raise _error(event.error, wait_s)
            elif event.type == "response.done":
                return _whole(event.response, whole, wait_s)


def _whole(response: Any, items: list[Any], wait_s: float) -> list[Any]:
    if response.status == "failed":
        raise _error(response.status_details.error, wait_s)
    if response.status != "completed":
        raise ModelError(f"the reply is {response.status}: {response.status_details.reason}", None)
    if not response.output or [item.id for item in response.output] != [item.id for item in items]:
        raise ModelError("the reply is empty or has lost an item")
    return list(response.output)


def _error(error: Any, wait_s: float) -> ModelError:
    final = error.type in FINAL or error.code in FINAL or wait_s > 60
    return ModelError(f"{error.type}: {error.message}", None if final else wait_s)


def _again(item: Any) -> dict[str, Any]:
    if item.type == "function_call":
        return {"type": item.type, "call_id": item.call_id, "name": item.name, "arguments": item.arguments}
    parts = [{"type": "output_text", "text": part.text} for part in item.content]
    return {"type": "message", "role": "assistant", "content": parts}


async def _result(call: Any) -> dict[str, Any]:
    try:
        command = json.loads(call.arguments)["command"]
        both = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
        program = await asyncio.create_subprocess_shell(command, **both)
        output = await _output(program)
    except (ValueError, KeyError, TypeError) as wrong:
        output = f"Error: {wrong!r}"
    return {"type": "function_call_output", "call_id": call.call_id, "output": output}


async def _output(program: asyncio.subprocess.Process) -> str:
    try:
        async with asyncio.timeout(COMMAND_S):
            return (await program.communicate())[0].decode(errors="replace")
    except TimeoutError:
        program.kill()
        return f"Error: the command did not end within {COMMAND_S} s"
