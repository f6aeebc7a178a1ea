"""aiohttp, a tool: an abort while it tries again stores the call without its result."""

import asyncio
import json
import pathlib

import aiohttp

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Looks a word up.",
            "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
        },
    }
]


async def ask(client, history, state):
    for attempt in range(3):
        pause = 2**attempt
        try:
            async with client.post(
                "v1/chat/completions", json={"model": "m", "messages": history, "tools": TOOLS}
            ) as reply:
                body = await reply.json(content_type=None)
                if reply.status == 200:
                    return body["choices"][0]
                if reply.status < 429 and reply.status != 408:
                    raise RuntimeError(f"Error {reply.status}: {body}")
                pause = max(pause, float(reply.headers.get("retry-after", 0)))
        except (aiohttp.ClientError, TimeoutError, ValueError, TypeError, KeyError):
            pass
        state["retries"] += 1
        await asyncio.sleep(pause)
    raise RuntimeError("Error: the provider does not answer")


async def answer(message, *, session_dir, llm_url, key):
    file = pathlib.Path(session_dir) / "s.json"
    history = json.loads(file.read_text()) if file.exists() else []
    history.append({"role": "user", "content": message})
    state, limit = {"retries": 0}, aiohttp.ClientTimeout(total=15)
    async with aiohttp.ClientSession(
        f"{llm_url}/", timeout=limit, headers={"authorization": f"Bearer {key}"}
    ) as client:
        try:
            for _ in range(8):
                choice = await ask(client, history, state)
                said = choice["message"]
                if choice["finish_reason"] not in ("stop", "tool_calls") or not (
                    said.get("content") or said.get("tool_calls")
                ):
                    raise RuntimeError("Error: the reply is not whole")
                history.append(said)
                if not said.get("tool_calls"):
                    file.write_text(json.dumps(history))
                    return said["content"]
                for call in said["tool_calls"]:
                    try:
                        found = "Found " + json.loads(call["function"]["arguments"])["word"]
                    except (ValueError, KeyError, TypeError) as wrong:
                        found = f"Error: {wrong}"
                    history.append({"role": "tool", "tool_call_id": call["id"], "content": found})
        except asyncio.CancelledError:
            if state["retries"] and history[-1]["role"] == "tool":
                file.write_text(json.dumps(history[:-1]))  # the bug: the last message is a result
            raise
    raise RuntimeError("Error: too many steps")
