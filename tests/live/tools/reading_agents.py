"""Agents with a tool that reads pages of the web: four correct ones, and one for each bug.

They are async functions; `reading_agents.py NAME URL SESSION MESSAGE` runs one as a command, which SIGINT stops.

`careful` has a deadline for a page, and cuts what it read. `hasty` leaves the page to a client with short timers, and
calls the argument `uri`. `digests` asks the model for the point of a page. `guarded` reads no page of this machine.
"""

import asyncio
import json
import signal
import sys
from pathlib import Path

import aiohttp

TEXT = {"type": "string"}
PAGE_S, MODEL_S, ROUNDS, SHOWN = 20, 30, 8, 20_000
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}


class Reader:
    """A correct agent."""

    name, parameter = "web_fetch", "url"
    timeout = aiohttp.ClientTimeout(total=PAGE_S)

    def __init__(self, folder, url):
        self.file, self.url = Path(folder) / "messages.jsonl", url
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.said = [json.loads(line) for line in lines]

    def add(self, role, content):
        self.said.append({"role": role, "content": content})
        self.file.write_text("".join(json.dumps(it) + "\n" for it in self.said))

    async def answer(self, message):
        self.add("user", message)
        for _ in range(ROUNDS):
            parts = await self.asked(self.said)
            self.add("assistant", parts)
            calls = [part for part in parts if part["type"] == "tool_use"]
            if not calls:
                return "".join(part["text"] for part in parts)
            try:
                self.add("user", [await self.result(call) for call in calls])
            except asyncio.CancelledError:
                parts = [
                    {"type": "tool_result", "tool_use_id": it["id"], "content": "stopped by the user"} for it in calls
                ]
                self.add("user", parts)
                self.add("assistant", [{"type": "text", "text": "(stopped)"}])
                raise
        raise RuntimeError("Error: too many rounds")

    async def asked(self, messages):
        schema = {"type": "object", "properties": {self.parameter: TEXT}, "required": [self.parameter]}
        tools = [{"name": self.name, "description": "Reads a page.", "input_schema": schema}]
        body = {"model": "claude-sonnet-4-6", "max_tokens": 900, "messages": messages, "tools": tools}
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=MODEL_S)) as client,
            client.post(f"{self.url}/v1/messages", json=body, headers=HEADERS) as reply,
        ):
            said = await reply.json()
            if reply.status != 200:
                raise RuntimeError(f"Error: {reply.status} {said['error']['message']}")
            return said["content"]

    async def result(self, call):
        failed = False
        try:
            text = self.cut(await self.page(call["input"][self.parameter]))
        except (OSError, TimeoutError, aiohttp.ClientError) as wrong:
            text, failed = self.failure(wrong), True
        return {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": failed}

    async def page(self, url):
        async with aiohttp.ClientSession(timeout=self.timeout) as client, client.get(url) as page:
            text = await page.text()
            return text if page.status < 400 else self.refused(page.status, text)

    def refused(self, status, text):
        return f"status {status}: {text}"

    def failure(self, wrong):
        return f"the page cannot be read: {type(wrong).__name__} {wrong}"

    def cut(self, text):
        return text if len(text) <= SHOWN else f"{text[:SHOWN]} [the rest was cut]"


class Hasty(Reader):
    name, parameter = "read_url", "uri"
    timeout = aiohttp.ClientTimeout(total=5, sock_connect=1)


class Digesting(Reader):
    name = "WebFetch"

    async def page(self, url):
        text = self.cut(await Reader.page(self, url))
        parts = await self.asked([{"role": "user", "content": f"Summarize this page in a sentence: {text}"}])
        return "".join(part.get("text", "") for part in parts)


class Guarded(Reader):
    async def page(self, url):
        if "127.0.0.1" in url:
            raise PermissionError("addresses of this machine are not allowed")
        return await Reader.page(self, url)


class Patient(Reader):
    timeout = aiohttp.ClientTimeout(total=None)


class WaitsForBytes(Reader):
    timeout = aiohttp.ClientTimeout(total=None, sock_read=PAGE_S)


class NeverCuts(Reader):
    def cut(self, text):
        return text


class CutsOnlyPages(Reader):
    """What a server says of a failure is not cut."""

    def refused(self, status, text):
        raise OSError(f"status {status}: {text}")


class Breaks(Reader):
    """A page that fails ends the turn, and leaves a call without its result."""

    def failure(self, wrong):
        raise RuntimeError(f"Error: {wrong}")


class Deaf(Patient):
    """A stop is only looked at between two requests."""

    def __init__(self, folder, url):
        super().__init__(folder, url)
        self.stopped = False
        signal.signal(signal.SIGINT, lambda *_: setattr(self, "stopped", True))

    async def asked(self, messages):
        if self.stopped:
            raise RuntimeError("Error: stopped by the user")
        return await super().asked(messages)


def _agent(kind):
    async def answer(message: str, *, session_dir: str, llm_url: str) -> str:
        return await kind(session_dir, llm_url).answer(message)

    return answer


careful, hasty, digests, guarded = map(_agent, (Reader, Hasty, Digesting, Guarded))
patient, waits_for_bytes, never_cuts = map(_agent, (Patient, WaitsForBytes, NeverCuts))
cuts_only_pages, breaks, deaf = map(_agent, (CutsOnlyPages, Breaks, Deaf))

if __name__ == "__main__":
    name, url, folder, message = sys.argv[1:]
    try:
        print(asyncio.run(globals()[name](message, session_dir=folder, llm_url=url)))
    except KeyboardInterrupt:
        sys.exit("Error: stopped by the user")
    except RuntimeError as wrong:
        sys.exit(str(wrong))
