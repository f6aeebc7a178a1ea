"""The real server on a real port, an observer that records, and a client that sees every byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeVar

import pytest

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import Fact, Point
from wedgehog.fake_llm.reply import Answer, Reply, Text
from wedgehog.fake_llm.server import FakeLLM

F = TypeVar("F")
PATIENCE_S = 10


class Recorder:
    """Records facts and points; `plan` is what the gate returns, `closed` are the points that it holds."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.points: list[Point] = []
        self.plan: Callable[[Point], Sequence[int]] = lambda point: ()
        self.closed: dict[int, asyncio.Event] = {}
        self._news = asyncio.Event()

    def saw(self, fact: Fact) -> None:
        self.facts.append(fact)
        self._news.set()

    async def gate(self, point: Point) -> Sequence[int]:
        self.points.append(point)
        self._news.set()
        if point.at in self.closed:
            await self.closed[point.at].wait()
        return self.plan(point)

    def hold(self, at: int) -> asyncio.Event:
        """Hold replies at body offset `at` until the returned event is set."""
        return self.closed.setdefault(at, asyncio.Event())

    def all(self, kind: type[F]) -> list[F]:
        return [fact for fact in self.facts if isinstance(fact, kind)]

    async def until(self, met: Callable[[], bool]) -> None:
        """Wait until a recorded fact makes `met` true."""
        async with asyncio.timeout(PATIENCE_S):
            while not met():
                self._news.clear()
                await self._news.wait()

    async def wait_for(self, kind: type[F], count: int = 1) -> list[F]:
        await self.until(lambda: len(self.all(kind)) >= count)
        return self.all(kind)


class Says:
    """A script with one answer; `heard` records the conversations."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.heard: list[Conversation] = []

    def answer(self, call: int, conversation: Conversation) -> Answer:
        self.heard.append(conversation)
        return self._answer


class StillClock:
    """A clock whose sleeps end when `ring` is called for them (at once unless `held`)."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.held = False
        self.now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        self._bell = asyncio.Semaphore(0)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.held:
            await self._bell.acquire()
        await asyncio.sleep(0)

    def wall(self) -> datetime:
        return self.now

    def ring(self) -> None:
        self._bell.release()


@dataclass
class Received:
    """A reply as it arrived; `ends` are the body offsets behind each chunk."""

    head: bytes
    raw_body: bytes
    body: bytes
    ends: tuple[int, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        return int(self.head.split()[1])

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[str, str]:
        """Kind and message of an error, in any provider's shape."""
        return told_error(self.json)

    @property
    def events(self) -> list[tuple[str, Any]]:
        """Each event's name and data; `[DONE]` and comments stay text."""
        found = []
        if "ndjson" in self.headers["content-type"]:
            return [("", json.loads(line)) for line in self.body.decode().splitlines()]
        for block in self.body.decode().replace("\r\n", "\n").split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.splitlines())
            if "" in lines:
                found.append(("", ":" + lines[""]))
            elif lines:
                data = lines["data"]
                found.append((lines.get("event", ""), data if data == "[DONE]" else json.loads(data)))
        return found


def told_error(document: Any) -> tuple[str, str]:
    error = document["error"]
    if isinstance(error, str):
        return "", error
    return error.get("type") or error["status"], error["message"]


class Wire:
    """A client connection on which every byte is seen."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.writer.get_extra_info("sockname")
        return host, port

    async def ask(
        self,
        path: str,
        document: object,
        headers: dict[str, str] | None = None,
        *,
        method: str = "POST",
        version: str = "1.1",
    ) -> None:
        """Send one request; a document of bytes goes as it is."""
        path, document = Gemini.addressed(path, document)
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        lines = {"Host": "fake", "Content-Length": str(len(body)), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.writer.write(f"{method} {path} HTTP/{version}\r\n{head}\r\n".encode() + body)
        await self.writer.drain()

    async def exactly(self, count: int) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.readexactly(count)

    async def rest(self) -> bytes:
        """All bytes until the server closes."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.read()

    async def silent(self) -> bool:
        """Return True if nothing more arrives for a moment."""
        try:
            async with asyncio.timeout(0.05):
                await self.reader.readexactly(1)
        except TimeoutError:
            return True
        return False

    async def reply(self, *, method: str = "POST") -> Received:
        """Read one whole reply."""
        async with asyncio.timeout(PATIENCE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            fields = [line.split(": ", 1) for line in head.decode().split("\r\n")[1:-2]]
            headers = {name.lower(): value for name, value in fields}
            if "content-length" in headers:
                length = 0 if method == "HEAD" else int(headers["content-length"])
                body = await self.reader.readexactly(length)
                return Received(head, body, body, headers=headers)
            return await self._chunks(head, headers)

    async def _chunks(self, head: bytes, headers: dict[str, str]) -> Received:
        raw, body = b"", b""
        ends: list[int] = []
        while True:
            size = await self.reader.readuntil(b"\r\n")
            data = await self.reader.readexactly(int(size, 16) + 2)
            raw += size + data
            if data == b"\r\n":
                return Received(head, raw, body, tuple(ends), headers)
            body += data[:-2]
            ends.append(len(raw))

    async def hang_up(self) -> None:
        self.writer.close()


class Anthropic:
    """Requests of a client of the Messages API."""

    wire = "anthropic"
    path = "/v1/messages"
    headers: ClassVar = {"x-api-key": "sk-canary", "anthropic-version": "2023-06-01"}
    keyless: ClassVar = {"anthropic-version": "2023-06-01"}
    orphan: ClassVar = {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "z"}]}]}
    error_event = "error"
    model_missing = 404

    @staticmethod
    def request(text: str = "Hi", **more: Any) -> dict[str, Any]:
        return {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": text}], **more}

    @staticmethod
    def delta(data: dict[str, Any]) -> Any:
        """The text that an event of a stream delivers, if any."""
        return data.get("delta", {}).get("text")


class OpenAI:
    """Requests of a client of chat completions."""

    wire = "openai-chat"
    path = "/v1/chat/completions"
    headers: ClassVar = {"Authorization": "Bearer sk-canary"}
    keyless: ClassVar[dict[str, str]] = {}
    orphan: ClassVar = {"messages": [{"role": "tool", "tool_call_id": "z", "content": "x"}]}
    error_event = ""
    model_missing = 404

    @staticmethod
    def request(text: str = "Hi", **more: Any) -> dict[str, Any]:
        return {"model": "m", "messages": [{"role": "user", "content": text}], **more}

    @staticmethod
    def delta(data: dict[str, Any]) -> Any:
        return data["choices"][0]["delta"].get("content") if data.get("choices") else None


class Responses:
    """Requests of a client of the Responses API."""

    wire = "openai-responses"
    path = "/v1/responses"
    headers: ClassVar = {"Authorization": "Bearer sk-canary"}
    keyless: ClassVar[dict[str, str]] = {}
    orphan: ClassVar = {"input": [{"type": "function_call_output", "call_id": "z", "output": "x"}]}
    error_event = "error"
    model_missing = 400

    @staticmethod
    def request(text: str = "Hi", **more: Any) -> dict[str, Any]:
        return {"model": "m", "input": text, **more}

    @staticmethod
    def delta(data: dict[str, Any]) -> Any:
        return data["delta"] if data["type"] == "response.output_text.delta" else None


class Gemini:
    """Requests of a client of Gemini, with the model and the method in the path."""

    wire = "gemini"
    path = "/v1beta/models/m:generateContent"
    headers: ClassVar = {"x-goog-api-key": "sk-canary"}
    keyless: ClassVar[dict[str, str]] = {"x-goog-api-client": "any"}
    orphan: ClassVar = {"contents": [{"parts": [{"functionResponse": {"name": "z", "response": {}}}]}]}
    error_event = ""
    model_missing = 404

    @staticmethod
    def request(text: str = "Hi", **more: Any) -> dict[str, Any]:
        return {"contents": [{"role": "user", "parts": [{"text": text}]}], **more}

    @staticmethod
    def delta(data: dict[str, Any]) -> Any:
        return "".join(part.get("text", "") for part in data["candidates"][0]["content"]["parts"])

    @staticmethod
    def addressed(path: str, document: Any) -> tuple[str, Any]:
        """Move fields that other providers have in the body to the path."""
        if not (isinstance(document, dict) and ":generateContent" in path):
            return path, document
        rest = {name: value for name, value in document.items() if name not in ("model", "stream")}
        verb = ":streamGenerateContent?alt=sse" if document.get("stream") else ":generateContent"
        return path.replace(":generateContent", verb).replace("/m:", f"/{document.get('model', 'm')}:"), rest


class Ollama:
    """Requests of a client of Ollama."""

    wire = "ollama"
    path = "/api/chat"
    headers: ClassVar = {"Authorization": "Bearer sk-canary"}
    orphan: ClassVar = {"top_logprobs": 21}
    """Ollama refuses no history for its pairs; it refuses this."""
    error_event = ""
    model_missing = 404

    @staticmethod
    def request(text: str = "Hi", **more: Any) -> dict[str, Any]:
        return {"model": "m", "messages": [{"role": "user", "content": text}], "stream": False, **more}

    @staticmethod
    def delta(data: dict[str, Any]) -> Any:
        return data["message"]["content"]


Provider = type[Anthropic] | type[OpenAI] | type[Responses] | type[Gemini] | type[Ollama]
OpenLLM = Callable[..., Awaitable[FakeLLM]]
OpenWire = Callable[[FakeLLM], Awaitable[Wire]]


@pytest.fixture(params=[Anthropic, OpenAI, Responses, Gemini, Ollama], ids=lambda provider: provider.wire)
def provider(request: pytest.FixtureRequest) -> Provider:
    """Each dialect in turn."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=[Anthropic, OpenAI, Responses], ids=lambda provider: provider.wire)
def neighbour(request: pytest.FixtureRequest) -> Provider:
    """Each dialect that shares `/v1/models` and needs a bearer token."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def anthropic() -> type[Anthropic]:
    return Anthropic


@pytest.fixture
def openai() -> type[OpenAI]:
    return OpenAI


@pytest.fixture
def responses() -> type[Responses]:
    return Responses


@pytest.fixture
async def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
async def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


@pytest.fixture
def open_llm(stack: AsyncExitStack, recorder: Recorder, clock: StillClock) -> OpenLLM:
    """Open a server: `await open_llm(answer or script, strict=…, models=…)`."""

    async def opened(says: Any = None, **options: Any) -> FakeLLM:
        says = says or Reply((Text("Hello, how are you today?"),))
        script = says if hasattr(says, "answer") else Says(says)
        return await stack.enter_async_context(FakeLLM(script, recorder, clock=clock, **options))

    return opened


@pytest.fixture
def open_wire(stack: AsyncExitStack) -> OpenWire:
    """Connect to a server: `await open_wire(llm)`."""

    async def opened(llm: FakeLLM) -> Wire:
        reader, writer = await asyncio.open_connection(llm.host, llm.port, limit=2**26)
        stack.callback(writer.close)
        return Wire(reader, writer)

    return opened


@pytest.fixture
def ask(open_wire: OpenWire) -> Callable[..., Awaitable[Received]]:
    """Send one request on a new connection: `await ask(llm, provider, **request)`."""

    async def asked(
        llm: FakeLLM,
        provider: Provider,
        document: object = None,
        *,
        path: str = "",
        headers: dict[str, str] | None = None,
        method: str = "POST",
        **more: Any,
    ) -> Received:
        wire = await open_wire(llm)
        document = provider.request(**more) if document is None else document
        given = provider.headers if headers is None else headers
        await wire.ask(path or provider.path, document, given, method=method)
        reply = await wire.reply(method=method)
        await wire.hang_up()
        return reply

    return asked
