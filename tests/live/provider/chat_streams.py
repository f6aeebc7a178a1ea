"""An agent that reads streams of chat completions, for virtual time: `sane` is correct, the others have a bug each."""

import asyncio
import json
from pathlib import Path

import aiohttp

COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
SHELL = {"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": COMMAND}}


class ModelError(Exception):
    """The model did not answer."""


class BrokenError(ModelError):
    """Its reply broke off."""


async def chunks(reply):
    async for line in reply.content:
        data = line.strip().removeprefix(b"data:").strip() if line.startswith(b"data:") else b""
        if data == b"[DONE]":
            return
        if data:
            yield json.loads(data)


async def read(reply, bug):
    """The text and the tool calls of one reply."""
    text, calls, place = "", {}, ""
    async for chunk in chunks(reply):
        if "error" in chunk and bug != "takes any end":
            raise BrokenError(f"Error: the model broke off: {chunk['error']['message']}")
        if not chunk["choices"] and bug != "takes the first choice":
            continue
        delta = chunk["choices"][0]["delta"]
        text += delta.get("content") or ""
        for part in delta.get("tool_calls") or []:
            place = place_of(part, calls, place, bug)
            call = calls.setdefault(place, {"id": "", "name": "", "arguments": ""})
            of = {"id": part.get("id", call["id"]), "name": part["function"].get("name", call["name"])}
            call |= of if bug == "takes the last name" else {key: call[key] or of[key] or "" for key in of}
            call["arguments"] += part["function"].get("arguments") or ""
    named = [call for call in calls.values() if call["name"] or bug != "finds a call by its id"]
    if not text and not named and bug != "says nothing":
        raise BrokenError("Error: the reply is empty")
    return text, [call for call in named if bug != "keeps what it can read" or readable(call)]


def place_of(part, calls, last, bug):
    """The key of a part's call: its index, and the number of the calls before it with the same index."""
    if bug == "finds a call by its id":
        return part.get("id", last)
    if bug == "goes on with the latest call":
        return part.get("id") or last
    if bug in ("makes one call of an index", "keeps what it can read"):
        return part["index"]
    begun = [place for place in calls if place[0] == part["index"]]
    goes_on = bool(begun) and part.get("id") in (None, "", calls[begun[-1]]["id"])
    return begun[-1] if goes_on else (part["index"], len(begun))


def readable(call):
    """Whether its arguments begin with JSON; only that is kept of them."""
    try:
        _, end = json.JSONDecoder().raw_decode(call["arguments"])
    except ValueError:
        return False
    call["arguments"] = call["arguments"][:end]
    return True


async def ask(url, said, bug):
    body = {"model": "gpt-5", "messages": said, "tools": [SHELL], "stream": True}
    posted = {"json": body, "headers": {"authorization": "Bearer k"}}
    async with aiohttp.ClientSession() as http, http.post(f"{url}/v1/chat/completions", **posted) as reply:
        if reply.status != 200:
            raise ModelError(f"Error: status {reply.status}")
        return await read(reply, bug)


async def tried(url, said, bug):
    """The reply, or that of a second try."""
    try:
        return await ask(url, said, bug)
    except BrokenError:
        return await ask(url, said, bug)


async def run(call):
    if call["name"] != "bash":
        raise ModelError(f"Error: there is no tool {call['name']}")
    try:
        command = json.loads(call["arguments"] or "{}")["command"]
    except (ValueError, KeyError):
        return {"role": "tool", "tool_call_id": call["id"], "content": "Error: no JSON with a command"}
    process = await asyncio.create_subprocess_exec("sh", "-c", command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return {"role": "tool", "tool_call_id": call["id"], "content": out.decode()}


async def answer(message, folder, url, bug=""):
    file = Path(folder) / "session.json"
    said = [*(json.loads(file.read_text()) if file.exists() else []), {"role": "user", "content": message}]
    while True:
        text, calls = await tried(url, said, bug)
        named = [
            {"id": it["id"], "type": "function", "function": {key: it[key] for key in it if key != "id"}}
            for it in calls
        ]
        said.append({"role": "assistant", "content": text or None, **({"tool_calls": named} if named else {})})
        if not calls:
            file.write_text(json.dumps(said))
            return text
        said += [await run(call) for call in calls]


async def sane(message, *, session_dir, llm_url, key):
    """Correct: a name and an id that come once stay."""
    return await answer(message, session_dir, llm_url)


async def takes_the_last_name(message, *, session_dir, llm_url, key):
    """A name that is null in a later chunk replaces the first one."""
    return await answer(message, session_dir, llm_url, "takes the last name")


async def takes_the_first_choice(message, *, session_dir, llm_url, key):
    """Each chunk must have a choice."""
    return await answer(message, session_dir, llm_url, "takes the first choice")


async def finds_a_call_by_its_id(message, *, session_dir, llm_url, key):
    """An id that is empty in a later chunk is another call, which has no name and is left out."""
    return await answer(message, session_dir, llm_url, "finds a call by its id")


async def goes_on_with_the_latest_call(message, *, session_dir, llm_url, key):
    """A part without an id belongs to the call that began last."""
    return await answer(message, session_dir, llm_url, "goes on with the latest call")


async def makes_one_call_of_an_index(message, *, session_dir, llm_url, key):
    """What has one index is one call, as for the SDK of OpenAI: the model reads that its arguments are wrong."""
    return await answer(message, session_dir, llm_url, "makes one call of an index")


async def keeps_what_it_can_read(message, *, session_dir, llm_url, key):
    """Of the arguments of two calls with one index only the first ones are read; the others are lost without a word."""
    return await answer(message, session_dir, llm_url, "keeps what it can read")


async def says_nothing(message, *, session_dir, llm_url, key):
    """A reply without a choice is an empty answer."""
    return await answer(message, session_dir, llm_url, "says nothing")


async def takes_any_end(message, *, session_dir, llm_url, key):
    """A choice that ends is whole, also if it ends with an error."""
    return await answer(message, session_dir, llm_url, "takes any end")
