"""The tool host of one run: MCP servers that ask us what to answer.

```
 agent ═▶ link tool:mcp ═▶ front ═▶ server (HTTP)           the front is ours, and stays where it is when the server
                                      └─ control ─▶ us      dies; it knows both ends of each connection, and its bytes

 agent ═▶ wedgehog-pipe ═▶ server (stdio) ─ control ─▶ us   the agent starts it, by `command`
```
"""

import asyncio
import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Awaitable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from wedgehog.harness.faults.base import PortFault
from wedgehog.harness.faults.result_fault import Result
from wedgehog.harness.network.base import Address, Link, NetworkError, Strike, WholeLink
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.network.relay import RelayLink
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.sandbox import RUN_VARIABLE, Owned, Tree
from wedgehog.harness.scenario.host_tools import HostTool
from wedgehog.harness.services.beacon import BeaconPhase, dotted
from wedgehog.harness.services.mcp.channel import ToolServer, ToolServerChannel
from wedgehog.harness.services.mcp.offers import Offers

START_S = 60.0
GONE_S = 5.0
"""For a server that got SIGKILL to be gone."""
LIVES_ON = (signal.SIGSTOP, signal.SIGCONT)
CROSSING_S = 5.0
"""For bytes that a server has written to cross the loopback."""
LOOK_EVERY_S = 0.002
PROGRAM = "wedgehog.harness.services.mcp.server"

McpTransport = Literal["http", "stdio"]
ConnectionOffset = tuple[Address, int]
"""A connection as the link's upstream knows it, and how many bytes it has carried towards the agent."""


def why_no_tools() -> str:
    """Why there can't be a tool host on this machine; empty where there can."""
    return "" if find_spec("mcp") else "the tool host needs the mcp package: pip install 'wedgehog[tools]'"


class NoToolHostError(Exception):
    """The tool host cannot be had; one line for a person."""


class ResultSource(Protocol):
    """What the host asks about each call, and tells."""

    def asked(self, token: str, result: Result) -> tuple[Result, Sequence[Any]]:
        """The result of this call as the plan's faults leave it, and the faults that did it."""
        ...

    def written(self, faults: Sequence[Any]) -> None:
        """The result that these faults harmed has been written."""
        ...

    async def at(self, token: str, spot: ConnectionOffset | None) -> None:
        """A result is about to be written there: strike what is due; return when its bytes may pass."""
        ...


class ToolRecorder(Protocol):
    """Where the host writes down what it sees."""

    def called(self, tool: str, token: str, server: int) -> None:
        """A server was called."""
        ...

    def beacon(self, token: str, phase: BeaconPhase, exit_code: int | None) -> Awaitable[None]:
        """A tool call (turn.step.call) has started, or is done; done when whatever that sets off has been."""
        ...

    def failed(self, wrong: NetworkError) -> None:
        """The link failed us: the run is an error."""
        ...


class ToolHost:
    """Serves a scenario's tools over MCP. An async context manager; inside it, `address` or `command` is there."""

    def __init__(
        self,
        tools: Mapping[str, HostTool],
        way: McpTransport,
        folder: Path,
        mark: str,
        log: Path,
        clock: Clock,
        time_scale: float,
        harm: ResultSource,
        records: ToolRecorder,
        pipe: Sequence[str] = (),
    ) -> None:
        """`folder` is the run's own, `mark` what its processes carry; `pipe` stands before a stdio server's command."""
        self.tools, self.way, self._folder, self._mark, self._log = tools, way, folder, mark, log
        self._clock, self._scale, self._harm, self._records, self._pipe = clock, time_scale, harm, records, pipe
        self.offers = Offers()
        self.link: Link | None = None
        """The link to the front, once it is open: replies wait for it, and a dead server's port is closed on it."""
        self._process: Owned | None = None
        self._refused: Strike | None = None
        self._results: dict[str, tuple[Result, Sequence[Any]]] = {}
        self._stack = contextlib.AsyncExitStack()
        self._watching: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        self._doomed = False
        """A signal to end was sent to the server that runs."""

    @property
    def address(self) -> Address:
        """Where the link goes to (HTTP)."""
        return self._front.address

    @property
    def command(self) -> Path:
        """The executable that an agent starts (stdio)."""
        return self._folder / "wedgehog-tools"

    @property
    def pids(self) -> tuple[int, ...]:
        """The servers that run now."""
        return tuple(server.pid for server in self._control.servers)

    async def __aenter__(self) -> Self:
        """Start the server, or write the command that does.

        Raises:
            NoToolHostError: the `mcp` package is missing, or the server did not start.
        """
        if why := why_no_tools():
            raise NoToolHostError(why)
        try:
            self._control = await self._stack.enter_async_context(ToolServerChannel(_listed(self.tools), self._asked))
            if self.way == "http":
                self._tree = Tree(f"{self._mark}/tools")
                self._stack.push_async_callback(self._tree.end)
                await self._start()
                self._front = await RelayLink("front", (HOST, self._port)).listen()
                self._stack.push_async_callback(self._front.close)
            else:
                self._write_command()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """End every server."""
        if self._watching:
            self._watching.cancel()
        await self._stack.aclose()

    # ---- what can be done to the server

    async def kill_server(self, number: signal.Signals = signal.SIGKILL) -> tuple[int, ...]:
        """Send a signal to every server that runs; the pids that got it.

        A server that dies by it is gone as a real one would be: its connections end, its port refuses.
        """
        async with self._changing:
            hit = list(self._control.servers)
            self._doomed = self._doomed or number not in LIVES_ON
            if number == signal.SIGKILL:
                await self._close_port()
            for server in hit:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(server.pid, number)
            if number == signal.SIGKILL:
                await self._gone(hit)
            return tuple(server.pid for server in hit)

    async def _gone(self, servers: Sequence[ToolServer]) -> None:
        ends: list[asyncio.Task[Any]] = [asyncio.create_task(server.gone.wait()) for server in servers]
        ends += [asyncio.create_task(self._process.ended())] if self._process else []
        if ends:
            await asyncio.wait(ends, timeout=GONE_S)
        for end in ends:
            end.cancel()

    async def restart_server(self) -> None:
        """A dead server is back, at the same address; without memory, as any process (one that lives stays).

        A stdio server is its client's to start again.

        Raises:
            NoToolHostError: it did not start.
        """
        async with self._changing:
            if self.way == "stdio" or self._process is None:
                return
            if self._process.exit_code is None and not self._doomed:
                return
            self._process.kill()  # a signal to end that it takes its time to obey must not hit the next turn
            await self._process.ended()
            await self._start()
            self._front.upstream = (HOST, self._port)
            if self._refused is not None:
                await self._refused.heal()
                self._refused = None

    async def _close_port(self) -> None:
        if self.link is not None and self._refused is None and self.way == "http":
            self._refused = await self.link.strike(PortFault(), WholeLink())

    async def _start(self) -> None:
        env = {name: os.environ[name] for name in ("PATH", "LANG", "HOME") if name in os.environ}
        env["WEDGEHOG_TOOLS"] = self._control.address
        # Servers of an earlier life have left; whoever comes now is the new one.
        while not self._control.came.empty():
            self._control.came.get_nowait()
        argv = [sys.executable, "-P", "-m", PROGRAM, "http"]
        self._doomed = False
        process = self._process = await self._tree.start(argv, env=env, cwd=self._folder, log=self._log)
        coming, ended = asyncio.create_task(self._coming()), asyncio.create_task(process.ended())
        try:
            await asyncio.wait({coming, ended}, timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done() or coming.exception() is not None:
                await process.stderr.drained(0.2)
                said = process.stderr.text().strip().rpartition("\n")[2]
                raise NoToolHostError(f"the tool host's server did not start: {said or 'it said nothing'}")
            self._port = coming.result()
        finally:
            coming.cancel()
            ended.cancel()
        self._watching = asyncio.create_task(self._watch(process))

    async def _coming(self) -> int:
        return await (await self._control.came.get()).ready

    async def _watch(self, process: Owned) -> None:
        """A server that ends by itself, or by a signal that it may obey slowly, leaves a port that refuses."""
        await process.ended()
        with contextlib.suppress(NetworkError):
            await self._close_port()

    def _write_command(self) -> None:
        given = {"WEDGEHOG_TOOLS": self._control.address, RUN_VARIABLE: f"{self._mark}/agent/tools"}
        words = [f"{name}={value}" for name, value in given.items()]
        server = ["env", *words, sys.executable, "-P", "-m", PROGRAM, "stdio"]
        self.command.write_text(f"#!/bin/sh\nexec {shlex.join([*self._pipe, *server])}\n", encoding="utf-8")
        self.command.chmod(0o700)

    # ---- what servers ask

    async def _asked(self, server: ToolServer, question: Mapping[str, Any]) -> Mapping[str, Any]:
        do = question["do"]
        if do == "ready":
            server.ready.set_result(int(question["port"]))
        elif do == "call":
            return await self._called(server, str(question["name"]), dict(question["arguments"]))
        elif do == "write":
            await self._may_write(str(question["token"]), question["client"], int(question["written"]))
        else:
            await self._written(str(question["token"]), question["client"], int(question["written"]))
        return {}

    async def _called(self, server: ToolServer, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        tool, token = self.tools[name], self.offers.match(name, arguments)
        self._records.called(name, dotted(token) if token else "", server.pid)
        words = tool.answer if tool.error is None else tool.error
        result = Result(words, tool.error is not None, tool.delay_s / self._scale)
        if token:
            await self._records.beacon(dotted(token), "started", None)
            self._results[token] = result, _ = self._harm.asked(dotted(token), result)
        if result.lost:
            await asyncio.Event().wait()
        await self._clock.sleep(result.delay_s)
        form = {"copies": result.copies, "broken": result.broken, "bytes": result.bytes}
        return {"token": token, "text": result.text, "is_error": result.is_error, **form}

    async def _may_write(self, token: str, client: Any, written: int) -> None:
        """A response wants to go on: with all strikes armed, and while no other connection's strike is."""
        spot = await self._spot(client, written)
        try:
            if token:
                await self._harm.at(dotted(token), spot)
            if spot is not None and self.link is not None:
                await self.link.admit(*spot)
        except NetworkError as wrong:
            self._records.failed(wrong)
            await asyncio.Event().wait()

    async def _written(self, token: str, client: Any, written: int) -> None:
        await self._spot(client, written)  # only what has passed the front is on its way to the agent
        result, faults = self._results.get(token, (Result(""), ()))
        self._harm.written(faults)
        await self._records.beacon(dotted(token), "done", 1 if result.is_error else 0)

    async def _spot(self, client: Any, written: int) -> ConnectionOffset | None:
        """The connection that a server knows as `client`, once all that it has written there has passed the front."""
        if client is None:
            return None
        waited_s = 0.0
        while waited_s < CROSSING_S:
            passage = next((one for one in self._front.connections if one.peer == tuple(client)), None)
            agent_side = passage.client.transport if passage is not None else None
            if passage is None or agent_side is None:
                return None
            if passage.down.carried >= written:
                host, port = agent_side.get_extra_info("peername")[:2]
                return (host, port), written
            await self._clock.sleep(LOOK_EVERY_S)
            waited_s += LOOK_EVERY_S
        return None


def _listed(tools: Mapping[str, HostTool]) -> list[dict[str, Any]]:
    return [
        {"name": name, "description": tool.says or name, "inputSchema": tool.schema_of_input}
        for name, tool in tools.items()
    ]
