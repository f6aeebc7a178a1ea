"""Agents that are async functions, and differ in what they do once a command has run."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import aiohttp

SHELL = {
    "name": "bash",
    "description": "Runs a command.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
MOST_ROUNDS = 25


async def sound(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Sends the result, and answers."""
    file = Path(session_dir) / "session.json"
    said = json.loads(file.read_text()) if file.exists() else []
    said.append({"role": "user", "content": message})
    for _ in range(MOST_ROUNDS):
        reply = await _asked(said, llm_url, key)
        said.append({"role": "assistant", "content": reply})
        results = [await _result(block) for block in reply if block["type"] == "tool_use"]
        if not results:
            break
        said.append({"role": "user", "content": results})
    file.write_text(json.dumps(said))
    return str(said[-1]["content"][0]["text"])


async def ends_without_a_word(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Says only what stands beside a call, and its log is always the same."""
    print("began", file=sys.stderr)
    text, calls = await _first_reply(message, llm_url, key)
    return text if not calls else ""


async def waits_for_ever(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Waits for somebody who fetches the result."""
    text, calls = await _first_reply(message, llm_url, key)
    if calls:
        await asyncio.Event().wait()
    return text


async def forgets_the_result(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Begins each round with the message alone."""
    for _ in range(MOST_ROUNDS):
        text, calls = await _first_reply(message, llm_url, key)
        if not calls:
            return text
    return "Stopped: the limit of 25 rounds is reached."


async def asks_for_leave(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Ends its turn with a question to its user, who would answer in the next message."""
    text, calls = await _first_reply(message, llm_url, key)
    return "I would like to run a command. Is that right?" if calls else text


async def tells_why_in_its_log(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Has no answer, and its log says why in words that are no error."""
    print("began", file=sys.stderr)
    text, calls = await _first_reply(message, llm_url, key)
    if calls:
        print("no output, as the command needs an entry in the settings", file=sys.stderr)
    return "" if calls else text


async def tells_in_its_own_words(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Tells its model of a result in words of its own, for ever."""
    told = message
    for _ in range(MOST_ROUNDS):
        text, calls = await _first_reply(told, llm_url, key)
        if not calls:
            return text
        told += " The command has greeted us."
    return ""


async def _first_reply(message: str, llm_url: str, key: str) -> tuple[str, bool]:
    """The text of the reply to a message, and whether the model calls a tool; the commands have run then."""
    reply = await _asked([{"role": "user", "content": message}], llm_url, key)
    results = [await _result(block) for block in reply if block["type"] == "tool_use"]
    return "".join(block["text"] for block in reply if block["type"] == "text"), bool(results)


async def _asked(said: list[Any], llm_url: str, key: str) -> list[dict[str, Any]]:
    body = {"model": "claude-sonnet-4-6", "max_tokens": 500, "messages": said, "tools": [SHELL]}
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=50)) as client,
        client.post(f"{llm_url}/v1/messages", json=body, headers=headers) as reply,
    ):
        content: list[dict[str, Any]] = (await reply.json())["content"]
        return content


async def _result(call: dict[str, Any]) -> dict[str, Any]:
    pipe = asyncio.subprocess.PIPE
    program = await asyncio.create_subprocess_shell(call["input"]["command"], stdout=pipe, stderr=pipe)
    printed, _ = await program.communicate()
    return {"type": "tool_result", "tool_use_id": call["id"], "content": printed.decode() or "(nothing)"}
