"""Harm to a tool's response, between the `mcp` package and its transport.

Nothing of a response is written before the harness agrees, so that it can arm the network at an exact byte; and it
hears when a result has been written.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

Ask = Callable[..., Awaitable[Any]]
"""`await ask("write", token=…, …)`"""
AsgiMessage = MutableMapping[str, Any]

_EVENT = b"event: message\r\ndata: "


@dataclass(frozen=True, slots=True)
class ResponseForm:
    """How a result is to be written."""

    copies: int = 1
    broken: bool = False


class ResponseFaults:
    """The results that are due, by the token that stands in them."""

    def __init__(self, ask: Ask) -> None:
        """Nothing is due."""
        self.ask = ask
        self._due: dict[str, ResponseForm] = {}

    def expect(self, token: str, copies: int, broken: bool) -> None:
        """A result with this token is about to be written."""
        if token:
            self._due[token] = ResponseForm(copies, broken)

    def found_in(self, data: bytes) -> tuple[str, ResponseForm]:
        """The due result that these bytes hold, which is then due no more; an empty token where they hold none."""
        for token in self._due:
            if token.encode() in data:
                return token, self._due.pop(token)
        return "", ResponseForm()


def halved(data: bytes) -> bytes:
    """The first half of a JSON text: no JSON text."""
    return data[: len(data) // 2]


def line_as(data: bytes, form: ResponseForm) -> bytes:
    """A line of JSON in this form; each copy is a whole line."""
    return (halved(data) + b"\n" if form.broken else data) * form.copies


def event_as(data: bytes, form: ResponseForm) -> bytes:
    """A server-sent event in this form."""
    head, mark, rest = data.partition(b"data: ")
    if form.broken and mark:
        data = head + mark + halved(rest.rstrip(b"\r\n")) + b"\r\n\r\n"
    return data * form.copies


# ---- stdio


class StdioResponses:
    """The text file that the `mcp` package writes its lines to."""

    def __init__(self, disturbance: ResponseFaults, out: BinaryIO) -> None:
        """`out` gets the bytes."""
        self._disturbance, self._out = disturbance, out

    async def write(self, text: str) -> None:
        """One message, a line."""
        data = text.encode()
        token, form = self._disturbance.found_in(data)
        if token:
            await self._disturbance.ask("write", token=token, client=None, written=0)
        self._out.write(line_as(data, form))
        self._out.flush()
        if token:
            await self._disturbance.ask("written", token=token, client=None, written=0)

    async def flush(self) -> None:
        """Every line is flushed as it is written."""


# ---- HTTP


class _Transport(Protocol):
    def write(self, data: bytes) -> None: ...
    def get_extra_info(self, name: str) -> Any: ...


class CountedStream:
    """A connection's transport that counts what is written to it; all else is the transport's own."""

    def __init__(self, transport: _Transport) -> None:
        """Nothing is written yet."""
        self._transport = transport
        self.written = 0

    def write(self, data: bytes) -> None:
        """Count, and write."""
        self.written += len(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        """As the transport."""
        return getattr(self._transport, name)


class HttpResponses:
    """The connections of an HTTP server, and the application around the one that `mcp` makes."""

    def __init__(self, disturbance: ResponseFaults) -> None:
        """No connection yet."""
        self.disturbance = disturbance
        self.open: dict[tuple[str, int], CountedStream] = {}

    def protocol(self) -> type:
        """uvicorn's HTTP protocol, with counted connections."""
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
        """`app`, with its responses in the form that the harness wants."""

        async def application(scope: AsgiMessage, receive: Any, send: Callable[[AsgiMessage], Awaitable[None]]) -> None:
            if scope["type"] == "http":
                send = _Response(self, tuple(scope["client"]), send).send
            await app(scope, receive, send)

        return application


class _Response:
    """One response on its way out."""

    def __init__(
        self, web: HttpResponses, client: tuple[str, int], send: Callable[[AsgiMessage], Awaitable[None]]
    ) -> None:
        self._web, self._client, self._send = web, client, send
        self._head: AsgiMessage | None = None
        self._is_event_stream = False

    async def send(self, message: AsgiMessage) -> None:
        """A head of JSON waits for its body, which decides whether it is to be a stream instead."""
        if message["type"] == "http.response.start":
            self._is_event_stream = _kind(message).startswith(b"text/event-stream")
            if not _kind(message).startswith(b"application/json"):
                await self._agreed(message)
            else:
                self._head = message
        elif message["type"] == "http.response.body" and message.get("body"):
            await self._body(message)
        else:
            await self._flush_head()
            await self._send(message)

    async def _body(self, message: AsgiMessage) -> None:
        token, form = self._web.disturbance.found_in(message["body"])
        if form != ResponseForm():
            message = self._formed(message, form)
        await self._flush_head()
        await self._agreed(message, token)
        if token:
            await self._web.disturbance.ask("written", token=token, client=self._client, written=self._written)

    def _formed(self, message: AsgiMessage, form: ResponseForm) -> AsgiMessage:
        body: bytes = message["body"]
        if self._is_event_stream:
            return {**message, "body": event_as(body, form)}
        assert self._head is not None  # noqa: S101  a JSON body's head has waited for it
        if form.copies > 1:
            # One JSON body holds one message; a stream holds as many as it likes, and every client takes both.
            self._head = _with_headers(self._head, {b"content-type": b"text/event-stream", b"content-length": None})
            return {**message, "body": event_as(_EVENT + body + b"\r\n\r\n", form)}
        body = halved(body)
        self._head = _with_headers(self._head, {b"content-length": str(len(body)).encode()})
        return {**message, "body": body}

    async def _flush_head(self) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            await self._agreed(head)

    async def _agreed(self, message: AsgiMessage, token: str = "") -> None:
        await self._web.disturbance.ask("write", token=token, client=self._client, written=self._written)
        await self._send(message)

    @property
    def _written(self) -> int:
        counted = self._web.open.get(self._client)
        return counted.written if counted else 0


def _kind(head: AsgiMessage) -> bytes:
    return next((value for name, value in head["headers"] if name.lower() == b"content-type"), b"")


def _with_headers(head: AsgiMessage, changed: dict[bytes, bytes | None]) -> AsgiMessage:
    """The same head with these headers in place of its own; None: without it."""
    kept = [(name, value) for name, value in head["headers"] if name.lower() not in changed]
    return {**head, "headers": kept + [(name, value) for name, value in changed.items() if value is not None]}
