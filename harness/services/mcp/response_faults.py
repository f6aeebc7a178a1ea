"""Faults in a tool's response, applied between the `mcp` package and its transport; the harness allows each write."""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, BinaryIO

Ask = Callable[..., Awaitable[Any]]
"""`await ask("write", token=…, …)`"""
AsgiMessage = MutableMapping[str, Any]

_EVENT = b"event: message\r\ndata: "


@dataclass(frozen=True, slots=True)
class ResponseForm:
    """The faults of one result."""

    copies: int = 1
    broken: bool = False


class ResponseFaults:
    """The results to write, by the token that they contain."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self._due: dict[str, ResponseForm] = {}

    def expect(self, token: str, copies: int, broken: bool) -> None:
        """Set the form of the result that contains this token."""
        if token:
            self._due[token] = ResponseForm(copies, broken)

    def found_in(self, data: bytes) -> tuple[str, ResponseForm]:
        """Return and remove the result that is in these bytes; an empty token where there is none."""
        for token in self._due:
            if token.encode() in data:
                return token, self._due.pop(token)
        return "", ResponseForm()


def halved(data: bytes) -> bytes:
    """Return the first half of a JSON text, which is not valid JSON."""
    return data[: len(data) // 2]


def event_as(data: bytes, form: ResponseForm) -> bytes:
    """Return a server-sent event in this form."""
    head, mark, rest = data.partition(b"data: ")
    if form.broken and mark:
        data = head + mark + halved(rest.rstrip(b"\r\n")) + b"\r\n\r\n"
    return data * form.copies


# ---- stdio


class StdioResponses:
    """The text file to which the `mcp` package writes its lines."""

    def __init__(self, faults: ResponseFaults, out: BinaryIO) -> None:
        self._faults, self._out = faults, out

    async def write(self, text: str) -> None:
        """Write one message, which is a line."""
        data = text.encode()
        token, form = self._faults.found_in(data)
        if token:
            await self._faults.ask("write", token=token, client=None, written=0)
        self._out.write((halved(data) + b"\n" if form.broken else data) * form.copies)
        self._out.flush()
        if token:
            await self._faults.ask("written", token=token, client=None, written=0)

    async def flush(self) -> None:
        """Do nothing: `write` flushes each line."""


# ---- HTTP


class CountedStream:
    """A connection's transport that counts the bytes written."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.written = 0

    def write(self, data: bytes) -> None:
        """Count and write."""
        self.written += len(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HttpResponses:
    """The connections of an HTTP server, and a wrapper around its `mcp` application."""

    def __init__(self, faults: ResponseFaults) -> None:
        self.faults = faults
        self.open: dict[tuple[str, int], CountedStream] = {}

    def written(self, client: tuple[str, int]) -> int:
        """Return the bytes written to a client's connection."""
        counted = self.open.get(client)
        return counted.written if counted else 0

    def protocol(self) -> type:
        """Return uvicorn's HTTP protocol with counted connections."""
        from uvicorn.protocols.http.h11_impl import H11Protocol

        web = self

        class Protocol(H11Protocol):
            def connection_made(self, transport: Any) -> None:
                counted = CountedStream(transport)
                self._peer = tuple(transport.get_extra_info("peername")[:2])
                web.open[self._peer] = counted
                super().connection_made(counted)  # type: ignore[arg-type]

            def connection_lost(self, exc: Exception | None) -> None:
                web.open.pop(self._peer, None)
                super().connection_lost(exc)

        return Protocol

    def around(self, app: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        """Return `app` with faults applied to its responses."""

        async def application(scope: AsgiMessage, receive: Any, send: Callable[[AsgiMessage], Awaitable[None]]) -> None:
            if scope["type"] == "http":
                send = _Response(self, tuple(scope["client"]), send).send
            await app(scope, receive, send)

        return application


class _Response:
    """One response."""

    def __init__(
        self, web: HttpResponses, client: tuple[str, int], send: Callable[[AsgiMessage], Awaitable[None]]
    ) -> None:
        self._web, self._client, self._send = web, client, send
        self._head: AsgiMessage | None = None
        self._is_event_stream = False

    async def send(self, message: AsgiMessage) -> None:
        """Send a message; the head of a JSON response waits for its body, which may turn it into a stream."""
        if message["type"] == "http.response.start":
            self._is_event_stream = _kind(message).startswith(b"text/event-stream")
            if not _kind(message).startswith(b"application/json"):
                await self._send_when_allowed(message)
            else:
                self._head = message
        elif message["type"] == "http.response.body" and message.get("body"):
            await self._body(message)
        else:
            await self._flush_head()
            await self._send(message)

    async def _body(self, message: AsgiMessage) -> None:
        token, form = self._web.faults.found_in(message["body"])
        if form != ResponseForm():
            message = self._with_faults(message, form)
        await self._flush_head()
        await self._send_when_allowed(message, token)
        if token:
            await self._web.faults.ask("written", token=token, client=self._client, written=self._written)

    def _with_faults(self, message: AsgiMessage, form: ResponseForm) -> AsgiMessage:
        body: bytes = message["body"]
        if self._is_event_stream:
            return {**message, "body": event_as(body, form)}
        assert self._head is not None  # noqa: S101  the head waits for its body
        if form.copies > 1:
            # One JSON body holds one message, a stream holds several, and every client accepts both.
            self._head = _with_headers(self._head, {b"content-type": b"text/event-stream", b"content-length": None})
            return {**message, "body": event_as(_EVENT + body + b"\r\n\r\n", form)}
        body = halved(body)
        self._head = _with_headers(self._head, {b"content-length": str(len(body)).encode()})
        return {**message, "body": body}

    async def _flush_head(self) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            await self._send_when_allowed(head)

    async def _send_when_allowed(self, message: AsgiMessage, token: str = "") -> None:
        await self._web.faults.ask("write", token=token, client=self._client, written=self._written)
        await self._send(message)

    @property
    def _written(self) -> int:
        return self._web.written(self._client)


def _kind(head: AsgiMessage) -> bytes:
    return next((value for name, value in head["headers"] if name.lower() == b"content-type"), b"")


def _with_headers(head: AsgiMessage, changed: dict[bytes, bytes | None]) -> AsgiMessage:
    """Replace headers of a head; None removes one."""
    kept = [(name, value) for name, value in head["headers"] if name.lower() not in changed]
    return {**head, "headers": kept + [(name, value) for name, value in changed.items() if value is not None]}
