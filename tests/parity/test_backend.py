"""A server of the user's own behind its link, over both networks: bytes stop exactly where the plan says."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parity.conftest import PATIENCE_S
from wedgehog.fake_llm.script.position import Positions
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.network.base import Network
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import Trouble
from wedgehog.harness.record.events.service import BackendClosed, BackendUsed
from wedgehog.harness.record.history import History
from wedgehog.harness.run.run_services import Links, RunServices
from wedgehog.harness.scenario.model import Scenario

SILENCE_S = 0.4
MODEL = [{"tool": "shell", "args": {"command": "ls"}}, {"text": "It is done."}]


class Memory:
    """A server whose protocol is lines: `size` gets that many letters back. It keeps what each connection sent."""

    def __init__(self) -> None:
        self.received: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.received)
        self.received.append(b"")
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                for line in (self.received[number] + data).split(b"\n")[self.received[number].count(b"\n") : -1]:
                    writer.write(b"x" * (int(line) - 1) + b"\n")
                self.received[number] += data
        writer.close()


class Client:
    """One connection through the link."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address

    async def __aenter__(self) -> "Client":
        self.reader, self.writer = await asyncio.open_connection(*self.address)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.writer.close()
        await asyncio.sleep(0.05)

    async def ask(self, size: int, struck: Callable[[], Awaitable[None]] | None = None) -> str:
        """How many bytes came back, and what was then, unless they are all; silence counts once a fault `struck`."""
        self.writer.write(b"%d\n" % size)
        if struck is not None:
            await struck()
        got, wait_s = b"", PATIENCE_S if struck is None else SILENCE_S
        try:
            while len(got) < size:
                data = await asyncio.wait_for(self.reader.read(size - len(got)), wait_s)
                got += data
                if not data:
                    return f"{len(got)}, fin"
        except TimeoutError:
            return f"{len(got)}, silence"
        except ConnectionResetError:
            return f"{len(got)}, rst"
        return str(len(got))


class World:
    """A run's services with one link `tcp:db` in front of a memory."""

    def __init__(self, links: Links, injector: Injector, history: History, memory: Memory) -> None:
        self.links, self.injector, self.history, self.memory = links, injector, history, memory

    def client(self) -> Client:
        return Client(self.links["tcp:db"].address)

    async def turn(self, number: int) -> None:
        """End the turn before, and begin this one."""
        if number > 1:
            await self.injector.after_turn(number - 1)
        await self.injector.before_turn(number)

    @property
    def fired(self) -> list[tuple[str, int | None]]:
        return [(event.name, event.bytes) for event in self.history.of(FaultFired)]

    @property
    def closed(self) -> list[str]:
        return [it.by for it in self.history.of(BackendClosed)]

    async def struck(self) -> None:
        """Wait for the first fault."""
        await self.until(lambda: bool(self.fired))

    async def until(self, met: Callable[[], bool]) -> None:
        """Wait for what must come."""
        async with asyncio.timeout(PATIENCE_S):
            while not met():
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def opened(network: Network, *faults: dict[str, Any], turns: int = 1) -> AsyncIterator[World]:
    memory = Memory()
    server = await asyncio.start_server(memory.serve, "127.0.0.1", 0)
    to = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    told = {"name": "a", "why": "w", "turns": [{"user": "x", "model": MODEL}] * turns}
    scenario = Scenario.model_validate(told | {"faults": [{"link": "tcp:db", **fault} for fault in faults]})
    links_of = {"db": {"to": to, "env": {"DB": "{link}"}}}
    agent = AgentSpec.model_validate({"name": "a", "wire": "anthropic", "command": ["x"], "links": links_of})
    clock, plan = WallClock(), scenario.plan(1)
    history, links = History(clock), Links(network, plan)
    injector = Injector(plan, links, history, clock)
    async with RunServices(scenario, agent, links, injector, history, Positions("w"), clock, 1.0, Path(), "", Path()):
        world = World(links, injector, history, memory)
        await world.turn(1)
        yield world
        await injector.close()
        assert not injector.broken.is_set(), list(history.of(Trouble))
    server.close()


@pytest.mark.parametrize("do", [{"latency": 5}, {"bandwidth": 1}, {"drip": {"every_s": 5, "bytes": 1}}])
async def test_a_client_that_does_not_wait_for_late_bytes_has_met_the_fault(network: Network, do: Any):
    """Its connection ends before the network counts a byte."""
    async with opened(network, {"at": {"byte": 1}, "do": do}) as world:
        async with world.client() as client:
            client.writer.write(b"9000\n")
            await client.reader.readexactly(1)
            await asyncio.sleep(SILENCE_S)
        await world.struck()
        assert [name for name, _ in world.fired] == list(do)


async def test_a_connection_that_outlived_a_slow_fault_is_not_closed_by_it(network: Network):
    """It went on in the next turn, and its client closed it."""
    async with opened(network, {"at": {"turn": 1, "byte": 1}, "do": {"latency": 0.1}}, turns=2) as world:
        async with world.client() as client:
            assert await client.ask(9) == "9"
            await world.struck()
            await world.turn(2)
            assert await client.ask(9) == "9"
        await world.until(lambda: bool(world.closed))
        assert world.closed == ["agent"]


@pytest.mark.parametrize("size", [1, 50_000])
@pytest.mark.parametrize(("do", "then"), [("stall", "silence"), ({"cut": "fin"}, "fin"), ({"cut": "rst"}, "rst")])
async def test_bytes_to_the_agent_stop_exactly_at_the_faults_byte(network: Network, do: Any, then: str, size: int):
    """Also the first byte of all, and on a connection that has carried bytes; a fresh connection works."""
    byte = size - 1
    async with opened(network, {"at": {"turn": 2, "byte": byte}, "do": do}, turns=2) as world:
        async with world.client() as client:
            assert await client.ask(100) == "100"
            await world.turn(2)
            assert await client.ask(size, world.struck if then == "silence" else None) == f"{byte}, {then}"
        async with world.client() as client:
            assert await client.ask(size) == str(size)
        await world.until(lambda: bool(world.fired) and len(world.closed) == 2)
        assert world.closed == ["agent" if do == "stall" else "fault", "agent"]
        await world.injector.after_turn(2)
        assert [it.bytes_down for it in world.history.of(BackendUsed)] == [100, byte + size]
    assert [it.bytes_down for it in world.history.of(BackendClosed)] == [100 + byte, size]
    assert world.fired == [(do if isinstance(do, str) else "cut", 100 + byte)]


@pytest.mark.parametrize(("do", "then"), [("stall", "silence"), ({"cut": "fin"}, "fin"), ({"cut": "rst"}, "rst")])
async def test_bytes_to_the_server_stop_exactly_at_the_faults_byte(network: Network, do: Any, then: str):
    """On a connection that is open already; the server gets what came before, and no answer is lost with it."""
    async with opened(network, {"at": {"turn": 2, "phase": "request", "byte": 3}, "do": do}, turns=2) as world:
        async with world.client() as client:
            assert await client.ask(10) == "10"
            await world.turn(2)
            assert await client.ask(12345, world.struck if then == "silence" else None) == f"0, {then}"
            await world.until(lambda: world.memory.received == [b"10\n123"])
        async with world.client() as client:
            assert await client.ask(12345) == "12345"
        await world.struck()
        assert world.memory.received[0] == b"10\n123"
    assert [it.bytes_up for it in world.history.of(BackendClosed)] == [6, 6]
    assert world.fired == [(do if isinstance(do, str) else "cut", 6)]


async def test_each_connection_of_the_turn_is_one_attempt(network: Network):
    """A pool's open connections too, in the order in which they are used."""
    async with (
        opened(network, {"at": {"turn": 2, "attempt": 2, "byte": 4}, "times": 2, "do": "cut"}, turns=2) as world,
        world.client() as one,
        world.client() as two,
        world.client() as three,
        world.client() as four,
    ):
        assert {await it.ask(5) for it in (one, two, three, four)} == {"5"}
        await world.turn(2)
        assert [await it.ask(9) for it in (four, three, one, two)] == ["9", "4, fin", "4, fin", "9"]
        await world.until(lambda: len(world.fired) == 2)
    assert world.fired == [("cut", 9), ("cut", 9)]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"do": {"stall": 0.2}}, ["10", "10"]),
        ({"do": {"latency": 0.1}}, ["10", "10"]),
        ({"at": {"byte": 5}, "do": {"drip": {"every_s": 0.01}}}, ["10", "10"]),
    ],
    ids=json.dumps,
)
async def test_slow_bytes_all_arrive(network: Network, fault: dict[str, Any], expected: list[str]):
    """Over either network."""
    async with opened(network, fault) as world:
        async with world.client() as client:
            assert [await client.ask(10), await client.ask(10)] == expected
        await world.struck()
        await world.until(lambda: bool(world.closed))
    assert len(world.fired) == 1
    assert [it.bytes_down for it in world.history.of(BackendClosed)] == [20]


@pytest.mark.parametrize("do", [{"latency": 60}, {"drip": {"every_s": 60}}], ids=json.dumps)
async def test_bytes_that_come_too_late_are_not_counted(network: Network, do: Any):
    """The agent hangs up before they are due; a connection that is opened meanwhile waits too."""
    late = 1 if "drip" in do else 0
    async with opened(network, {"at": {"turn": 2, "byte": 4}, "do": do}, turns=2) as world:
        async with world.client() as client:
            assert await client.ask(100) == "100"
            await world.turn(2)
            assert await client.ask(10, lambda: asyncio.sleep(SILENCE_S)) == f"{4 + late}, silence"
            async with world.client() as second:
                assert await second.ask(10, lambda: asyncio.sleep(SILENCE_S)) == f"{late}, silence"
        await world.until(lambda: len(world.closed) == 2)
        await world.injector.after_turn(2)
        assert [it.bytes_down for it in world.history.of(BackendUsed)] == [100, 4 + 2 * late]
    assert sorted(it.bytes_down for it in world.history.of(BackendClosed)) == [late, 104 + late]


async def test_bytes_that_a_healed_fault_held_back_count(network: Network):
    """The client waits until the turn is over, and the link is fast again."""
    async with opened(network, {"do": {"latency": 60}}, turns=2) as world:
        async with world.client() as client:
            assert await client.ask(10, lambda: asyncio.sleep(SILENCE_S)) == "0, silence"
            await world.turn(2)
            assert await client.ask(10, lambda: asyncio.sleep(SILENCE_S)) == "10"
        await world.until(lambda: bool(world.closed))
    assert [it.bytes_down for it in world.history.of(BackendClosed)] == [20]


async def test_a_closed_port_is_refused_and_is_open_again_after_the_turn(network: Network):
    """Open connections end; the history says that a fault did it."""
    async with opened(network, {"at": {"turn": 2, "phase": "connect"}, "do": "refuse"}, turns=3) as world:
        async with world.client() as client:
            assert await client.ask(3) == "3"
            await world.turn(2)
            assert await client.ask(3) in ("0, fin", "0, rst")
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(*world.links["tcp:db"].address)
        await world.turn(3)
        async with world.client() as client:
            assert await client.ask(3) == "3"
        await world.until(lambda: len(world.closed) == 2)
        assert world.closed == ["fault", "agent"]


async def test_a_tools_beacon_sets_it_off(network: Network):
    """Bytes count from the next ones after it, and not from the turn's first use."""
    async with opened(network, {"at": {"tool": 1, "byte": 4}, "do": "cut"}) as world:
        async with world.client() as client:
            assert await client.ask(30) == "30"
            world.injector.beacon("1.1.1", "started")
            assert await client.ask(9) == "4, fin"
        await world.struck()
    assert world.fired == [("cut", 34)]


async def test_each_turn_says_what_crossed(network: Network):
    """Also without a fault, so that a byte can be chosen."""
    async with opened(network, turns=2) as world:
        async with world.client() as client:
            assert await client.ask(100) == "100"
            await world.turn(2)
            assert await client.ask(7) == "7"
        await world.injector.after_turn(2)
        used = [(it.turn, it.connections, it.bytes_up, it.bytes_down) for it in world.history.of(BackendUsed)]
        assert used == [(1, 1, 4, 100), (2, 1, 2, 7)]
