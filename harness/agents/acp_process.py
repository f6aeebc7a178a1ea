"""A process that speaks the Agent Client Protocol, with the sessions that its user has open in it."""

import asyncio
import json
from contextlib import suppress
from typing import Any, Protocol

from acp import PROTOCOL_VERSION, RequestError, schema
from acp.connection import Connection

from wedgehog.harness.sandbox.owned import Owned


class JsonLines:
    """The transport: JSON-RPC messages as lines on the agent's stdin and stdout. Other lines are only in the log."""

    def __init__(self, owned: Owned) -> None:
        self._owned = owned
        self._rest = b""
        self._messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        owned.stdout.listen(self._feed)

    def _feed(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            with suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict):
                    self._messages.put_nowait(message)
        if not chunk:
            self._messages.put_nowait(None)

    async def send(self, message: dict[str, Any]) -> None:
        """Write one message; the end of the process is noticed elsewhere."""
        if self._owned.exit_code is None:
            self._owned.stdin.write(json.dumps(message).encode() + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        """The next message, None at the end of its output."""
        return await self._messages.get()

    async def close(self) -> None:
        """The process is ended by its owner."""


class SessionClient(Protocol):
    """What a session takes from the agent."""

    def updated(self, params: Any) -> None:
        """Take an update of the turn."""

    async def permitted(self, params: Any) -> dict[str, str]:
        """Answer a request for permission."""


class AcpProcess:
    """One connection. What the agent sends goes to the session that it names."""

    def __init__(self, owned: Owned) -> None:
        self._open: dict[str, SessionClient] = {}
        self._hello: schema.InitializeResponse | None = None
        self._greeting = asyncio.Lock()
        self._connection = Connection(self._handle, JsonLines(owned))

    async def hello(self, auth: str | None) -> schema.InitializeResponse:
        """What the agent can do; it is asked once. Errors: RequestError, ConnectionError."""
        async with self._greeting:
            if self._hello is None:
                me = schema.Implementation(name="wedgehog", version="1")
                able = schema.ClientCapabilities()
                asked = schema.InitializeRequest(
                    protocol_version=PROTOCOL_VERSION, client_capabilities=able, client_info=me
                )
                said = await self.ask("initialize", asked)
                if auth is not None:
                    await self.ask("authenticate", schema.AuthenticateRequest(method_id=auth))
                self._hello = schema.InitializeResponse.model_validate(said)
        return self._hello

    async def ask(self, method: str, params: Any) -> Any:
        """The result of a request. Errors: RequestError, ConnectionError."""
        return await self._connection.send_request(method, _sent(params))

    async def tell(self, method: str, params: Any) -> None:
        """Send a notification. Errors: ConnectionError."""
        await self._connection.send_notification(method, _sent(params))

    def opened(self, name: str, session: SessionClient) -> None:
        """From now on, what the agent sends for the session of this name goes to this one."""
        self._open[name] = session

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        """An update, or a request for permission; nothing else was offered. Any other notification is ignored."""
        session = self._named(params)
        if method == "session/update":
            if session is not None:
                session.updated(params)
            return None
        if method == "session/request_permission" and session is not None:
            return {"outcome": await session.permitted(params)}
        if is_notification:
            return None
        raise RequestError.method_not_found(method)

    def _named(self, params: Any) -> SessionClient | None:
        """The session that is meant; where only one is open, it is that one."""
        only = next(iter(self._open.values())) if len(self._open) == 1 else None
        return self._open.get(str(params.get("sessionId")), only)


def _sent(params: Any) -> dict[str, Any]:
    return dict(params.model_dump(mode="json", by_alias=True, exclude_none=True))
