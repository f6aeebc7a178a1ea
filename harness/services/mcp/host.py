"""The tool host of one run: MCP servers that ask the harness for each result.

```
 agent ═▶ link tool:mcp ═▶ front ═▶ server (HTTP)                the front keeps its address when the server dies,
                                      └─ control ─▶ harness      and counts the bytes of each connection

 agent ═▶ wedgehog-pipe ═▶ server (stdio) ─ control ─▶ harness   the agent starts this server by `command`
```
"""

import asyncio
import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from wedgehog.harness.faults.base import PortFault
from wedgehog.harness.faults.result_fault import Result
from wedgehog.harness.network.base import Address, Link, NetworkError, Strike, WholeLink
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.network.relay import RelayLink
from wedgehog.harness.record.clock import Clock, first_of
from wedgehog.harness.sandbox.cleanup import RUN_VARIABLE
from wedgehog.harness.sandbox.owned import Owned, Tree
from wedgehog.harness.scenario.host_tools import HostTool
from wedgehog.harness.services.beacon import BeaconPhase, dotted
from wedgehog.harness.services.mcp.call_gate import CallGate, CallRecorder, ConnectionOffset, ResultSource
from wedgehog.harness.services.mcp.channel import ToolServer, ToolServerChannel
from wedgehog.harness.services.mcp.offers import Offers

START_S = 60.0
GONE_S = 5.0
"""Time for a server to end after SIGKILL."""
LIVES_ON = (signal.SIGSTOP, signal.SIGCONT)
CROSSING_S = 5.0
"""Time for a server's bytes to cross the loopback."""
LOOK_EVERY_S = 0.002
PROGRAM = "wedgehog.harness.services.mcp.server"

McpTransport = Literal["http", "stdio"]


def tools_unavailable_reason() -> str | None:
    """Return why this machine cannot run a tool host; None if it can."""
    return None if find_spec("mcp") else "the tool host needs the mcp package: pip install 'wedgehog[tools]'"


class NoToolHostError(Exception):
    """The tool host is not available; a message of one line."""


class ToolRecorder(CallRecorder, Protocol):
    """The recorder's interface for tool calls."""

    def beacon(self, token: str, phase: BeaconPhase, exit_code: int | None) -> Awaitable[None]:
        """Record that a tool call (turn.step.call) started or is done; wait for the faults that this triggers."""

    def failed(self, wrong: NetworkError) -> None:
        """Record that the link failed, which makes the run an error."""


class ToolHost:
    """Serves a scenario's tools over MCP. An async context manager, which sets `address` or `command`."""

    def __init__(
        self,
        tools: Mapping[str, HostTool],
        way: McpTransport,
        folder: Path,
        mark: str,
        log: Path,
        clock: Clock,
        time_scale: float,
        source: ResultSource,
        records: ToolRecorder,
        pipe: Sequence[str] = (),
        link: Callable[[], Link | None] = lambda: None,
    ) -> None:
        """`folder` is the run's folder, `mark` marks its processes, `pipe` is a prefix of a stdio server's command.

        `link` returns the link to the front, once it is open; the port of a dead server is closed on it.
        """
        self.tools, self.way, self._folder, self._mark, self._log = tools, way, folder, mark, log
        self._clock, self._scale, self._source, self._records, self._pipe = clock, time_scale, source, records, pipe
        self.offers = Offers()
        self._gate = CallGate(self.offers, source, records)
        self._link = link
        self._process: Owned | None = None
        self._refused: Strike | None = None
        self._results: dict[str, tuple[Result, Sequence[Any]]] = {}
        self._stack = contextlib.AsyncExitStack()
        self._watching: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        self._doomed = False
        """Whether a terminating signal was sent to the running server."""

    @property
    def address(self) -> Address:
        """The link's upstream (HTTP)."""
        return self._front.address

    @property
    def command(self) -> Path:
        """The executable that an agent starts (stdio)."""
        return self._folder / "wedgehog-tools"

    @property
    def pids(self) -> tuple[int, ...]:
        """The pids of the running servers."""
        return tuple(server.pid for server in self._control.servers)

    async def __aenter__(self) -> Self:
        """Start the server (HTTP), or write its command (stdio); raise NoToolHostError if that is not possible."""
        if why := tools_unavailable_reason():
            raise NoToolHostError(why)
        try:
            listed = [
                {"name": name, "description": tool.says or name, "inputSchema": tool.schema_of_input}
                for name, tool in self.tools.items()
            ]
            self._control = await self._stack.enter_async_context(ToolServerChannel(listed, self._asked))
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
        if self._watching:
            self._watching.cancel()
        await self._stack.aclose()

    # ---- server faults

    async def kill_server(self, number: signal.Signals = signal.SIGKILL) -> tuple[int, ...]:
        """Send a signal to every running server and return their pids; a dead server's port refuses connections."""
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
        ended = [self._process.ended()] if self._process else []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GONE_S):
                await asyncio.gather(*(server.gone.wait() for server in servers), *ended)

    async def restart_server(self) -> None:
        """Restart a dead HTTP server at the same address, or raise NoToolHostError; the agent restarts a stdio one."""
        async with self._changing:
            if self._process is None or (self._process.exit_code is None and not self._doomed):
                return
            self._process.kill()  # a slow reaction to an earlier signal must not affect the next turn
            await self._process.ended()
            await self._start()
            self._front.upstream = (HOST, self._port)
            if self._refused is not None:
                await self._refused.heal()
                self._refused = None

    async def _close_port(self) -> None:
        link = self._link()
        if link is not None and self._refused is None and self.way == "http":
            self._refused = await link.strike(PortFault(), WholeLink())

    async def _start(self) -> None:
        env = {name: os.environ[name] for name in ("PATH", "LANG", "HOME") if name in os.environ}
        env["WEDGEHOG_TOOLS"] = self._control.secret_address
        # Drop earlier servers: the next one in the queue must be the new one.
        while not self._control.came.empty():
            self._control.came.get_nowait()
        argv = [sys.executable, "-P", "-m", PROGRAM, "http"]
        self._doomed = False
        process = self._process = await self._tree.start(argv, env=env, cwd=self._folder, log=self._log)
        coming = asyncio.create_task(self._next_port())
        try:
            await first_of(coming, process.ended(), timeout_s=START_S)
            if not coming.done() or coming.exception() is not None:
                await process.stderr.drained(0.2)
                said = process.stderr.text().strip().rpartition("\n")[2]
                raise NoToolHostError(f"the tool host's server did not start: {said or 'it printed nothing'}")
            self._port = coming.result()
        finally:
            coming.cancel()
        self._watching = asyncio.create_task(self._watch(process))

    async def _next_port(self) -> int:
        return await (await self._control.came.get()).ready

    async def _watch(self, process: Owned) -> None:
        """Close the port when the server ends."""
        await process.ended()
        with contextlib.suppress(NetworkError):
            await self._close_port()

    def _write_command(self) -> None:
        given = {"WEDGEHOG_TOOLS": self._control.secret_address, RUN_VARIABLE: f"{self._mark}/agent/tools"}
        words = [f"{name}={value}" for name, value in given.items()]
        server = ["env", *words, sys.executable, "-P", "-m", PROGRAM, "stdio"]
        self.command.write_text(f"#!/bin/sh\nexec {shlex.join([*self._pipe, *server])}\n", encoding="utf-8")
        self.command.chmod(0o700)

    # ---- questions of the servers

    async def _asked(self, server: ToolServer, question: Mapping[str, Any]) -> Mapping[str, Any]:
        match question["do"]:
            case "ready":
                server.ready.set_result(int(question["port"]))
            case "begin":
                name, arguments = str(question["name"]), dict(question["arguments"])
                return self._gate.refusal(server.pid, name, arguments, bool(question["authorized"]))
            case "refused":
                await self._offset(question["client"], int(question["written"]))
                self._gate.written(server.pid, int(question["refusal"]))
            case "call":
                return await self._called(server, str(question["name"]), dict(question["arguments"]))
            case "write":
                await self._may_write(str(question["token"]), question["client"], int(question["written"]))
            case _:
                await self._written(str(question["token"]), question["client"], int(question["written"]))
        return {}

    async def _called(self, server: ToolServer, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        tool, token = self.tools[name], self.offers.match(name, arguments)
        self._records.called(name, dotted(token) if token else "", server.pid)
        words = tool.answer if tool.error is None else tool.error
        result = Result(words, tool.error is not None, tool.delay_s / self._scale, image=tool.image)
        if token:
            await self._records.beacon(dotted(token), "started", None)
            self._results[token] = result, _ = self._source.asked(dotted(token), result)
        if result.lost:
            await asyncio.Event().wait()
        await self._clock.sleep(result.delay_s)
        form = {"copies": result.copies, "broken": result.broken, "bytes": result.bytes}
        form |= {"empty": result.empty, "by_protocol": result.by_protocol, "image": result.image}
        return {"token": token, "text": result.text, "is_error": result.is_error, **form}

    async def _may_write(self, token: str, client: Any, written: int) -> None:
        """Arm the faults of a response, then wait while a fault is armed for another connection."""
        offset = await self._offset(client, written)
        try:
            if token:
                await self._source.at(dotted(token), offset)
            link = self._link()
            if offset is not None and link is not None:
                await link.admit(*offset)
        except NetworkError as wrong:
            self._records.failed(wrong)
            await asyncio.Event().wait()

    async def _written(self, token: str, client: Any, written: int) -> None:
        await self._offset(client, written)  # wait until the bytes have passed the front
        result, faults = self._results.get(token, (Result(""), ()))
        self._source.written(faults)
        await self._records.beacon(dotted(token), "done", 1 if result.is_error else 0)

    async def _offset(self, client: Any, written: int) -> ConnectionOffset | None:
        """Wait until the front has passed `written` bytes of the server connection `client`; return its agent side."""
        if client is None:
            return None
        for _ in range(round(CROSSING_S / LOOK_EVERY_S)):
            connection = next((one for one in self._front.connections if one.peer == tuple(client)), None)
            agent_side = connection.client.transport if connection is not None else None
            if connection is None or agent_side is None:
                return None
            if connection.down.carried >= written:
                host, port = agent_side.get_extra_info("peername")[:2]
                return (host, port), written
            await self._clock.sleep(LOOK_EVERY_S)
        return None
