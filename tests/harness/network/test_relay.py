"""The embedded relay; tests/parity compares its faults with Toxiproxy's."""

import asyncio
import contextlib
import itertools
import socket

import pytest

from wedgehog.harness.faults.wire.cut import Cut, Down
from wedgehog.harness.faults.wire.slow import Drip, Latency, Slicer
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.network.base import ConnectionGoneError, Downstream, WholeLink
from wedgehog.harness.network.proxied_connection import ProxiedConnection
from wedgehog.harness.network.relay import EmbeddedNetwork


@pytest.fixture
async def link():
    """A link to an upstream that sends back what it gets."""

    async def echo(reader, writer) -> None:
        while data := await read_or_end(reader):
            writer.write(data)
            with contextlib.suppress(ConnectionResetError):
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with EmbeddedNetwork() as network:
        yield await network.open_link("llm", server.sockets[0].getsockname(), resets=False)
    server.close()
    await asyncio.sleep(0.01)


async def read_or_end(reader) -> bytes:
    try:
        return await reader.read(65536)
    except ConnectionResetError:
        return b""


async def ask(reader, writer, data: bytes = b"ping") -> bytes:
    writer.write(data)
    return await asyncio.wait_for(reader.readexactly(len(data)), 5)


def peer_of(link) -> tuple[str, int]:
    (connection,) = link.connections
    return connection.peer


async def test_a_fault_touches_its_own_connection_only(link):
    """One of two connections is cut; the other goes on, and so does a new one."""
    first = await asyncio.open_connection(*link.address)
    assert await ask(*first) == b"ping"
    strike = await link.strike(Cut(), Downstream(peer_of(link), 6))
    second = await asyncio.open_connection(*link.address)
    first[1].write(b"pong")
    assert await asyncio.wait_for(first[0].read(), 5) == b"po"
    proof = await strike.fired(5)
    assert (proof.bytes, proof.how) == (6, "the relay let 6 bytes pass, then fin")
    assert await ask(*second) == b"ping"
    for _, writer in (first, second):
        writer.close()


async def test_a_fault_that_nothing_reaches_has_not_fired(link):
    """No proof without the byte; after healing, the connection works again."""
    reader, writer = await asyncio.open_connection(*link.address)
    await ask(reader, writer)
    strike = await link.strike(Stall(), Downstream(peer_of(link), 6))
    assert await strike.fired(0.01) is None
    await strike.heal()
    assert await ask(reader, writer, b"x" * 100) == b"x" * 100
    writer.close()


async def test_a_connection_can_be_struck_as_soon_as_its_upstream_has_accepted_it():
    """Also before the relay's own task has continued after its connect."""
    accepted: asyncio.Queue = asyncio.Queue()
    server = await asyncio.start_server(lambda _, writer: accepted.put_nowait(writer), "127.0.0.1", 0)
    async with EmbeddedNetwork() as network:
        link = await network.open_link("llm", server.sockets[0].getsockname(), resets=False)
        for _ in range(20):
            reader, mine = await asyncio.open_connection(*link.address)
            theirs = await accepted.get()
            strike = await link.strike(Cut(), Downstream(theirs.get_extra_info("peername")[:2], 2))
            theirs.write(b"hello")
            assert await asyncio.wait_for(reader.read(), 5) == b"he"
            assert await strike.fired(5) is not None
            mine.close()
            theirs.close()
    server.close()
    await asyncio.sleep(0.01)


async def test_a_connection_that_is_gone_cannot_be_struck(link):
    """A typed error instead of a fault that never fires."""
    with pytest.raises(ConnectionGoneError, match="no open connection"):
        await link.strike(Cut(), Downstream(("127.0.0.1", 1), 6))


async def test_a_closed_port_stays_ours(link):
    """While a link is down its port stays reserved, and two faults open it only when both are healed."""
    first, second = await link.strike(Down(), WholeLink()), await link.strike(Down(), WholeLink())
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*link.address)
    with pytest.raises(OSError, match="in use"), socket.socket() as thief:
        thief.bind(link.address)
    await first.heal()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*link.address)
    await second.heal()
    await second.heal()
    reader, writer = await asyncio.open_connection(*link.address)
    assert await ask(reader, writer) == b"ping"
    writer.close()


async def test_a_pace_on_the_whole_link_meets_later_connections(link):
    """A connection made while the link drips drips too, and stops dripping when healed."""
    strike = await link.strike(Drip(60.0), WholeLink())
    reader, writer = await asyncio.open_connection(*link.address)
    writer.write(b"ping")
    assert await asyncio.wait_for(reader.readexactly(1), 5) == b"p"
    assert await strike.fired(5) is not None
    await strike.heal()
    assert await asyncio.wait_for(reader.readexactly(3), 5) == b"ing"
    writer.close()


@pytest.mark.parametrize("first", [Latency(60.0), Drip(60.0)], ids=["latency", "drip"])
async def test_a_second_fault_on_a_slow_link_does_not_wait_for_late_bytes(link, first):
    """What the upstream wrote before its byte has come, and passes later: else no second one could be armed."""
    reader, writer = await asyncio.open_connection(*link.address)
    assert await ask(reader, writer) == b"ping"
    slow = await link.strike(first, WholeLink())
    writer.write(b"ping")
    second = await asyncio.wait_for(link.strike(Latency(0.01), WholeLink(peer_of(link), 8)), 1)
    assert await second.fired(0) is None
    await slow.heal()
    assert await asyncio.wait_for(reader.readexactly(4), 5) == b"ping"
    assert await second.fired(0) is None
    assert await ask(reader, writer) == b"ping"
    assert await second.fired(5) is not None
    writer.close()


@pytest.mark.parametrize("stays", [Stall(), Drip(60.0)], ids=["stall", "drip"])
async def test_healing_one_of_two_faults_leaves_the_other(link, stays):
    """What is on the connection beside a healed slicer stays on it, and the connection stays open."""
    slicer = await link.strike(Slicer(), WholeLink())
    reader, writer = await asyncio.open_connection(*link.address)
    assert await ask(reader, writer) == b"ping"
    strike = await link.strike(stays, Downstream(peer_of(link), 4))
    writer.write(b"ping")
    assert await strike.fired(5) is not None
    (connection,) = link.connections
    await slicer.heal()
    assert (connection.over, connection.down.carried <= 5) == (False, True)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.readexactly(4), 0.02)
    await strike.heal()
    writer.close()


async def test_a_reader_that_sleeps_holds_the_writer_back(link):
    """Back pressure passes through: the relay does not buffer bytes that are not read."""
    with socket.socket() as sock:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, link.address)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.get_running_loop().sock_sendall(sock, bytes(64 << 20)), 0.5)


async def test_a_pace_goes_on_however_fast_time_passes(link, monkeypatch):
    """A byte that becomes due between two readings of the clock passes."""
    reader, writer = await asyncio.open_connection(*link.address)
    assert await ask(reader, writer) == b"ping"
    await link.strike(Drip(0.01), WholeLink())
    looks = itertools.count()
    monkeypatch.setattr(ProxiedConnection, "now", lambda connection: float(next(looks)))
    assert await ask(reader, writer) == b"ping"
    writer.close()
