"""An agent that speaks the Agent Client Protocol: we are its client, as an editor is.

initialize → session/new (after a restart: session/load, or session/resume) → session/prompt for each message
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, schema
from acp.connection import Connection

from wedgehog.harness.agents.base import AgentContext, Surroundings
from wedgehog.harness.agents.living import LivingSession, NotReadyError, Said
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.owned import Owned, Tree

ENDS_WELL = ("end_turn", "cancelled")
"""Stop reasons that are no error."""


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


class AcpSession(LivingSession):
    """Talks to the agent through the protocol's own package."""

    def __init__(self, spec: AgentSpec, place: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        assert spec.acp is not None  # noqa: S101  open_agent chose by it
        self._talks = spec.acp
        self._connection: Connection | None = None
        self._id: str | None = None
        """The agent's name for the session."""
        self._chunks: list[str] = []
        self._said_s: float | None = None
        """When the last words of the answer came, by the time of the event loop."""
        self._raised: str | None = None
        self._stopping = asyncio.Event()
        super().__init__(spec, place, surroundings, tree)

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()

    def beside(self) -> "AcpSession":
        """A second process that loads the same session; it is closed after its turn."""
        second = AcpSession(self._spec, self._place, self._around, self._tree)
        second.name, second._id, second._alone = self.name, self._id, False
        return second

    def _lines(self) -> tuple[Sequence[str], Sequence[str] | None]:
        return self._talks.start, None

    async def _launched(self, argv: list[str]) -> Owned:
        await self.close()
        owned = await self._start(argv, talks=True)
        self._connection = Connection(self._handle, JsonLines(owned))
        return owned

    # ---- what we ask

    async def _prepare(self, *, first: bool) -> None:
        try:
            me = schema.Implementation(name="wedgehog", version="1")
            able = schema.ClientCapabilities()
            hello = await self._ask(
                "initialize",
                schema.InitializeRequest(protocol_version=PROTOCOL_VERSION, client_capabilities=able, client_info=me),
            )
            if self._talks.auth is not None:
                await self._ask("authenticate", schema.AuthenticateRequest(method_id=self._talks.auth))
            await self._open_session(schema.InitializeResponse.model_validate(hello))
            if self._talks.mode is not None:
                mode = schema.SetSessionModeRequest(session_id=self._id or "", mode_id=self._talks.mode)
                await self._ask("session/set_mode", mode)
        except RequestError as bad:
            raise NotReadyError(_told(bad)) from None
        except ConnectionError:
            await self._never_comes()

    async def _open_session(self, hello: schema.InitializeResponse) -> None:
        """Load the session after a restart, as far as the agent can do that; else begin a new one."""
        able = hello.agent_capabilities
        cwd, servers = str(self._place.cwd), self._servers()
        if self._id is not None and able is not None and able.load_session:
            load = schema.LoadSessionRequest(cwd=cwd, session_id=self._id, mcp_servers=servers)
            await self._ask("session/load", load)
        elif (
            self._id is not None and able is not None and able.session_capabilities and able.session_capabilities.resume
        ):
            resume = schema.ResumeSessionRequest(cwd=cwd, session_id=self._id, mcp_servers=servers)
            await self._ask("session/resume", resume)
        else:
            new = await self._ask("session/new", schema.NewSessionRequest(cwd=cwd, mcp_servers=servers))
            self._id = schema.NewSessionResponse.model_validate(new).session_id

    def _servers(self) -> list[Any]:
        """Our tool host, which the agent gets with its session."""
        if self._spec.tools == "http":
            return [schema.HttpMcpServer(type="http", name="wedgehog", url=self._place.tool_url or "", headers=[])]
        if self._spec.tools == "stdio":
            return [schema.McpServerStdio(name="wedgehog", command=self._place.tool_command or "", args=[], env=[])]
        return []

    async def _exchange(self, text: str) -> None:
        self._chunks, self._said_s, self._raised = [], None, None
        self._stopping.clear()
        words = schema.TextContentBlock(type="text", text=text)
        try:
            reply = await self._ask("session/prompt", schema.PromptRequest(session_id=self._id or "", prompt=[words]))
        except RequestError as bad:
            self._raised = _told(bad)
        except ConnectionError:
            await self._never_comes()
        else:
            reason = str(dict(reply or {}).get("stopReason"))
            self._raised = None if reason in ENDS_WELL else f"the agent stopped: {reason}"

    async def _ask(self, method: str, params: Any) -> Any:
        assert self._connection is not None  # noqa: S101  a process has been started
        sent = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        return await self._connection.send_request(method, sent)

    async def _never_comes(self) -> None:
        """Its output has ended, so nothing more will come; the end of the process, or of the turn, comes next."""
        await asyncio.Event().wait()

    def _said(self) -> Said:
        return Said("".join(self._chunks), raised=self._raised)

    def _answered_s(self, owned: Owned, answer: str) -> float | None:
        return self._said_s

    async def _abort(self) -> None:
        """`session/cancel`: the agent then ends its turn."""
        if self._connection is not None and self._id is not None:
            with suppress(ConnectionError):
                cancel = schema.CancelNotification(session_id=self._id).model_dump(mode="json", by_alias=True)
                await self._connection.send_notification("session/cancel", cancel)
        self._stopping.set()

    # ---- what the agent asks

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        """An update of the turn, or a request for permission; nothing else was offered."""
        if method == "session/update":
            self._updated(params)
            return None
        if method == "session/request_permission":
            return {"outcome": await self._permission(params)}
        raise RequestError.method_not_found(method)

    def _updated(self, params: Any) -> None:
        update = params.get("update", {})
        content = update.get("content")
        if update.get("sessionUpdate") == "agent_message_chunk" and isinstance(content, dict):
            self._chunks.append(str(content.get("text", "")))
            if self._chunks[-1].strip():
                self._said_s = asyncio.get_running_loop().time()

    async def _permission(self, params: Any) -> dict[str, str]:
        """The user's answer; without one, and while the turn is being stopped, the request is cancelled with it."""
        options = {str(option.get("kind")): str(option.get("optionId")) for option in params.get("options", [])}
        about = json.dumps(params.get("toolCall", {}))
        chosen = self._choose(tuple(options), about, stopping=self._stopping.is_set())
        if not chosen:
            await self._stopping.wait()
        if self._stopping.is_set():
            return {"outcome": "cancelled"}
        return {"outcome": "selected", "optionId": options[chosen]}


def _told(bad: RequestError) -> str:
    """A protocol error with what the agent adds to it."""
    data = bad.data
    details = data.get("details") or data.get("message") if isinstance(data, dict) else data
    more = details if isinstance(details, str) else json.dumps(data) if data else ""
    return f"{bad}: {more}" if more and more not in str(bad) else str(bad)
