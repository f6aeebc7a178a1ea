"""Agents of a few lines on two unmodified HTTP clients. Each writes down exactly what its client saw."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import aiohttp
import httpx

TIMER_S = 30.0
"""The client's own timeout; a run with a time scale divides it."""
PAUSE_S = 5.0
"""Before the second try."""
TOOL = "lookup"
TITLE = "Give this chat a title."
"""To a message with these words belongs a call beside the conversation, without tools."""
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
HEADERS = ("content-type", "content-length", "retry-after", "transfer-encoding", "connection")
"""The headers that a client acts on."""


@dataclass
class Seen:
    """One request as its client saw it: what came, and how it ended."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    ended: str = "whole"
    """`whole`, or the class of the exception."""

    def begins(self, status: int, headers: Mapping[str, str]) -> None:
        """The head of the reply is there."""
        self.status = status
        self.headers = {name: headers[name] for name in HEADERS if name in headers}


@dataclass(frozen=True)
class Dialect:
    """How a client asks on one wire; `stream` asks for a streamed reply."""

    wire: str
    path: str
    stream: bool
    body: Callable[[str], dict[str, Any]]
    headers: Mapping[str, str]


def _messages(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def _function(text: str) -> dict[str, Any]:
    return {**_messages(text), "tools": [{"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}]}


def _anthropic(text: str) -> dict[str, Any]:
    return {**_messages(text), "max_tokens": 900, "stream": True, "tools": [{"name": TOOL, "input_schema": SCHEMA}]}


def _responses(text: str) -> dict[str, Any]:
    return {"model": "m", "input": text, "tools": [{"type": "function", "name": TOOL, "parameters": SCHEMA}]}


def _gemini(text: str) -> dict[str, Any]:
    tools = [{"functionDeclarations": [{"name": TOOL, "parameters": SCHEMA}]}]
    return {"contents": [{"role": "user", "parts": [{"text": text}]}], "tools": tools}


_BEARER = {"authorization": "Bearer k"}
ANTHROPIC = Dialect(
    "anthropic", "/v1/messages", True, _anthropic, {"x-api-key": "k", "anthropic-version": "2023-06-01"}
)
CHAT = Dialect("openai-chat", "/v1/chat/completions", True, lambda text: {**_function(text), "stream": True}, _BEARER)
RESPONSES = Dialect("openai-responses", "/v1/responses", False, _responses, _BEARER)
GEMINI = Dialect("gemini", "/v1beta/models/m:generateContent", False, _gemini, {"x-goog-api-key": "k"})
OLLAMA = Dialect("ollama", "/api/chat", True, lambda text: {**_function(text), "stream": True}, _BEARER)


class OnAiohttp:
    """A session of aiohttp, kept for all messages."""

    def __init__(self, timer_s: float) -> None:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timer_s))

    async def ask(self, url: str, body: dict[str, Any], headers: Mapping[str, str], seen: Seen) -> None:
        async with self._session.post(url, json=body, headers=headers) as response:
            seen.begins(response.status, response.headers)
            async for part in response.content.iter_any():
                seen.body += part

    async def close(self) -> None:
        await self._session.close()


@cache
def _certificates() -> ssl.SSLContext:
    """Read once: each client would read them again, and none of them needs any on plain HTTP."""
    return httpx.create_ssl_context(trust_env=False)


class OnHttpx:
    """A client of httpx, kept for all messages; its timeouts are those of single reads, so the agent has one more."""

    def __init__(self, timer_s: float) -> None:
        self._client = httpx.AsyncClient(timeout=timer_s, trust_env=False, verify=_certificates())
        self._longest_s = 1.5 * timer_s

    async def ask(self, url: str, body: dict[str, Any], headers: Mapping[str, str], seen: Seen) -> None:
        async with (
            asyncio.timeout(self._longest_s),
            self._client.stream("POST", url, json=body, headers=headers) as response,
        ):
            seen.begins(response.status_code, response.headers)
            async for part in response.aiter_raw():
                seen.body += part

    async def close(self) -> None:
        await self._client.aclose()


Library = type[OnAiohttp] | type[OnHttpx]


@dataclass(frozen=True)
class Client:
    """A client library on one dialect."""

    library: Library
    dialect: Dialect

    def __str__(self) -> str:
        """`aiohttp-anthropic`"""
        return f"{self.library.__name__.removeprefix('On').lower()}-{self.dialect.wire}"

    @asynccontextmanager
    async def opened(self, url: str, time_scale: float) -> AsyncIterator["Talk"]:
        """An agent with no request under way."""
        library = self.library(TIMER_S / time_scale)
        try:
            yield Talk(library.ask, self.dialect, url, PAUSE_S / time_scale)
        finally:
            await library.close()


CLIENTS = (
    Client(OnAiohttp, ANTHROPIC),
    Client(OnHttpx, CHAT),
    Client(OnAiohttp, OLLAMA),
    Client(OnHttpx, RESPONSES),
    Client(OnAiohttp, GEMINI),
)

Ask = Callable[[str, dict[str, Any], Mapping[str, str], Seen], Awaitable[None]]


class Talk:
    """An agent that asks once for each message, and once more if that fails."""

    def __init__(self, ask: Ask, dialect: Dialect, url: str, pause_s: float) -> None:
        self._ask, self._dialect, self._url, self._pause_s = ask, dialect, url, pause_s
        self.seen: list[list[Seen]] = []
        """By message, then by try."""

    async def say(self, text: str) -> str:
        """The answer. Raises what the client raised, or RuntimeError for a reply that is no answer."""
        self.seen.append([])
        try:
            if TITLE in text:
                await self._try(text, tools=False)
            return await self._try(text)
        except Exception:
            await asyncio.sleep(self._pause_s)
            return await self._try(text)

    async def _try(self, text: str, *, tools: bool = True) -> str:
        seen = Seen()
        self.seen[-1].append(seen)
        url = f"{self._url}{self._dialect.path}"
        try:
            body = {name: it for name, it in self._dialect.body(text).items() if tools or name != "tools"}
            await self._ask(url, body, self._dialect.headers, seen)
        except BaseException as error:
            seen.ended = type(error).__name__
            raise
        if seen.status != 200:
            raise RuntimeError(f"status {seen.status}")
        return " ".join(_strings(seen.body))


def _strings(body: bytes) -> Iterator[str]:
    """The text in a reply: of one document, of a line each, or of an event each."""
    text = body.decode("utf-8", "replace")
    for line in [text, *text.splitlines()]:
        try:
            yield from _texts(json.loads(re.sub("^data: ", "", line)))
        except ValueError:
            continue


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, str) and name in ("text", "content"):
                yield item
            else:
                yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
