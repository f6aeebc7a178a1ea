"""MCP clients through a struck pipe: what they see of a server that really hangs, ends, dies or is slow."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.wire.cut import Cut
from wedgehog.harness.faults.wire.latency import Latency
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.network.base import Downstream, WholeLink

SERVER = """
import json, os, signal, sys, time
ill = sys.argv[1]
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
        if ill != "well":
            time.sleep(0.4 if ill == "slow" else 0)
            os.write(1, said[:100] if ill != "slow" else b"")
        if ill == "hangs":
            signal.pause()
        if ill == "ends":
            os.close(1)
            continue
        if ill == "dies":
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
ILLS: dict[str, WireFault] = {"hangs": Stall(), "ends": Cut("fin"), "dies": Cut("rst"), "slow": Latency(0.4)}


WAITS_S = 1.5
"""For an answer of the server, where it has one to give."""
SILENT_S = 0.3
"""For a result that never comes, and for the end of a server that must be told to end."""


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
async def pydantic_ai(command: str, arguments: list[str], _: float) -> AsyncIterator[Call]:
    """Pydantic AI's, with the layers that it lays over that one; its start has the same time-out as its calls."""
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset

    transport = StdioTransport(command, arguments, keep_alive=False)
    async with MCPToolset(transport, read_timeout=WAITS_S) as tools:
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
    client: Any, front: tuple[str, ...], folder: Path, ill: str, strike: Any = None, waits_s: float = WAITS_S
) -> tuple[Any, ...]:
    """What the client's user gets of a tool call, and of a second one, and whether the session could be left."""
    (folder / "server.py").write_text(SERVER)
    command, *arguments = (*front, sys.executable, "-S", "-E", str(folder / "server.py"), ill)
    outcomes: list[str] = []
    async with asyncio.timeout(30):
        try:
            async with client(command, arguments, waits_s) as call:
                if strike is not None:
                    await strike()
                begun = asyncio.get_running_loop().time()
                for _ in range(2):
                    outcomes.append(await came_to(call()))
                outcomes.append("slow" if asyncio.get_running_loop().time() - begun > 0.3 else "at once")
            outcomes.append("left")
        except Exception as wrong:
            if not outcomes:
                raise  # it never was a client
            outcomes.append(f"left with {type(wrong).__name__}: {wrong}")
    return tuple(outcomes)


async def came_to(calling: Awaitable[str]) -> str:
    """A result, or the error in its own words."""
    try:
        return await calling
    except Exception as wrong:
        return f"{type(wrong).__name__}: {wrong}"


@pytest.fixture(params=["embedded", "toxiproxy"])
async def network(request: pytest.FixtureRequest, networks: Any) -> AsyncIterator[Any]:
    """Both networks, one after the other."""
    async with networks(request.param) as network:
        yield network


@pytest.mark.parametrize("ill", ILLS)
async def test_a_fault_is_to_the_client_what_an_ill_server_is(
    rigs: Any, network: Any, client: Any, ill: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The same result or error, as late, for this call and the next; and its session can be left as well."""
    waits_s = SILENT_S if ill == "hangs" else WAITS_S
    if ill == "hangs":
        monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", SILENT_S)
    real = await seen(client, (), tmp_path, ill, waits_s=waits_s)
    async with rigs(network, resets=ill == "dies") as rig:
        (tmp_path / ".wedgehog-pipe").write_text(f"{rig.server.address}\ntest-of-mcp\n")
        monkeypatch.setenv("HOME", str(tmp_path))  # the client passes it on, and drops what it does not know

        async def strike() -> None:
            out = rig.watcher.pipes[-1].ways["out"]
            async with out.held() as base:
                slow = isinstance(ILLS[ill], Latency)
                await out.link.strike(ILLS[ill], WholeLink() if slow else Downstream(out.conn, base + 100))

        mine = await seen(client, rig.front, tmp_path, "well", strike, waits_s)
    assert mine == real
    assert (real[0] == WELL) is (ill == "slow"), "the server was not ill"


async def test_without_a_fault_the_client_sees_the_server(
    rigs: Any, network: Any, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """And the pipe was really there: the harness has counted it."""
    async with rigs(network) as rig:
        (tmp_path / ".wedgehog-pipe").write_text(f"{rig.server.address}\ntest-of-mcp\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert await seen(client, rig.front, tmp_path, "well") == (WELL, WELL, "at once", "left")
        (pipe,) = rig.watcher.pipes
        with contextlib.suppress(TimeoutError):
            await rig.until(lambda: pipe in rig.watcher.gone)
        assert pipe.ways["out"].passed is not None and pipe.ways["out"].passed > 10_000
