"""An agent that speaks the Agent Client Protocol: we are its client, as an editor is.

initialize → session/new (after a restart: session/load, or session/resume) → session/prompt for each message

A further session is one more session/new on the same connection, as in an editor with two chats.
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from acp import RequestError, schema

from wedgehog.harness.agents.acp_process import AcpProcess
from wedgehog.harness.agents.base import Outcome
from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.living import LivingSession, NotReadyError, Said
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.owned import Owned, Tree

AUTH_REQUIRED = -32000
"""The protocol's error of an agent whose user must authenticate first."""
ENDS_WELL = ("end_turn", "cancelled")
"""Stop reasons that are no error."""


class AcpSession(LivingSession):
    """Talks to the agent through the protocol's own package."""

    def __init__(self, spec: AgentSpec, context: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        assert spec.acp is not None  # noqa: S101  open_agent chose by it
        self._talks = spec.acp
        self._process: AcpProcess | None = None
        self._id: str | None = None
        """The agent's name for the session."""
        self._chunks: list[str] = []
        self._said_s: float | None = None
        """When the last words of the answer came, by the time of the event loop."""
        self._raised: str | None = None
        self._stopping, self._left = asyncio.Event(), asyncio.Event()
        self._together: list[AcpSession] = [self]
        """The sessions of its process; the first one starts it."""
        self._overlaps = False
        """Whether another session's turn ran during this one, or before it in the output that was kept."""
        self._starting = asyncio.Lock()
        super().__init__(spec, context, surroundings, tree)

    async def close(self) -> None:
        """Close the connection."""
        if self._process is not None:
            await self._process.close()

    async def apart(
        self,
        name: str,
        context: AgentContext,
        surroundings: Surroundings,
        *,
        at_once: bool = True,
        struck: bool = False,
    ) -> "AcpSession":
        """One more session of the same process; in a process of its own if a fault strikes that of one session."""
        other = AcpSession(self._spec, context, surroundings, self._tree)
        other.name = name
        if not struck:
            self._together.append(other)
            other._together, other._starting = self._together, self._starting
        return other

    def beside(self) -> "AcpSession":
        """A second process that loads the same session; it is closed after its turn."""
        second = AcpSession(self._spec, self._context, self._around, self._tree)
        second.name, second._id, second._alone = self.name, self._id, False
        return second

    @property
    def _appends(self) -> bool:
        return True

    @property
    def _speaks_protocol(self) -> bool:
        return True

    def _lines(self) -> tuple[Sequence[str], Sequence[str] | None]:
        return self._talks.start, None

    async def _running(self, *, first: bool) -> Owned:
        """The process of all its sessions; a new one does not know this session yet."""
        main = self._together[0]
        async with self._starting:
            owned = await LivingSession._running(main, first=first)
        if self._process is not main._process:
            self._process, self._owned, self.started, self._ready = main._process, owned, main.started, False
        return owned

    async def _launched(self, argv: list[str]) -> Owned:
        await self.close()
        owned = await self._start(argv, talks=True)
        self._process = AcpProcess(owned)
        return owned

    def _forget(self, owned: Owned) -> None:
        """The output counts for each session that is in a turn."""
        others = [other for other in self._together if other is not self and other._in_turn()]
        for session in (self, *others):
            session._overlaps = bool(others)
        if not others:
            owned.forget_output()

    def _outcome(self, owned: Owned, said: Said, code: int | None) -> Outcome:
        """One stdout has the words of all sessions, so none keeps it; stderr has what was said in the turns."""
        outcome = super()._outcome(owned, said, code)
        return outcome if len(self._together) == 1 else replace(outcome, stdout="", shared=self._overlaps)

    # ---- what we ask

    async def _prepare(self, *, first: bool) -> None:
        assert self._process is not None  # noqa: S101  a process has been started
        hello: schema.InitializeResponse | None = None
        try:
            hello = await self._process.hello(self._talks.auth)
            await self._open_session(hello)
            if self._talks.mode is not None:
                mode = schema.SetSessionModeRequest(session_id=self._id or "", mode_id=self._talks.mode)
                await self._ask("session/set_mode", mode)
        except RequestError as bad:
            raise NotReadyError(_told(bad) + (_methods(hello) if bad.code == AUTH_REQUIRED else "")) from None
        except ConnectionError:
            await self._never_comes()

    async def _open_session(self, hello: schema.InitializeResponse) -> None:
        """Load the session after a restart, as far as the agent can do that; else begin a new one."""
        able, process = hello.agent_capabilities, self._process
        assert process is not None  # noqa: S101  a process has been started
        cwd, servers = str(self._context.cwd), self._servers()
        loads = able is not None and able.load_session
        resumes = able is not None and able.session_capabilities and able.session_capabilities.resume
        if self._id is not None and (loads or resumes):
            process.opened(self._id, self)
            again = {"cwd": cwd, "session_id": self._id, "mcp_servers": servers}
            if loads:
                await process.ask("session/load", schema.LoadSessionRequest.model_validate(again))
            else:
                await process.ask("session/resume", schema.ResumeSessionRequest.model_validate(again))
        else:
            new = await process.ask("session/new", schema.NewSessionRequest(cwd=cwd, mcp_servers=servers))
            self._id = schema.NewSessionResponse.model_validate(new).session_id
            process.opened(self._id, self)

    def _servers(self) -> list[Any]:
        """Our tool host, which the agent gets with its session."""
        if self._spec.tools == "http":
            return [schema.HttpMcpServer(type="http", name="wedgehog", url=self._context.tool_url or "", headers=[])]
        if self._spec.tools == "stdio":
            return [schema.McpServerStdio(name="wedgehog", command=self._context.tool_command or "", args=[], env=[])]
        return []

    async def _exchange(self, text: str) -> None:
        self._chunks, self._said_s, self._raised = [], None, None
        self._stopping.clear()
        self._left.clear()
        words = schema.TextContentBlock(type="text", text=text)
        try:
            reply = await self._reply(schema.PromptRequest(session_id=self._id or "", prompt=[words]))
        except RequestError as bad:
            self._raised = _told(bad)
        except ConnectionError:
            await self._never_comes()
        else:
            reason = str(dict(reply or {}).get("stopReason"))
            self._raised = None if reason in ENDS_WELL else f"the agent stopped: {reason}"

    async def _reply(self, prompt: schema.PromptRequest) -> Any:
        """The reply to a message; an empty turn's if its user no longer waits for it."""
        asking = asyncio.ensure_future(self._ask("session/prompt", prompt))
        leaving = asyncio.ensure_future(self._left.wait())
        try:
            await asyncio.wait({asking, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return await asking if asking.done() else {"stopReason": "cancelled"}
        finally:
            asking.cancel()
            leaving.cancel()

    async def _ask(self, method: str, params: Any) -> Any:
        assert self._process is not None  # noqa: S101  a process has been started
        return await self._process.ask(method, params)

    async def _never_comes(self) -> None:
        """Its output has ended, so nothing more will come; the end of the process, or of the turn, comes next."""
        await asyncio.Event().wait()

    def _said(self) -> Said:
        return Said("".join(self._chunks), raised=self._raised)

    def _answered_s(self, owned: Owned, answer: str) -> float | None:
        return self._said_s

    async def _abort(self) -> None:
        """`session/cancel`: the agent then ends its turn."""
        if self._process is not None and self._id is not None:
            with suppress(ConnectionError):
                await self._process.tell("session/cancel", schema.CancelNotification(session_id=self._id))
        self._stopping.set()

    async def _stop(self, grace_s: float) -> None:
        """Stop the turn as its user would. A process with other sessions is not killed then: its user looks away."""
        if len(self._together) == 1 or not self._ready:
            await super()._stop(grace_s)
            return
        await self._abort()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._turn_over(), grace_s)
        self._left.set()
        await self._turn_over()

    # ---- what the agent asks

    def updated(self, params: Any) -> None:
        """Keep the words of the answer."""
        update = params.get("update", {})
        content = update.get("content")
        if update.get("sessionUpdate") == "agent_message_chunk" and isinstance(content, dict):
            self._chunks.append(str(content.get("text", "")))
            if self._chunks[-1].strip():
                self._said_s = asyncio.get_running_loop().time()

    async def permitted(self, params: Any) -> dict[str, str]:
        """The user's answer; without one, and while the turn is being stopped, the request is cancelled with it."""
        options = {str(option.get("kind")): str(option.get("optionId")) for option in params.get("options", [])}
        about = json.dumps(params.get("toolCall", {}))
        chosen = self._choose(tuple(options), about, stopping=self._stopping.is_set())
        if not chosen:
            await self._stopping.wait()
        if self._stopping.is_set():
            return {"outcome": "cancelled"}
        return {"outcome": "selected", "optionId": options[chosen]}


def _methods(hello: schema.InitializeResponse | None) -> str:
    """The ways to authenticate among which a spec can choose."""
    ids = ", ".join(method.id for method in (hello.auth_methods if hello else None) or ())
    return f"; choose a method with `acp: {{auth: …}}`: {ids}" if ids else ""


def _told(bad: RequestError) -> str:
    """A protocol error with what the agent adds to it."""
    data = bad.data
    details = data.get("details") or data.get("message") if isinstance(data, dict) else data
    more = details if isinstance(details, str) else json.dumps(data) if data else ""
    return f"{bad}: {more}" if more and more not in str(bad) else str(bad)
