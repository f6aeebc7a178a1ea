"""Real MCP clients at the tool host: each fault gives them what a server gives that really fails so.

Side by side: the same client, calls the same tool in the same order, once of the tool host behind its link, once of a
plain server of the official package with nothing in between.
"""

import asyncio
import contextlib
import os
import re
import subprocess
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wedgehog.fake_llm.reply import ToolCall
from wedgehog.fake_llm.script.position import Positions
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.inject.targets import Targets
from wedgehog.harness.network.base import Network
from wedgehog.harness.record.clock import WallClock, first_of
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import Trouble
from wedgehog.harness.record.events.service import BeaconSeen, ToolAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.run.run_services import Links, RunServices
from wedgehog.harness.scenario.model import Scenario

pytestmark = pytest.mark.filterwarnings("default")  # the clients' own

PATIENCE_S = 15.0
"""A client's time limit for a call that gets an answer or an error, also on a busy machine."""
SILENT_S = 0.3
"""The same for a call that gets neither, from the moment at which its fault has struck."""
SILENT = ("hangs", "stalls", "is meant", "is broken")
PLAIN = Path(__file__).with_name("plain_mcp.py")

FAULTS: dict[str, Any] = {
    "answers": None,
    "fails": {"error_result": "the tool failed"},
    "is huge": {"huge_result": 5000},
    "is late": {"late_result": 0.5},
    "hangs": "lose_result",
    "answers after all": None,
    "has nothing to say": "empty_result",
    "fails as a server": "protocol_error",
}
"""What the plain server does, and the fault by which the tool host seems to do it."""
OVER_HTTP: dict[str, Any] = {
    "is cut": {"cut": "fin"},
    "stalls": {"stall": "forever"},
    "is refused": "unauthorized",
    "answers again": None,
}
AT_THE_END: dict[str, Any] = {"dies": {"kill": {"whom": "server"}}, "answers no more": None}

SPECS = {"http": ("http", "{tool_url}"), "stdio": ("stdio", "{tool_command}")}


@pytest.fixture(autouse=True)
def python(warm_python: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What all servers are started by."""
    monkeypatch.setattr("wedgehog.harness.services.mcp.host.sys", SimpleNamespace(executable=warm_python))
    return warm_python


# ---- clients


@contextlib.asynccontextmanager
async def official(server: str, mode: str) -> AsyncIterator[Any]:
    from mcp import Client, StdioServerParameters

    words = server.split()
    target = server if server.startswith("http") else StdioServerParameters(command=words[0], args=words[1:])
    async with Client(target, mode=mode) as client:

        async def call(city: str) -> str:
            result = await client.call_tool("weather", {"city": city})
            text = "".join(part.text for part in result.content)
            return f"failed: {text}" if result.is_error else text

        yield call


@contextlib.asynccontextmanager
async def pydantic_ai(server: str, _: str) -> AsyncIterator[Any]:
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.exceptions import ModelRetry
    from pydantic_ai.mcp import MCPToolset

    words = server.split()
    transport = server if server.startswith("http") else StdioTransport(words[0], words[1:], keep_alive=False)
    async with MCPToolset(transport) as tools:

        async def call(city: str) -> str:
            try:
                return str(await tools.direct_call_tool("weather", {"city": city}))
            except ModelRetry as said:
                return f"failed: {said}"

        yield call


CLIENTS: dict[str, tuple[Callable[[str, str], Any], str]] = {
    "mcp": (official, "auto"),
    "mcp-handshake": (official, "legacy"),
    "pydantic-ai": (pydantic_ai, ""),
}


Struck = Callable[[str], Awaitable[None]]
"""Waits until the fault of a call has struck."""


async def at_once(city: str) -> None:
    """A plain server is silent from the beginning."""


async def outcomes(client: str, server: str, cities: list[str], struck: Struck = at_once) -> list[str]:
    """What each call came to, in a few words; a connection of the client's own for all, a new one when it is lost."""
    opened, mode = CLIENTS[client]
    if opened is pydantic_ai:
        pytest.importorskip("pydantic_ai.mcp")  # before a time-out runs: it takes seconds on a busy machine
    seen: list[str] = []
    while len(seen) < len(cities):
        before = len(seen)
        try:
            async with asyncio.timeout(40), opened(server, mode) as call:
                while len(seen) < len(cities) and not (seen[before:] and lost(seen[-1])):
                    seen.append(await came_to(call, cities[len(seen)], struck))
        except Exception:
            # A call that takes the whole connection with it. (How a client leaves such a one is its own affair.)
            traceback.print_exc()  # for a test that expected something else
            seen += ["lost its server"] if not (seen[before:] and lost(seen[-1])) and len(seen) < len(cities) else []
    return seen


def lost(outcome: str) -> bool:
    """Whether nothing can be expected of this connection any more."""
    return outcome.startswith(("raised", "lost", "failed: Connection"))


async def came_to(call: Callable[[str], Awaitable[str]], city: str, struck: Struck) -> str:
    """A client that gave up before its fault has struck would see no fault, however silent the call was."""
    calling = asyncio.ensure_future(call(city))
    try:
        if city in SILENT:
            await first_of(calling, struck(city))
        text = await asyncio.wait_for(calling, SILENT_S if city in SILENT else PATIENCE_S)
    except TimeoutError:
        return "silence"
    except Exception as wrong:
        return f"raised {type(wrong).__name__}: {re.sub(r'expected [0-9]+', 'expected more', _words(str(wrong)))}"
    finally:
        calling.cancel()
    return f"{len(text.encode())} bytes" if len(text) > 100 else _words(text)


def _words(text: str) -> str:
    """Without the token by which a run knows a result."""
    return text.split("\nwbcdf", 1)[0]


# ---- servers


@contextlib.contextmanager
def plain(python: str, way: str) -> Any:
    """A plain server, as the client is told of it."""
    if way == "stdio":
        yield f"{python} {PLAIN} stdio"
        return
    with subprocess.Popen([python, PLAIN, "http"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
        finally:
            process.kill()


class Hosted:
    """The tool host, with one planned fault for each call that has one."""

    def __init__(self, way: str, faults: dict[str, Any], folder: Path, **more: Any) -> None:
        words = [
            {"link": "tool:mcp", "at": {"tool": n, **({"byte": 30} if city == "is cut" else {})}, "do": do, **more}
            for n, (city, do) in enumerate(faults.items(), start=1)
            if do is not None
        ]
        tools = {"weather": {"input": {"city": "string"}, "answer": "21 °C"}}
        turn = {"user": "x", "model": [[{"tool": "weather", "args": {"city": "x"}}] * len(faults)]}
        told = {"name": "a", "why": "w", "turns": [turn], "tools": tools, "faults": words}
        self.scenario = Scenario.model_validate(told)
        command = ("x", SPECS[way][1], "{message}")
        self.agent = AgentSpec(name="a", wire="anthropic", tools=way, command=command)  # type: ignore[arg-type]
        self.history = History(WallClock())
        self.folder, self.faults, self.cities = folder, faults, list(faults)
        self.injector: Injector

    @contextlib.asynccontextmanager
    async def open(self, network: Network) -> AsyncIterator[str]:
        """As the client is told of it."""
        clock, plan, mark = WallClock(), self.scenario.plan(1), f"test-of-tools-{os.getpid()}/1"
        links, positions, log = Links(network, plan), Positions("wbcdf"), self.folder / "tools.log"
        tools: RunServices
        targets = Targets(server=lambda: tools)
        self.injector = Injector(plan, links, self.history, clock, targets=targets)
        tools = RunServices(
            self.scenario, self.agent, links, self.injector, self.history, positions, clock, 1.0, self.folder, mark, log
        )
        for n, city in enumerate(self.cities, start=1):
            tools.offered(ToolCall("mcp__host__weather", {"city": city}, f"wbcdf1x1x{n}a1"))
        async with tools:
            await self.injector.before_turn(1)
            yield links.url("tool:mcp", path="/mcp") or tools.tool_command or ""
            await self.injector.after_turn(1)
            assert not list(self.history.of(Trouble))
            await self.injector.close()

    @property
    def fired(self) -> list[str]:
        """Names of the faults that struck, in order."""
        return [event.name for event in self.history.of(FaultFired)]

    async def struck(self, city: str) -> None:
        """Wait until the faults up to this call's have struck."""
        calls = list(self.faults)[: self.cities.index(city) + 1]
        while len(self.fired) < len(names({call: self.faults[call] for call in calls})):
            await asyncio.sleep(0.005)


def names(faults: dict[str, Any]) -> list[str]:
    return [do if isinstance(do, str) else next(iter(do)) for do in faults.values() if do is not None]


@pytest.mark.parametrize(("client", "name"), [*((client, "embedded") for client in CLIENTS), ("mcp", "toxiproxy")])
async def test_over_http_every_fault_is_what_a_failing_server_gives(
    client: str, name: str, networks: Any, tmp_path: Path, python: str
):
    """Errors, size, delay, silence, a cut and a stall in mid result, death; and what still works after each."""
    faults = FAULTS | OVER_HTTP | AT_THE_END
    hosted = Hosted("http", faults, tmp_path)
    with plain(python, "http") as real:
        async with networks(name) as network, hosted.open(network) as server:
            # At the same time: most of it is waiting for a silence.
            hosts = ((server, hosted.struck), (real, at_once))
            seen, expected = await asyncio.gather(*(outcomes(client, it, list(faults), struck) for it, struck in hosts))
    assert seen == expected
    assert seen[0] == seen[5] == seen[11] == "21 °C" and seen[4] == seen[9] == "silence"
    assert sorted(hosted.fired) == sorted(names(faults))


@pytest.mark.parametrize("client", CLIENTS)
async def test_over_stdio_every_fault_is_what_a_failing_server_gives(
    client: str, networks: Any, tmp_path: Path, python: str
):
    """Errors, size, delay, silence, death; and what still works after each."""
    faults = FAULTS | AT_THE_END
    with plain(python, "stdio") as server:
        expected = await outcomes(client, server, list(faults))
    hosted = Hosted("stdio", faults, tmp_path)
    async with networks("embedded") as network, hosted.open(network) as server:
        seen = await outcomes(client, server, list(faults), hosted.struck)
    assert seen == expected
    assert seen[0] == seen[5] == "21 °C" and seen[4] == "silence"
    assert sorted(hosted.fired) == sorted(names(faults))


@pytest.mark.parametrize("way", SPECS)
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_result_that_comes_twice_is_taken_once_and_a_broken_one_not_at_all(
    client: str, way: str, networks: Any, tmp_path: Path
):
    """No server of the package does so; whatever its client makes of it, the next call is answered."""
    faults = {"comes twice": "double_result", "answers": None, "is broken": "malformed_result", "answers again": None}
    hosted = Hosted(way, faults, tmp_path)
    async with networks("embedded") as network, hosted.open(network) as server:
        twice, next_one, broken, last = await outcomes(client, server, list(faults), hosted.struck)
    assert (twice, next_one, last) == ("21 °C",) * 3
    assert broken != twice
    assert hosted.fired == ["double_result", "malformed_result"]


async def test_a_killed_server_is_back_at_its_address_when_the_turn_is_over(network: Network, tmp_path: Path):
    """Until then its port refuses; the new process knows nothing of the old one's sessions."""
    faults = {"dies": {"kill": {"whom": "server"}}, "refuses": None, "is back": None}
    hosted = Hosted("http", faults, tmp_path)
    async with hosted.open(network) as server:
        dies, refuses = await outcomes("mcp-handshake", server, ["dies", "refuses"])
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*hosted.injector.links["tool:mcp"].address)
        await hosted.injector.after_turn(1)
        assert not list(hosted.history.of(Trouble))
        assert await outcomes("mcp-handshake", server, ["is back"]) == ["21 °C"]
    assert lost(dies) and refuses == "lost its server"
    servers = [event.server for event in hosted.history.of(ToolAsked)]
    assert len(servers) == len(set(servers)) == 2
    beacons = [(event.token, event.phase) for event in hosted.history.of(BeaconSeen)]
    assert beacons == [("1.1.1", "started"), ("1.1.3", "started"), ("1.1.3", "done")]


@pytest.mark.parametrize("do", [{"stall": "forever"}, {"cut": "fin"}], ids=["stall", "cut"])
async def test_of_calls_side_by_side_only_the_one_that_is_meant_is_struck(network: Network, tmp_path: Path, do: Any):
    """Toxiproxy limits a whole link: the others wait until its limit has been reached."""
    faults = {"one": None, "is meant": do, "three": None, "four": None}
    hosted = Hosted("http", faults, tmp_path)
    async with hosted.open(network) as server:
        seen = await asyncio.gather(*(outcomes("mcp-handshake", server, [city], hosted.struck) for city in faults))
    (one,), (meant,), (three,), (four,) = seen
    assert (one, three, four) == ("21 °C",) * 3
    assert meant == "silence" or lost(meant)
    assert hosted.fired == [next(iter(do))]
