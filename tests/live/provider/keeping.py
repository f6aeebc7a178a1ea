"""A small agent that keeps its session as its provider's own messages: `keeping.py WIRE KEEPS URL SESSION MESSAGE`.

It asks again after an empty reply and after a broken one. With `empty` for KEEPS it keeps an empty reply as the model's
message; with `failed` it keeps a failed turn as one without content.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp

Data = dict[str, Any]
TRIES = 3
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-2.5-flash:generateContent",
}
HEADERS = {"authorization": "Bearer k", "x-api-key": "k", "x-goog-api-key": "k", "anthropic-version": "2023-06-01"}


def message(wire: str, role: str, text: str | None) -> Data:
    """A message of a wire; None is one without content."""
    if wire == "openai-chat":
        return {"role": role, "content": text}
    if wire == "anthropic":
        return {"role": role, "content": [] if text is None else [{"type": "text", "text": text}]}
    name = "model" if role == "assistant" else role
    return {"role": name, "parts": [] if text is None else [{"text": text}]}


def body(wire: str, messages: list[Data]) -> Data:
    return {"contents": messages} if wire == "gemini" else {"model": "m", "max_tokens": 999, "messages": messages}


def text_of(wire: str, reply: Data) -> str:
    if wire == "openai-chat":
        return reply["choices"][0]["message"]["content"] or ""
    parts = reply["content"] if wire == "anthropic" else reply["candidates"][0].get("content", {}).get("parts", [])
    return "".join(part["text"] for part in parts)


async def ask(wire: str, keeps: str, url: str, messages: list[Data]) -> str:
    """The first reply with words; with the bug, the first whole one."""
    why = "the model gave an empty reply"
    async with aiohttp.ClientSession() as http:
        for _ in range(TRIES):
            try:
                async with http.post(url + PATHS[wire], json=body(wire, messages), headers=HEADERS) as reply:
                    if reply.status == 400:
                        return f"Error: {await reply.text()}"
                    text = text_of(wire, json.loads(await reply.read()))
            except (aiohttp.ClientError, OSError, ValueError) as wrong:
                why = f"connection: {wrong!r}"
                continue
            if text or keeps == "empty":
                return text
    return f"Error: {why}"


async def main(argv: Sequence[str]) -> int:
    """Play one message: its answer on stdout, or an error on stderr."""
    wire, keeps, url, folder, asked = argv
    path = Path(folder) / "messages.jsonl"
    messages = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    messages.append(message(wire, "user", asked))
    answer = await ask(wire, keeps, url, messages)
    failed = answer.startswith("Error")
    lost = None if keeps == "failed" else "(The turn failed.)"
    messages.append(message(wire, "assistant", lost if failed else answer or None))
    path.write_text("".join(json.dumps(it) + "\n" for it in messages))
    print(answer or "Error: an empty reply", file=sys.stderr if failed or not answer else sys.stdout)
    return int(failed or not answer)


simulate = main

if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
