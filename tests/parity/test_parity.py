"""What a client sees of a fault does not depend on the network: every registered wire fault, by itself."""

import asyncio
import contextlib
import os
import socket
from functools import partial

import pytest

from tests.parity.conftest import PATIENCE_S
from wedgehog.harness.faults.base import WireFault, registered
from wedgehog.harness.network.base import Downstream, Upstream, WholeLink
from wedgehog.harness.testing.faults import examples

EARLIER, BEFORE, BEHIND = 700, 120, 60
SCALE = 100
DURATION_S = 1 / SCALE
SILENCE_S = 0.3

FAULTS = [it.scaled(SCALE) for cls in registered("wire").values() for it in examples(cls)]
BOTH = ("embedded", "toxiproxy")
CUT = registered("wire")["cut"]()


def resets(fault: WireFault) -> bool:
    return "rst" in repr(fault)


async def connects(world) -> str:
    """What happens to somebody new."""
    try:
        client, upstream = await world.pair()
        await world.carry(upstream, client, b"hello")
    except ConnectionRefusedError:
        return "refused"
    return "answered"


async def ending(conn, fault: WireFault, before: int = 0, whole: int = 0) -> tuple[bytes, str]:
    """What still comes: an end, which may take its time, or silence behind the fault's byte or the whole message."""
    silent = fault.ends in (None, "stall")
    return await conn.ending(SILENCE_S if silent else PATIENCE_S, after=whole if fault.slows else before)


async def harm_an_answer(world, fault: WireFault) -> dict:
    """An answer on a kept-alive connection is struck after its byte 120, then all is healed."""
    loop = asyncio.get_running_loop()
    client, upstream = await world.pair()
    await world.carry(upstream, client, b"x" * EARLIER)
    await world.link.admit(upstream.peer, EARLIER)
    early = b""
    if fault.begins == "at_target":
        upstream.write(b"a" * BEFORE)
        early = await client.read(BEFORE)
    about_bytes = bool(fault.toxics(0))
    spot = Downstream(upstream.peer, EARLIER + BEFORE) if about_bytes else WholeLink()
    strike = await world.link.strike(fault, spot)
    began = loop.time()
    upstream.write(b"a" * (BEFORE - len(early)) + b"b" * BEHIND)
    proof = await strike.fired(PATIENCE_S)
    got, how = await ending(client, fault, BEFORE - len(early), BEFORE + BEHIND - len(early))
    seen = {"answer": early + got, "how": how, "fired": proof is not None}
    seen["late"] = fault.begins == "at_target" and loop.time() - began > DURATION_S
    if not about_bytes:
        seen["newcomer"] = await connects(world)
    await strike.heal()
    seen["healed"] = (await client.ending(SILENCE_S if fault.slows else PATIENCE_S))[1] if how == "stall" else how
    seen["afterwards"] = await connects(world)
    return seen


async def harm_a_request(world, fault: WireFault, at: int = BEFORE) -> dict:
    """A request on a fresh connection is struck after its byte 120."""
    strike = await world.link.strike(fault, Upstream(at))
    client, upstream = await world.pair()
    client.write(b"a" * BEFORE + b"b" * BEHIND)
    proof = await strike.fired(PATIENCE_S)
    arrived, how = await ending(upstream, fault, at, BEFORE + BEHIND)
    answer, its_ending = await ending(client, fault)
    client.close()
    upstream.close()
    await strike.heal()
    return {
        "arrived": arrived,
        "how": how,
        "answer": answer,
        "ending": its_ending,
        "fired": proof is not None,
        "afterwards": await connects(world),
    }


async def on_both(networks, worlds, fault: WireFault, harm) -> list[dict]:
    seen = []
    for name in BOTH:
        async with networks(name) as network, worlds(network, resets=resets(fault), requests=True) as world:
            seen.append(await harm(world, fault))
    return seen


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
async def test_an_answer_is_harmed_alike_by_both_networks(networks, worlds, fault):
    """The same bytes, then the same close or silence; the same for newcomers, and after healing."""
    relay, toxiproxy = await on_both(networks, worlds, fault, harm_an_answer)
    assert relay == toxiproxy
    assert relay["fired"]
    assert relay["afterwards"] == "answered"


@pytest.mark.parametrize("fault", [it for it in FAULTS if it.toxics(0) and it.begins == "before"], ids=repr)
async def test_a_request_is_harmed_alike_by_both_networks(networks, worlds, fault):
    """The upstream gets exactly the bytes before the trigger; then both ends see the same close or silence."""
    relay, toxiproxy = await on_both(networks, worlds, fault, harm_a_request)
    assert relay == toxiproxy
    assert relay["arrived"] == b"a" * BEFORE
    assert relay["fired"]
    assert relay["afterwards"] == "answered"


@pytest.mark.parametrize("fault", [it for it in FAULTS if it.toxics(0) and it.begins == "before"], ids=repr)
async def test_a_request_is_swallowed_alike_by_both_networks(networks, worlds, fault):
    """Struck before its first byte, nothing of it arrives, and the fault is proved all the same."""
    relay, toxiproxy = await on_both(networks, worlds, fault, partial(harm_a_request, at=0))
    assert relay == toxiproxy
    assert relay["arrived"] == b""
    assert relay["fired"]


@pytest.mark.parametrize("fault", [it for it in FAULTS if it.toxics(0) and it.begins == "before"], ids=repr)
@pytest.mark.parametrize("at", [0, BEFORE])
async def test_one_request_is_struck_however_many_come_and_however_soon(network, worlds, fault, at):
    """Of several at once, and of one that is sent again at once, the others arrive whole, one of them kept alive."""
    request = b"a" * BEFORE + b"b" * BEHIND
    async with worlds(network, resets=resets(fault), requests=True) as world:
        old, kept = await world.pair()
        await world.carry(kept, old, b"x" * 7)
        old.write(b"k" * 300)
        await kept.read(300)
        strike = await world.link.strike(fault, Upstream(at))
        pairs = [await world.pair() for _ in range(3)]
        for client, _ in pairs:
            client.write(request)
        old.write(b"more")
        upstreams, whole = [upstream for _, upstream in pairs], at + 2 * len(request)
        endings = [upstream.ending(SILENCE_S, after=whole, of=upstreams) for upstream in upstreams]
        struck, *others = sorted(await asyncio.gather(*endings), key=lambda it: len(it[0]))
        again, upstream = await world.pair()
        again.write(request)
        assert await upstream.read(len(request)) == request
        assert (await strike.fired(PATIENCE_S)) is not None
        assert struck[0] == request[:at]
        assert [data for data, _ in others] == [request] * 2
        assert await kept.read(4) == b"more"
        await strike.heal()


@pytest.mark.parametrize("fault", [it for it in FAULTS if it.name == "cut"], ids=repr)
async def test_a_cut_before_the_first_byte_of_a_large_request_is_proved(network, worlds, fault):
    """The agent sends the body again at once, so that the next connection is open before the first one is counted."""
    loop, request = asyncio.get_running_loop(), b"r" * 300_000

    async def ask() -> None:
        client = await world.connect()
        with contextlib.suppress(OSError):
            await loop.sock_sendall(client.sock, request)
            await asyncio.wait_for(loop.sock_recv(client.sock, 1), 0.05)

    async with worlds(network, resets=resets(fault), requests=True) as world:
        strike = await world.link.strike(fault, Upstream(0))
        await ask()
        again = asyncio.create_task(ask())
        proof = await strike.fired(PATIENCE_S)
        await strike.heal()
        again.cancel()
        await asyncio.gather(again, return_exceptions=True)
        assert proof is not None and proof.bytes == 0


@pytest.mark.parametrize("fault", [it for it in FAULTS if it.name == "cut"], ids=repr)
@pytest.mark.parametrize("at", [0, BEFORE])
async def test_a_client_that_sends_a_cut_request_again_at_once_is_cut_once(network, worlds, fault, at):
    """Four at a time, without a pause: one attempt of all of them is lost."""
    request, lost = b"r" * (BEFORE + BEHIND), 0

    async def answer() -> None:
        while True:
            serving.add(asyncio.create_task(reply(await world.accept())))

    async def reply(upstream) -> None:
        with contextlib.suppress(AssertionError, OSError):
            assert await upstream.read(len(request)) == request
            upstream.write(b"answer")

    async def ask() -> None:
        nonlocal lost
        while (await asked())[:6] != b"answer":
            lost += 1

    async def asked() -> bytes:
        client = await world.connect()
        client.write(request)
        with contextlib.suppress(ConnectionResetError):
            return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client.sock, 6), PATIENCE_S)
        return b""

    async with worlds(network, resets=resets(fault), requests=True) as world:
        serving = {asyncio.create_task(answer())}
        strike = await world.link.strike(fault, Upstream(at))
        await asyncio.gather(*(ask() for _ in range(4)))
        assert lost == 1
        assert (await strike.fired(PATIENCE_S)) is not None
        await strike.heal()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def test_the_next_request_is_struck_too_where_that_is_asked_for_at_once(network, worlds):
    """The connection behind the struck one is next, and none slips through; one that sends nothing does not count."""
    async with worlds(network, requests=True) as world:
        strike = await world.link.strike(CUT, Upstream(3))
        await world.connect()
        clients = [await world.connect() for _ in range(5)]
        for client in clients:
            client.write(b"0123456789")
        for at in (4, 5, 6):
            assert (await strike.fired(PATIENCE_S)) is not None
            strike = await world.link.strike(CUT, Upstream(at))
        assert (await strike.fired(PATIENCE_S)) is not None
        upstreams = [await world.accept() for _ in range(6)]
        expected = [b"", b"012", b"0123", b"01234", b"012345", b"0123456789"]
        endings = [it.ending(SILENCE_S, after=sum(map(len, expected)), of=upstreams) for it in upstreams]
        assert sorted([got for got, _ in await asyncio.gather(*endings)], key=len) == expected


async def test_a_strike_that_is_taken_away_lets_no_request_into_another(network, worlds):
    """A request behind the struck one waits on when a strike that was not met yet is healed."""
    async with worlds(network, requests=True) as world:
        struck = await world.link.strike(CUT, Upstream(5))
        first, second = await world.connect(), await world.connect()
        one, two = await world.accept(), await world.accept()
        first.write(b"012")
        assert await one.read(3) == b"012"
        other = await world.link.strike(CUT, Upstream(7))
        await other.heal()
        second.write(b"0123456789")
        first.write(b"3456789")
        assert (await struck.fired(PATIENCE_S)) is not None
        assert await two.read(10) == b"0123456789"


async def test_a_request_that_is_shorter_than_its_fault_is_not_harmed(network, worlds):
    """It arrives whole, no proof is claimed, and the next request is answered at once."""
    async with worlds(network, requests=True) as world:
        strike = await world.link.strike(CUT, Upstream(500))
        client, upstream = await world.pair()
        client.write(b"short")
        assert await upstream.read(5) == b"short"
        upstream.write(b"answer")
        assert await client.read(6) == b"answer"
        assert await connects(world) == "answered"
        assert await strike.fired(0.1) is None
        await strike.heal()


async def test_half_a_close_closes_both_ways(network, worlds):
    """When the client says that it has no more to send, the upstream gets FIN, and so does the client."""
    async with worlds(network) as world:
        client, upstream = await world.pair()
        client.sock.sendall(b"bye")
        client.sock.shutdown(socket.SHUT_WR)
        assert await upstream.ending() == (b"bye", "fin")
        assert await client.ending() == (b"", "fin")


async def test_an_upstream_that_refuses_looks_like_a_fin(network):
    """The client connects, then sees FIN: a proxy cannot refuse in the name of its server."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        link = await network.open_link("llm", closed.getsockname(), resets=False)
        reader, writer = await asyncio.open_connection(*link.address)
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()
        await link.close()


async def test_without_a_fault_nothing_shows(network, worlds):
    """A megabyte in each direction arrives unchanged, and the close behind it."""
    async with worlds(network) as world:
        data = os.urandom(1 << 20)
        client, upstream = await world.pair()
        client.write(data)
        assert await upstream.read(len(data)) == data
        upstream.write(data)
        assert await client.read(len(data)) == data
        upstream.close()
        assert await client.ending() == (b"", "fin")


async def test_a_link_that_was_refused_listens_at_the_same_port(network, worlds):
    """Refused while the fault is there, answered at the same address once it is healed."""
    async with worlds(network) as world:
        address = world.link.address
        strike = await world.link.strike(registered("wire")["refuse"](), WholeLink())
        assert await connects(world) == "refused"
        assert "refused" in (await strike.fired(PATIENCE_S)).how
        await strike.heal()
        assert world.link.address == address
        assert await connects(world) == "answered"
