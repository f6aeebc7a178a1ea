"""MCP clients through a faulty pipe see a server that really hangs, ends, dies or is slow."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.wire.cut import Cut
from wedgehog.harness.faults.wire.slow import Latency
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.network.base import Downstream, WholeLink

SERVER = """
import json, os, signal, sys, time
faulty = sys.argv[1]
def reply(asked, result):
    return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode() + b"\\n"
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        info = {"name": "weather", "version": "1"}
        version = asked["params"]["protocolVersion"]
        said = reply(asked, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif asked["method"] == "tools/list":
        said = reply(asked, {"tools": [{"name": "weather", "inputSchema": {"type": "object"}}]})
    elif asked["method"] == "tools/call":
        said = reply(asked, {"content": [{"type": "text", "text": "fine " * 1000}], "isError": False})
        if faulty != "well":
            time.sleep(0.4 if faulty == "slow" else 0)
            os.write(1, said[:100] if faulty != "slow" else b"")
        if faulty == "hangs":
            signal.pause()
        if faulty == "ends":
            os.close(1)
            continue
        if faulty == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
    elif "id" in asked:
        wrong = {"code": -32601, "message": "Method not found"}
        said = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": wrong}).encode() + b"\\n"
    else:
        continue
    os.write(1, said)
"""
Call = Callable[[], Awaitable[str]]
WELL = "False: 5000"
FAULTS: dict[str, WireFault] = {"hangs": Stall(), "ends": Cut("fin"), "dies": Cut("rst"), "slow": Latency(0.4)}


WAITS_S = 20.0
"""Time limit of a tool call that gets an answer or an error."""
AT_ONCE_S = {"slow": 0.3, "hangs": 0.3}
"""Calls that take longer are slow; others may take half of their time limit, because the machine may be busy."""
START_S = 4.0
SILENT_S = 0.3
"""Time limit of a call without an answer, and of the end of a server that must be killed."""


@contextlib.asynccontextmanager
async def official(command: str, arguments: list[str], waits_s: float) -> AsyncIterator[Call]:
    """The client of the `mcp` package."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command=command, args=arguments)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        assert [tool.name for tool in (await session.list_tools()).tools] == ["weather"]

        async def call() -> str:
            result = await session.call_tool("weather", {}, read_timeout_seconds=waits_s)
            return f"{result.is_error}: {len(result.content[0].text)}"

        yield call


@contextlib.asynccontextmanager
async def pydantic_ai(command: str, arguments: list[str], waits_s: float) -> AsyncIterator[Call]:
    """Pydantic AI's client, which wraps that one; its start has the same time limit as its calls, so it is longer."""
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset

    transport = StdioTransport(command, arguments, keep_alive=False)
    async with MCPToolset(transport, read_timeout=max(waits_s, START_S)) as tools:
        assert [tool.name for tool in await tools.list_tools()] == ["weather"]

        async def call() -> str:
            return f"False: {len(str(await tools.direct_call_tool('weather', {})))}"

        yield call


CLIENTS = {"mcp": official, "pydantic-ai": pydantic_ai}


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> Any:
    """One client after the other, imported before a time-out runs: that takes seconds on a busy machine."""
    pytest.importorskip("mcp", reason="the MCP client is not installed")
    if request.param == "pydantic-ai":
        pytest.importorskip("pydantic_ai.mcp")
    return CLIENTS[request.param]


async def seen(
    client: Any, front: tuple[str, ...], folder: Path, faulty: str, strike: Any = None, as_if: str = ""
) -> tuple[Any, ...]:
    """What the client's user gets from two tool calls, and whether the session could be closed."""
    (folder / "server.py").write_text(SERVER)
    command, *arguments = (*front, sys.executable, "-S", "-E", str(folder / "server.py"), faulty)
    outcomes: list[str] = []
    waits_s = SILENT_S if as_if == "hangs" else WAITS_S
    at_once_s = AT_ONCE_S.get(as_if, WAITS_S / 2)
    async with asyncio.timeout(60):
        try:
            async with client(command, arguments, waits_s) as call:
                if strike is not None:
                    await strike()
                begun = asyncio.get_running_loop().time()
                for _ in range(2):
                    outcomes.append(await came_to(call()))
                took_s = asyncio.get_running_loop().time() - begun
                outcomes.append("slow" if took_s > at_once_s else "at once")
            outcomes.append("left")
        except Exception as wrong:
            if not outcomes:
                raise  # the client could not even start
            outcomes.append(f"left with {type(wrong).__name__}: {wrong}")
    return tuple(outcomes)


async def came_to(calling: Awaitable[str]) -> str:
    """A result, or the client's own error text."""
    try:
        return await calling
    except Exception as wrong:
        return f"{type(wrong).__name__}: {wrong}"


@pytest.fixture(params=["embedded", "toxiproxy"])
async def network(request: pytest.FixtureRequest, networks: Any) -> AsyncIterator[Any]:
    """Both networks, one after the other."""
    async with networks(request.param) as network:
        yield network


@pytest.mark.parametrize("faulty", FAULTS)
async def test_a_fault_looks_to_the_client_like_a_faulty_server(
    rigs: Any, network: Any, client: Any, faulty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The same result or error, after the same time, for both calls; the session can be closed too."""
    if faulty == "hangs":
        monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", SILENT_S)
    async with rigs(network, resets=faulty == "dies") as rig:
        (tmp_path / ".wedgehog-pipe").write_text(f"{rig.server.address}\ntest-of-mcp\n")
        monkeypatch.setenv("HOME", str(tmp_path))  # the client passes on HOME, but not unknown variables

        async def strike() -> None:
            out = rig.watcher.pipes[-1].ways["out"]
            async with out.held() as base:
                slow = isinstance(FAULTS[faulty], Latency)
                await out.link.strike(FAULTS[faulty], WholeLink() if slow else Downstream(out.conn, base + 100))

        real, mine = await asyncio.gather(
            seen(client, (), tmp_path, faulty, as_if=faulty),
            seen(client, rig.front, tmp_path, "well", strike, faulty),
        )
    assert mine == real
    assert (real[0] == WELL) is (faulty == "slow"), "the server was not faulty"


async def test_without_a_fault_the_client_sees_the_server(
    rigs: Any, network: Any, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The pipe was in use: the harness has counted it."""
    async with rigs(network) as rig:
        (tmp_path / ".wedgehog-pipe").write_text(f"{rig.server.address}\ntest-of-mcp\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert await seen(client, rig.front, tmp_path, "well") == (WELL, WELL, "at once", "left")
        (pipe,) = rig.watcher.pipes
        with contextlib.suppress(TimeoutError):
            await rig.until(lambda: pipe in rig.watcher.gone)
        assert pipe.ways["out"].passed is not None and pipe.ways["out"].passed > 10_000
