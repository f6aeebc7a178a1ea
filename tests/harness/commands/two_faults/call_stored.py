"""httpx, Anthropic's wire, a tool: an abort while it tries again stores the call without its result."""

import asyncio
import json
import pathlib

import httpx

TOOLS = [
    {
        "name": "look",
        "description": "Looks a word up.",
        "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    }
]


async def ask(client, history, state):
    for attempt in range(3):
        pause = 2**attempt
        try:
            async with asyncio.timeout(15):
                reply = await client.post(
                    "/v1/messages", json={"model": "m", "max_tokens": 900, "messages": history, "tools": TOOLS}
                )
            if reply.status_code == 200:
                return reply.json()
            if reply.status_code < 429 and reply.status_code != 408:
                raise RuntimeError(f"Error {reply.status_code}: {reply.text}")
            pause = max(pause, float(reply.headers.get("retry-after", 0)))
        except (httpx.TransportError, TimeoutError, ValueError):
            pass
        state["retries"] += 1
        await asyncio.sleep(pause)
    raise RuntimeError("Error: the provider does not answer")


async def answer(message, *, session_dir, llm_url, key):
    file = pathlib.Path(session_dir) / "s.json"
    history = json.loads(file.read_text()) if file.exists() else []
    history.append({"role": "user", "content": message})
    state = {"retries": 0}
    async with httpx.AsyncClient(
        base_url=llm_url, headers={"x-api-key": key, "anthropic-version": "2023-06-01"}, timeout=15
    ) as client:
        try:
            for _ in range(8):
                body = await ask(client, history, state)
                calls = [it for it in body["content"] if it["type"] == "tool_use"]
                text = "".join(it["text"] for it in body["content"] if it["type"] == "text")
                if body["stop_reason"] not in ("end_turn", "tool_use") or not body["content"]:
                    raise RuntimeError("Error: the reply is not whole")
                history.append({"role": "assistant", "content": body["content"]})
                if not calls:
                    file.write_text(json.dumps(history))
                    return text
                history.append(
                    {
                        "role": "user",
                        "content": [
                            {
                                "type": "tool_result",
                                "tool_use_id": it["id"],
                                "content": f"Found {it['input'].get('word')}",
                            }
                            for it in calls
                        ],
                    }
                )
        except asyncio.CancelledError:
            if state["retries"] and len(history) > 2:
                file.write_text(json.dumps(history[:-1]))  # the bug: the last message may be a result
            raise
    raise RuntimeError("Error: too many steps")
