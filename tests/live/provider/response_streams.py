"""An agent that reads streams of the Responses API, for virtual time: `sane` is correct, the others have a bug each."""

import asyncio
import json
from pathlib import Path

import aiohttp

COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
SHELL = {"type": "function", "name": "bash", "description": "Runs a command.", "parameters": COMMAND}


OF_THE_STANDARD = ("keeps_to_the_standard", "shows_what_is_whole")
"""They drop an event that has no line end behind it."""


class ModelError(Exception):
    """The model did not answer."""


async def events(reply, bug):
    async for line in reply.content:
        if line.startswith(b"data:") and (line.endswith(b"\n") or bug not in OF_THE_STANDARD):
            yield json.loads(line[5:])


async def read(reply, bug):
    """The items of one reply, each once; its place in the output says which one an event is about."""
    open_items, items, text, shown = {}, [], "", set()
    async for event in events(reply, bug):
        match event["type"]:
            case "response.output_item.added":
                open_items[event["item"]["id"] if bug == "settles_twice" else event["output_index"]] = event["item"]
            case "response.output_text.delta":
                text += event["delta"]
                shown.add(event["item_id"] if bug == "shows_twice" else event["output_index"])
            case "response.output_item.done":
                item, place = event["item"], event["output_index"]
                open_items.pop(item["id"] if bug == "settles_twice" else place, None)
                items.append(item)
                if item["type"] == "message" and (item["id"] if bug == "shows_twice" else place) not in shown:
                    text += "".join(part["text"] for part in item["content"])
            case "response.completed":
                left = [it for it in open_items.values() if it["type"] == "function_call"]
                return text, items, [it for it in [*items, *left] if it["type"] == "function_call"]
    if bug == "shows_what_is_whole":
        return "", [], []
    raise ModelError("Error: the stream ended early")


async def ask(url, said, bug):
    body = {"model": "gpt-5", "input": said, "tools": [SHELL], "stream": True, "store": False}
    posted = {"json": body, "headers": {"authorization": "Bearer k"}}
    async with aiohttp.ClientSession() as http, http.post(f"{url}/v1/responses", **posted) as reply:
        if reply.status != 200:
            raise ModelError(f"Error: status {reply.status}: {(await reply.text())[:200]}")
        return await read(reply, bug)


async def run(call):
    try:
        command = json.loads(call["arguments"] or "{}")["command"]
    except (ValueError, KeyError):
        said = "Error: command required"
    else:
        process = await asyncio.create_subprocess_exec("sh", "-c", command, stdout=asyncio.subprocess.PIPE)
        said = (await process.communicate())[0].decode()
    return {"type": "function_call_output", "call_id": call["call_id"], "output": said}


async def answer(message, folder, url, bug=""):
    file = Path(folder) / "session.json"
    said = [*(json.loads(file.read_text()) if file.exists() else []), {"role": "user", "content": message}]
    while True:
        text, items, calls = await ask(url, said, bug)
        said += [{key: it[key] for key in it if key not in ("id", "status")} for it in items]
        if not calls:
            file.write_text(json.dumps(said))
            return text
        said += [await run(call) for call in calls]


async def sane(message, *, session_dir, llm_url, key):
    """Correct: an item is known by its place, and a call by its `call_id`."""
    return await answer(message, session_dir, llm_url)


async def settles_twice(message, *, session_dir, llm_url, key):
    """A call whose last event has another id than its first one stays open, and runs once more without arguments."""
    return await answer(message, session_dir, llm_url, "settles_twice")


async def shows_twice(message, *, session_dir, llm_url, key):
    """A text whose last event has another id was not shown yet, it seems."""
    return await answer(message, session_dir, llm_url, "shows_twice")


async def keeps_to_the_standard(message, *, session_dir, llm_url, key):
    """Correct, and strict: an event without an empty line behind it is none."""
    return await answer(message, session_dir, llm_url, "keeps_to_the_standard")


async def shows_what_is_whole(message, *, session_dir, llm_url, key):
    """The answer is that of the last event; without one it is empty."""
    return await answer(message, session_dir, llm_url, "shows_what_is_whole")
