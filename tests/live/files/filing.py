"""Agents with tools of their own for files: correct ones of several shapes, and one for each bug.

They are async functions with OpenAI's wire. `flat` has tools as Claude Code has, `listed` takes a list of edits as
pi does, `one_tool` has one tool with commands as OpenHands has, `patching` applies patches as Codex does.
"""

import asyncio
import base64
import html
import json
import os
import re
import shutil
import stat
import struct
from pathlib import Path

import aiohttp

CALL_S, TOOL_S, ROUNDS, TRIES, MOST_BYTES, SHOWN = 10, 8, 16, 4, 200_000, 20_000
NO_LIMIT = {"opens-pipes", "follows-links"}
"""With these its tools have no limit of time."""
PASSING = (429, 500, 502, 503, 529)
STRING = {"type": "string"}
KNOWN = {}
"""What it has read, by path."""
TIMES = {}
"""The times of the last changes that it knows of, by path."""


class ModelError(Exception):
    """The model did not answer."""


class ToolError(Exception):
    """A tool failed; the model reads why."""


def text_or_nothing(path):
    """What stands in a file; a search goes on behind one that cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def tool(name, **parameters):
    schema = {"type": "object", "properties": parameters, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}


FLAT = [
    tool("Read", file_path=STRING),
    tool("Write", file_path=STRING, content=STRING),
    tool("Edit", file_path=STRING, old_string=STRING, new_string=STRING),
    tool("Grep", pattern=STRING, path=STRING),
]
EDIT = {"type": "object", "properties": {"oldText": STRING, "newText": STRING}, "required": ["oldText", "newText"]}
LISTED = [
    tool("read", path=STRING),
    tool("write", path=STRING, content=STRING),
    tool("edit", path=STRING, edits={"type": "array", "items": EDIT}),
]
COMMANDS = {"type": "string", "enum": ["view", "create", "str_replace", "insert", "undo_edit"]}
ONE_TOOL = [tool("str_replace_editor", command=COMMANDS, path=STRING)]
ONE_TOOL[0]["function"]["parameters"]["properties"] |= {"file_text": STRING, "old_str": STRING, "new_str": STRING}
PATCHING = [tool("read_file", path=STRING), tool("apply_patch", input=STRING)]


class Agent:
    """A session in a file, a model with retries, tools with a time limit."""

    tools = FLAT

    def __init__(self, folder, url, bugs):
        self.file, self.url, self.bugs = Path(folder) / "session.json", url, frozenset(bugs)
        self.said = json.loads(self.file.read_text()) if self.file.exists() else []

    def keep(self):
        fresh = self.file.with_suffix(".new")
        try:
            fresh.write_text(json.dumps(self.said))
        except OSError:
            if "hides-failures" in self.bugs:
                return
            raise
        fresh.replace(self.file)

    async def answer(self, message):
        self.said.append({"role": "user", "content": message})
        for _ in range(ROUNDS):
            reply = await self.asked()
            self.said.append(reply)
            calls = reply.get("tool_calls", [])
            if not calls:
                self.keep()
                return reply["content"]
            await self.run_all(calls)
            self.keep()
        raise ModelError("stopped after its limit of 16 rounds")

    async def run_all(self, calls):
        if "writes-at-once" in self.bugs:
            results = await asyncio.gather(*map(self.run, calls))
        else:
            results = [await self.run(call) for call in calls]
        for call, text in zip(calls, results, strict=True):
            self.said.append({"role": "tool", "tool_call_id": call["id"], "content": text})

    async def asked(self):
        wrong = ""
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(0.5 * 2**attempt)
            try:
                return await self.attempt()
            except (aiohttp.ClientError, TimeoutError, ValueError) as failure:
                wrong = f"{type(failure).__name__} {failure}"
        raise ModelError(f"the model did not answer: {wrong}")

    async def attempt(self):
        body = {"model": "gpt-5", "messages": self.said, "tools": self.tools, "stream": True}
        patience = aiohttp.ClientTimeout(total=CALL_S)
        async with (
            aiohttp.ClientSession(timeout=patience) as client,
            client.post(f"{self.url}/v1/chat/completions", json=body, headers={"authorization": "Bearer k"}) as reply,
        ):
            if reply.status in PASSING:
                raise ValueError(f"HTTP {reply.status}")
            if reply.status != 200:
                raise ModelError(f"HTTP {reply.status} {await reply.text()}")
            return await self.read(reply)

    async def read(self, reply):
        words, calls, reason = "", {}, ""
        try:
            async for line in reply.content:
                if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                    continue
                choice = json.loads(line[6:])["choices"][0]
                reason = choice.get("finish_reason") or reason
                words += choice["delta"].get("content") or ""
                for part in choice["delta"].get("tool_calls", []):
                    call = calls.setdefault(part["index"], {"id": "", "name": "", "arguments": ""})
                    call["id"] += part.get("id") or ""
                    for key in ("name", "arguments"):
                        call[key] += part.get("function", {}).get(key) or ""
        except (aiohttp.ClientError, TimeoutError):
            if "runs-halves" not in self.bugs or not calls:
                raise
            reason = "length"
        if reason in ("length", "content_filter") and "runs-halves" not in self.bugs:
            raise ModelError(f"the reply was cut ({reason})")
        if not reason:
            raise ValueError("the reply has no end")
        called = [
            {"id": it["id"], "type": "function", "function": {"name": it["name"], "arguments": closed(it["arguments"])}}
            for it in calls.values()
        ]
        if not (words.strip() or called):
            raise ValueError("the reply is empty")
        return {"role": "assistant", "content": words} | ({"tool_calls": called} if called else {})

    async def run(self, call):
        name, given = call["function"]["name"], json.loads(call["function"]["arguments"])
        try:
            return await asyncio.wait_for(self.perform(name, given), 10_000 if self.bugs & NO_LIMIT else TOOL_S)
        except TimeoutError:
            return f"Error: {name} was stopped after {TOOL_S} s."
        except (ToolError, OSError) as wrong:
            if "hides-failures" in self.bugs:
                return f"The file {given.get('file_path', '')} has been updated."
            if "failed-tool-ends-the-turn" in self.bugs:
                raise
            if "hides-why" in self.bugs:
                return "Error: the tool has failed"
            return f"Error: {wrong}"

    async def perform(self, name, given):
        if name == "Read":
            return await self.text_of(given["file_path"])
        if name == "Grep":
            return await self.found(given["pattern"], given["path"])
        if name == "Write":
            return await self.write(given["file_path"], given.get("content", ""))
        return await self.edit(given["file_path"], [(given["old_string"], given["new_string"])])

    async def files_in(self, folder):
        for place, _, names in os.walk(folder, followlinks="follows-links" in self.bugs):
            await asyncio.sleep(0.01)  # in virtual time a walk without an end would stop the clock
            for name in sorted(names):
                yield Path(place, name)

    async def found(self, pattern, folder):
        lines = []
        async for path in self.files_in(folder):
            if not path.is_file() and "opens-pipes" not in self.bugs:
                continue
            if stat.S_ISFIFO(path.stat().st_mode):
                await asyncio.sleep(10_000)
            lines += [f"{path.name}: {line}" for line in text_or_nothing(path).splitlines() if pattern in line]
        return "\n".join(lines if "reads-all" in self.bugs else lines[:100]) or "No match."

    async def text_of(self, path):
        found = Path(path).stat()
        if "opens-pipes" in self.bugs and stat.S_ISFIFO(found.st_mode):
            await asyncio.sleep(10_000)  # in virtual time a blocking read would stop the clock
        if not stat.S_ISREG(found.st_mode):
            raise ToolError(f"{path} is no regular file")
        if found.st_size > MOST_BYTES and "reads-all" not in self.bugs:
            raise ToolError(f"{path} has {found.st_size} bytes; read a part of it")
        data = Path(path).read_bytes()
        KNOWN[path] = data
        TIMES[path] = found.st_mtime_ns
        if "decodes-strictly" in self.bugs:
            return data.decode()
        if b"\0" in data and "shows-bytes" not in self.bugs:
            raise ToolError(f"{path} is a binary file")
        text = data.decode("utf-8", "surrogateescape" if "shows-bytes" in self.bugs else "replace")
        return text if "reads-all" in self.bugs else text[:SHOWN]

    async def write(self, path, text):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        if "loses-writes" in self.bugs and Path(path).exists():
            return f"Wrote {path}."
        if "skips-empty-files" in self.bugs and Path(path).exists() and not Path(path).read_bytes():
            return f"Wrote {path}."
        self.store(path, text.encode().decode("latin-1").encode() if "writes-mojibake" in self.bugs else text.encode())
        return f"Wrote {path}."

    def store(self, path, data):
        if "writes-in-place" in self.bugs:
            Path(path).write_bytes(data)
            return
        end = Path(path) if "forgets-modes" in self.bugs else Path(path).resolve()
        fresh = Path(f"{end}.new")
        try:
            fresh.write_bytes(data)
            if end.exists() and "forgets-modes" not in self.bugs:
                shutil.copymode(end, fresh)
        except OSError:
            fresh.unlink()
            raise
        fresh.replace(end)

    async def edit(self, path, edits):
        data = self.before(path)
        if "compares-times" in self.bugs and TIMES.get(path) != Path(path).stat().st_mtime_ns:
            raise ToolError(f"{path} has been modified since it was read; read it again")
        if "writes-at-once" in self.bugs:
            await asyncio.sleep(0.01)
        fallback = "replace" if "guesses-the-encoding" in self.bugs else "surrogateescape"
        text = data.decode("utf-8", fallback)
        for old, new in self.taken(edits):
            text = self.replaced(path, text, old, new)
        if "takes-nothing-for-missing" in self.bugs and "" in [new for _, new in edits]:
            raise ToolError("the new text is missing")
        if "forgets-carriage-returns" in self.bugs:
            text = text.replace("\r\n", "\n")
        self.store(path, text.encode("utf-8", "surrogateescape"))
        if "looks-again-after-the-edit" in self.bugs and not all(old in text for old, _ in edits):
            raise ToolError("the old text was not found")
        TIMES[path] = Path(path).stat().st_mtime_ns
        if "edits-what-it-remembers" in self.bugs:
            KNOWN[path] = Path(path).read_bytes()
        return f"Edited {path}."

    def taken(self, edits):
        """The edits as they are, or with HTML's signs for characters read as such."""
        if "decodes-entities" in self.bugs:
            return [(html.unescape(old), html.unescape(new)) for old, new in edits]
        return edits

    def before(self, path):
        if "edits-what-it-remembers" in self.bugs and path in KNOWN:
            return KNOWN[path]
        return Path(path).read_bytes()

    def replaced(self, path, text, old, new):
        if "\r\n" in text and old not in text and "matches-carriage-returns" not in self.bugs:
            old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
        if old not in text:
            if "says-nothing-of-no-match" in self.bugs:
                return text
            raise ToolError(f"the old text is not in {path}")
        if old and text.count(old) > 1 and "edits-the-first-place" not in self.bugs:
            raise ToolError(f"the old text stands at {text.count(old)} places of {path}; send more of it")
        if "patterns-in-new-text" in self.bugs:
            return text.replace(old, new.replace("$&", old), 1)
        if "edits-past-the-end" in self.bugs:
            return text[: text.index(old)] + new
        return text.replace(old, new, 1)


class Listed(Agent):
    """Takes a list of edits."""

    tools = LISTED

    async def perform(self, name, given):
        if name == "read":
            return await self.text_of(given["path"])
        if name == "write":
            return await self.write(given["path"], given["content"])
        return await self.edit(given["path"], [(it["oldText"], it["newText"]) for it in given["edits"]])


class OneTool(Agent):
    """Has one tool with commands."""

    tools = ONE_TOOL

    async def perform(self, name, given):
        if given["command"] == "view":
            return await self.text_of(given["path"])
        if given["command"] == "create":
            return await self.write(given["path"], given["file_text"])
        return await self.edit(given["path"], [(given["old_str"], given["new_str"])])


class Patching(Agent):
    """Applies patches."""

    tools = PATCHING

    async def perform(self, name, given):
        if name == "read_file":
            return await self.text_of(given["path"])
        head, *lines = given["input"].splitlines()[1:-1]
        path = head.partition(": ")[2]
        if head.startswith("*** Add File"):
            return await self.write(path, "".join(f"{line[1:]}\n" for line in lines))
        old, new = ("".join(f"{line[1:]}\n" for line in lines if line[0] == sign) for sign in "-+")
        return await self.edit(path, [(old, new)])


class Looking(Agent):
    """Shows pictures to its model, on Anthropic's wire: one that is fit for it, or any with the name of a picture."""

    async def attempt(self):
        read = FLAT[0]["function"]
        tools = [{"name": "Read", "description": "Reads a file.", "input_schema": read["parameters"]}]
        body = {"model": "claude-sonnet-4-5", "max_tokens": 2000, "messages": self.said, "tools": tools}
        headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=CALL_S)) as client,
            client.post(f"{self.url}/v1/messages", json=body, headers=headers) as reply,
        ):
            if reply.status != 200:
                raise ModelError(f"HTTP {reply.status} {await reply.text()}")
            return {"role": "assistant", "content": (await reply.json())["content"]}

    async def answer(self, message):
        self.said.append({"role": "user", "content": message})
        while True:
            self.keep()
            self.said.append(await self.asked())
            calls = [part for part in self.said[-1]["content"] if part["type"] == "tool_use"]
            if not calls:
                self.keep()
                return self.said[-1]["content"][-1]["text"]
            results = [{"type": "tool_result", "tool_use_id": it["id"], "content": self.shown(it)} for it in calls]
            self.said.append({"role": "user", "content": results})

    def shown(self, call):
        path = Path(call["input"]["file_path"])
        if not path.is_file():
            return f"Error: {path} is no file."
        data = path.read_bytes()
        if "sends-any-picture" not in self.bugs and not (data.startswith(b"\x89PNG") and len(data) < 3_000_000):
            return "Error: this is no picture that a model can be shown."
        if "sends-any-picture" not in self.bugs and max(struct.unpack(">II", data[16:24])) > 2000:
            return "Error: this picture is too wide."
        if path.suffix == ".pdf":
            source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(data).decode()}
            return [{"type": "document", "source": source}]
        picture = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode()}
        return [{"type": "image", "source": picture}]


def closed(arguments):
    """The arguments of a call; those that are cut get an end, as in programs that mend JSON."""
    try:
        json.loads(arguments)
    except ValueError:
        return json.dumps(dict(re.findall(r'"(\w+)": ?"([^"]*)', arguments)))
    return arguments


def agent(kind, *bugs):
    async def answer(message, *, session_dir, llm_url):
        return await kind(session_dir, llm_url, bugs).answer(message)

    return answer


flat, listed, one_tool, patching, looking = (agent(kind) for kind in (Agent, Listed, OneTool, Patching, Looking))
sends_any_picture = agent(Looking, "sends-any-picture")
BUGS = (
    "compares-times",
    "writes-at-once",
    "writes-in-place",
    "runs-halves",
    "hides-failures",
    "failed-tool-ends-the-turn",
    "opens-pipes",
    "reads-all",
    "decodes-strictly",
    "shows-bytes",
    "loses-writes",
    "skips-empty-files",
    "edits-what-it-remembers",
    "says-nothing-of-no-match",
    "decodes-entities",
    "writes-mojibake",
    "patterns-in-new-text",
    "edits-past-the-end",
    "guesses-the-encoding",
    "forgets-carriage-returns",
    "takes-nothing-for-missing",
    "matches-carriage-returns",
    "follows-links",
    "edits-the-first-place",
    "forgets-modes",
    "looks-again-after-the-edit",
    "hides-why",
)
for bug in BUGS:
    globals()[bug.replace("-", "_")] = agent(Agent, bug)
