"""Our own tools in one run: the tool host and the database, with what they tell the history and ask the nemesis."""

import asyncio
import contextlib
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from wedgehog.fake_llm.reply import ToolCall
from wedgehog.fake_llm.script.position import Positions
from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.inject import Injector
from wedgehog.harness.inject.processes import Hit
from wedgehog.harness.network.base import Address, Link, NetworkError
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.event import BeaconSeen, ChatAsked, StoreAsked, ToolAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.run.control import CONTROL_TOOLS
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.trigger import CHAT, HOST, STORE
from wedgehog.harness.services.beacon import BeaconPhase
from wedgehog.harness.services.chat import ChatService
from wedgehog.harness.services.database import Database
from wedgehog.harness.services.mcp.host import NoToolHostError, ToolHost
from wedgehog.harness.stdio_proxy.launch import ARGV as PIPE_ARGV


class RunServices:
    """What stands behind `tool:mcp`, `ipc:mcp`, `store:db` and `chat`. An async context manager.

    Links go to `upstreams`; when they are open, `connect` is told. A run without such tools has none of it.
    """

    def __init__(
        self,
        scenario: Scenario,
        agent: AgentSpec,
        nemesis: Injector,
        history: History,
        positions: Positions,
        clock: Clock,
        time_scale: float,
    ) -> None:
        """Nothing is started yet."""
        self._scenario, self._agent, self._nemesis, self._history = scenario, agent, nemesis, history
        self._positions, self._clock, self._scale = positions, clock, time_scale
        self._links: Mapping[str, Link] = {}
        self.host: ToolHost | None = None
        self.database: Database | None = None
        self.chat: ChatService | None = None
        self._stack = contextlib.AsyncExitStack()

    def place(self, folder: Path, mark: str, log: Path) -> Self:
        """Where the host's files go, and what its processes carry."""
        if self._agent.tools is not None:
            tools = self._scenario.tools or CONTROL_TOOLS
            way, clock, scale = self._agent.tools, self._clock, self._scale
            pipe = (*PIPE_ARGV, "--name", "mcp", "--")
            self.host = ToolHost(tools, way, folder, mark, log, clock, scale, self._nemesis.tools, self, pipe)
        return self

    async def __aenter__(self) -> Self:
        """Start what this run needs.

        Raises:
            AgentError: the tool host cannot be had.
        """
        try:
            if self.host is not None:
                await self._stack.enter_async_context(self.host)
                self._nemesis.agent.kill_server = self._kill
                self._nemesis.tools.restart_server = self.host.restart_server
            if self._scenario.store is not None:
                latency_s = self._scenario.store.latency_s / self._scale
                database = Database(latency_s, self._clock, self._store_asked, self._store_gate)
                self.database = await self._stack.enter_async_context(database)
            if self._agent.chat is not None:
                self.chat = await self._stack.enter_async_context(ChatService(self._clock, self._scale))
                self.chat.asked, self.chat.gate = self._chat_asked, self._chat_gate
                self.chat.left = self._nemesis.tools.left_chat
                self.chat.closes = any(
                    words.link == CHAT and words.at.phase == "request" for words in self._scenario.faults
                )
        except BaseException as wrong:
            await self._stack.aclose()
            if isinstance(wrong, NoToolHostError):
                raise AgentError(str(wrong)) from None
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """End it."""
        await self._stack.aclose()

    # ---- links

    @property
    def upstreams(self) -> dict[str, Address]:
        """The links that must be opened, and where they go."""
        found: dict[str, Address] = {}
        if self.host is not None and self.host.way == "http":
            found[HOST] = self.host.address
        if self.database is not None:
            found[STORE] = self.database.address
        if self.chat is not None:
            found[CHAT] = self.chat.address
        return found

    def connect(self, links: Mapping[str, Link]) -> None:
        """The links are open."""
        self._links = links
        if self.host is not None:
            self.host.link = links.get(HOST)

    @property
    def tool_url(self) -> str | None:
        """MCP over HTTP, through its link."""
        return f"http://{_at(self._links[HOST])}/mcp" if HOST in self._links else None

    @property
    def tool_command(self) -> str | None:
        """MCP over stdio."""
        return str(self.host.command) if self.host is not None and self.host.way == "stdio" else None

    @property
    def store_url(self) -> str | None:
        """The database, through its link."""
        return f"tcp://{_at(self._links[STORE])}" if STORE in self._links else None

    @property
    def chat_url(self) -> str | None:
        """The chat service, through its link."""
        return f"http://{_at(self._links[CHAT])}" if CHAT in self._links else None

    # ---- what happens

    def offered(self, call: ToolCall) -> None:
        """The model makes this tool call, under its token as the id's beginning."""
        if self.host is not None:
            whole = call.raw_args is None
            self.host.offers.add(call.id.rpartition("a")[0], call.name, call.args if whole else None)

    def called(self, tool: str, token: str, server: int) -> None:
        """A server of the tool host was called."""
        if not self._history.sealed:
            self._history.add(ToolAsked(tool=tool, token=token, server=server))

    async def beacon(self, token: str, phase: BeaconPhase, exit_code: int | None) -> None:
        """A call to the tool host has started, or is done; return when what that sets off at once has been done."""
        if self._history.sealed:
            return
        self._history.add(BeaconSeen(token=token, phase=phase, exit_code=exit_code))
        if set_off := self._nemesis.beacon(token, phase):
            await asyncio.wait(set_off)

    def failed(self, wrong: NetworkError) -> None:
        """A link failed whoever writes to it: the run is an error."""
        self._nemesis.state.fail(wrong)

    def _store_asked(self, number: int, verb: str, rows: int, latency_s: float) -> None:
        if not self._history.sealed:
            self._history.add(StoreAsked(number=number, verb=verb, rows=rows, latency_s=round(latency_s, 4)))

    async def _store_gate(self, conn: Address, written: int) -> None:
        turn = self._positions.under_way
        try:
            await self._nemesis.tools.at_query(turn, (conn, written))
            await self._links[STORE].admit(conn, written)
        except NetworkError as wrong:
            self.failed(wrong)
            await asyncio.Event().wait()

    def _chat_asked(self, what: Literal["poll", "send"], text: str) -> None:
        if not self._history.sealed:
            self._history.add(ChatAsked(what=what, text=text))

    async def _chat_gate(self, what: str, conn: Address, written: int) -> None:
        try:
            await self._nemesis.tools.at_chat(what, (conn, written))
            await self._links[CHAT].admit(conn, written)
        except NetworkError as wrong:
            self._nemesis.state.fail(wrong)

    async def _kill(self, number: signal.Signals) -> Hit | None:
        assert self.host is not None  # noqa: S101  nobody else hands this out
        pids = await self.host.kill_server(number)
        names = ", ".join(map(str, pids))
        return Hit(pids, f"{number.name} was delivered to the tool server {names}") if pids else None


def _at(link: Link) -> str:
    return f"{link.address[0]}:{link.address[1]}"
