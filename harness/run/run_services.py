"""What an agent talks to beside the model in one run, and the links of the run."""

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

from wedgehog.fake_llm.reply import ToolCall
from wedgehog.fake_llm.script.position import Positions
from wedgehog.fake_llm.usage import carries_all
from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.service_spec import Chat
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.inject.targets import Hit
from wedgehog.harness.network.base import Address, Link, Network, NetworkError
from wedgehog.harness.network.ports import HOST as LOOPBACK
from wedgehog.harness.network.ports import free_port
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.service import BeaconSeen, ChatAsked, PageAsked, StoreAsked, ToolAsked, ToolRefused
from wedgehog.harness.record.events.turn import DeliveredAgain, StimulusGiven
from wedgehog.harness.record.history import History
from wedgehog.harness.run.control import CONTROL_TOOLS
from wedgehog.harness.scenario.fault_plan import FaultPlan
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.trigger import BACKEND, CHANNEL, CHAT, HOST, STORE
from wedgehog.harness.services.backend import BackendProxy
from wedgehog.harness.services.beacon import BeaconPhase, dotted
from wedgehog.harness.services.database import Database
from wedgehog.harness.services.mcp.host import NoToolHostError, ToolHost
from wedgehog.harness.stdio_proxy.launch import ARGV as PIPE_ARGV

if TYPE_CHECKING:
    from wedgehog.harness.services.chat.service import ChatNews, ChatService

CANARY = "sk-wedgehog-canary"
"""The key that the fake model accepts, and that signs what a chat service brings."""
WEB = "tool:web"


class Links(dict[str, Link]):
    """The links of a run by name, each from the moment it is open; an opened link gets a proxy of its own."""

    def __init__(self, network: Network, plan: FaultPlan) -> None:
        """`plan` says which faults a link must allow."""
        super().__init__()
        self.plan, self._network = plan, network

    @contextlib.asynccontextmanager
    async def open(self, name: str, upstream: Address) -> AsyncIterator[None]:
        """A link to `upstream`, closed on the way out. Errors: NetworkError."""
        requests = self.plan.hits_requests(name) and not name.startswith(BACKEND)
        async with self.beside(name, upstream, requests=requests) as self[name]:
            yield

    @contextlib.asynccontextmanager
    async def beside(self, name: str, upstream: Address, *, requests: bool = False) -> AsyncIterator[Link]:
        """A link that no name finds, with the faults of this name; `requests` allows faults on requests."""
        link = await self._network.open_link(name, upstream, self.plan.resets(name), requests)
        try:
            yield link
        finally:
            await link.close()

    def url(self, name: str, scheme: str = "http", path: str = "") -> str | None:
        """The agent's address of a link; None if it is not open."""
        if name not in self:
            return None
        host, port = self[name].address
        return f"{scheme}://{host}:{port}{path}"

    def addresses(self) -> dict[str, Address]:
        """The agent's address of each link."""
        return {name: link.address for name, link in self.items()}


class RunServices:
    """What a run needs behind `tool:mcp`, `ipc:mcp`, `tool:web`, `store:db` and `chat`, opened with a link to each."""

    def __init__(
        self,
        scenario: Scenario,
        agent: AgentSpec,
        links: Links,
        injector: Injector,
        history: History,
        positions: Positions,
        clock: Clock,
        time_scale: float,
        folder: Path,
        mark: str,
        log: Path,
    ) -> None:
        """`folder` is the run's own, `mark` what the tool host's processes carry."""
        self._links, self._injector, self._history, self._positions = links, injector, history, positions
        self._agent = agent
        self._scenario, self._clock, self._scale = scenario, clock, time_scale
        self._host: ToolHost | None = None
        if agent.tools is not None:
            tools, pipe = scenario.tools or CONTROL_TOOLS, (*PIPE_ARGV, "--name", "mcp", "--")
            way, front = agent.tools, lambda: links.get(HOST)
            self._host = ToolHost(
                tools, way, folder, mark, log, clock, time_scale, injector.tools, self, pipe, link=front
            )
        self.chat = self._chat_service(agent.chat) if agent.chat is not None else None
        self.port = free_port() if agent.page is not None and links.plan.strikes(CHANNEL) else None
        """Where the service of a page has to listen, behind a link; None: anywhere."""
        self._pages_offered: dict[str, str] = {}
        """Paths of pages that the model has asked for, each with the token of its tool call."""
        self._stack = contextlib.AsyncExitStack()

    def _chat_service(self, chat: Chat) -> "ChatService":
        from wedgehog.harness.services.chat.service import ChatService
        from wedgehog.harness.services.chat.vendors import api_of

        faults, chats = self._injector.tools, len(self._scenario.sessions)
        return ChatService(
            self._clock,
            self._scale,
            api_of(chat.api, CANARY, chat.event, chats),
            chats=chats,
            asked=self._chat_asked,
            gate=self._chat_gate,
            left=faults.left_chat,
            refuses=faults.chat_refusal,
            again=self._delivered_again,
            closes=any(words.link == CHAT and words.at.phase == "request" for words in self._scenario.faults),
        )

    async def __aenter__(self) -> Self:
        """Start what this run needs. Errors: AgentError (no tool host can be had), NetworkError (no link)."""
        async with contextlib.AsyncExitStack() as stack:
            upstreams: dict[str, Address] = {}
            if self._host is not None:
                try:
                    await stack.enter_async_context(self._host)
                except NoToolHostError as wrong:
                    raise AgentError(str(wrong)) from None
                if self._host.way == "http":
                    upstreams[HOST] = self._host.address
            if self._scenario.store is not None:
                latency_s = self._scenario.store.latency_s / self._scale
                database = Database(latency_s, self._clock, self._store_asked, self._store_gate)
                upstreams[STORE] = (await stack.enter_async_context(database)).address
            if self._scenario.web:
                from wedgehog.harness.services.pages import PageServer  # aiohttp takes long to import

                pages = PageServer(self._scenario.web, self._scale, self._clock, self._page_asked)
                upstreams[WEB] = (await stack.enter_async_context(pages)).address
            if self.chat is not None:
                upstreams[CHAT] = (await stack.enter_async_context(self.chat)).address
            if self.port is not None:
                upstreams[CHANNEL] = (LOOPBACK, self.port)
            for name, upstream in upstreams.items():
                await stack.enter_async_context(self._links.open(name, upstream))
            for name, link in self._agent.links.items():
                await self._open_backend(stack, BACKEND + name, link.address)
            self._stack = stack.pop_all()
        return self

    async def _open_backend(self, stack: contextlib.AsyncExitStack, name: str, server: Address) -> None:
        """A link to a server of the user's own; bytes to the server cross a second one, if a fault is planned there."""
        plan = self._links.plan
        proxy = BackendProxy(name, server, self._injector.backends, resets=plan.resets(name))
        await stack.enter_async_context(proxy)
        if plan.hits_requests(name):
            proxy.request_link = await stack.enter_async_context(self._links.beside(name, proxy.request_address))
        await stack.enter_async_context(self._links.open(name, proxy.address))
        proxy.link = self._links[name]

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()

    @property
    def tool_command(self) -> str | None:
        """The command of an MCP server over stdio; None if the agent's tools are not there."""
        return str(self._host.command) if self._host is not None and self._host.way == "stdio" else None

    # ---- what happens

    def offered(self, call: ToolCall) -> None:
        """The model makes this tool call, whose id begins with its token."""
        if self._host is not None:
            args = call.args if carries_all(call) else None
            self._host.offers.add(call.id.rpartition("a")[0], call.name, args)
        if web := self._links.url(WEB):
            said = json.dumps(call.args)
            paths = [path for path in self._scenario.web if f'{web}{path}"' in said]
            self._pages_offered |= dict.fromkeys(paths, dotted(call.id.rpartition("a")[0]))

    def called(self, tool: str, token: str, server: int) -> None:
        """A server of the tool host was called."""
        self._history.add_unless_sealed(ToolAsked(tool=tool, token=token, server=server))

    def refused(self, status: int, server: int) -> None:
        """A server of the tool host refused a request."""
        self._history.add_unless_sealed(ToolRefused(turn=self._injector.turn, status=status, server=server))

    async def beacon(self, token: str, phase: BeaconPhase, exit_code: int | None) -> None:
        """A call to the tool host has started, or is done; return when the faults that it triggers are armed."""
        if self._history.sealed:
            return
        self._history.add(BeaconSeen(token=token, phase=phase, exit_code=exit_code))
        if set_off := self._injector.beacon(token, phase):
            await asyncio.wait(set_off)

    def failed(self, wrong: NetworkError) -> None:
        """A link failed: the run is an error."""
        self._injector.fail(wrong)

    async def kill_server(self, number: signal.Signals) -> Hit | None:
        """Send a signal to the tool host's servers; None if there are none."""
        pids = await self._host.kill_server(number) if self._host is not None else ()
        names = ", ".join(map(str, pids))
        return Hit(pids, f"{number.name} was delivered to the tool server {names}") if pids else None

    async def restart_server(self) -> None:
        """Start a killed server of the tool host again. Errors: NoToolHostError."""
        if self._host is not None:
            await self._host.restart_server()

    def _page_asked(self, path: str, status: int) -> None:
        if self._history.sealed:
            return
        self._history.add(PageAsked(path=path, status=status))
        if token := self._pages_offered.pop(path, ""):  # its tool has begun; a second request is no second call
            self._injector.beacon(token, "started")

    def _store_asked(self, number: int, verb: str, rows: int, latency_s: float) -> None:
        asked = StoreAsked(number=number, verb=verb, rows=rows, latency_s=round(latency_s, 4))
        self._history.add_unless_sealed(asked)

    async def _store_gate(self, conn: Address, written: int) -> None:
        turn = self._positions.under_way
        try:
            await self._injector.tools.at_query(turn, (conn, written))
            await self._links[STORE].admit(conn, written)
        except NetworkError as wrong:
            self.failed(wrong)
            await asyncio.Event().wait()

    def _chat_asked(self, what: "ChatNews", text: str, chat: int) -> None:
        sessions = self._scenario.sessions
        session = sessions[chat] if len(sessions) > 1 and 0 <= chat < len(sessions) else ""
        self._history.add_unless_sealed(ChatAsked(what=what, text=text, session=session))

    def _delivered_again(self, text: str) -> None:
        """A message, which begins with the marker of its turn."""
        turns = {it.marker: it.turn for it in self._history.of(StimulusGiven)}
        turn = turns.get(text.partition(" ")[0], self._positions.under_way)
        self._history.add_unless_sealed(DeliveredAgain(turn=turn))

    async def _chat_gate(self, what: str, conn: Address, written: int) -> None:
        try:
            await self._injector.tools.at_chat(what, (conn, written))
            await self._links[CHAT].admit(conn, written)
        except NetworkError as wrong:
            self.failed(wrong)
