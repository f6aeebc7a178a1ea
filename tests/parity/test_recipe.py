"""What only a real Toxiproxy can show: held stalls, crossing strikes, a server that dies."""

import asyncio
import os
import signal
import socket

import pytest

from tests.parity.conftest import PATIENCE_S
from wedgehog.harness.faults.base import Toxic
from wedgehog.harness.faults.wire.cut import Cut
from wedgehog.harness.faults.wire.slow import Drip, Latency
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.network.base import Address, Downstream, LinkBusyError, NetworkError, Upstream, WholeLink
from wedgehog.harness.network.ports import FIRST, LAST, free_port
from wedgehog.harness.network.tcp_diag import TcpDiag
from wedgehog.harness.network.toxiproxy.api import (
    BadToxicError,
    ProxyCounts,
    ToxiproxyApi,
    ToxiproxyGoneError,
    ToxiproxyRefusedError,
)
from wedgehog.harness.network.toxiproxy.link import ToxiproxyNetwork
from wedgehog.harness.network.toxiproxy.server import start

SILENCE_S = 0.05


@pytest.fixture
async def toxiproxy(networks):
    async with networks("toxiproxy") as network:
        yield network


async def stalled(world, at: int = 50):
    client, upstream = await world.pair()
    await world.link.admit(upstream.peer, 0)
    strike = await world.link.strike(Stall(), Downstream(upstream.peer, at))
    upstream.write(b"s" * (at + 400))
    assert (await strike.fired(PATIENCE_S)) is not None
    assert await client.ending(SILENCE_S, after=at) == (b"s" * at, "stall")
    return client, upstream, strike


async def test_a_held_stall_harms_no_other_connection(toxiproxy, worlds):
    """While stalls are held, neighbours old and new are answered, also far beyond the stalled byte."""
    async with worlds(toxiproxy) as world:
        old = await world.pair()
        held = [await stalled(world, at) for at in (0, 1, 5000)]
        await world.carry(old[1], old[0], b"o" * 20000)
        new = await world.pair()
        await world.carry(new[1], new[0], b"n" * 20000)
        assert [await client.ending(SILENCE_S) for client, _, _ in held] == [(b"", "stall")] * 3
        for _, _, strike in held:
            await strike.heal()
        assert [await client.ending() for client, _, _ in held] == [(b"", "fin")] * 3


async def test_a_cut_waits_for_no_stall_that_somebody_listens_to(toxiproxy, worlds):
    """A cut would end a held stall too: refused while its agent waits, done once the agent has left."""
    async with worlds(toxiproxy) as world:
        client, _, strike = await stalled(world)
        other, upstream = await world.pair()
        await world.link.admit(upstream.peer, 0)
        with pytest.raises(LinkBusyError):
            await world.link.strike(Cut(), Downstream(upstream.peer, 10))
        client.close()
        await asyncio.sleep(0.05)
        cut = await world.link.strike(Cut(), Downstream(upstream.peer, 10))
        upstream.write(b"c" * 100)
        assert (await cut.fired(PATIENCE_S)) is not None
        assert await other.ending() == (b"c" * 10, "fin")
        await strike.heal()


async def test_a_stall_beside_a_look_alike_blocks_no_other(toxiproxy, worlds):
    """An idle neighbour that carried as many bytes as a stalled connection is not taken for it, nor for busy."""
    async with worlds(toxiproxy) as world:
        twin_client, twin = await world.pair()
        await world.carry(twin, twin_client, b"t" * 50)
        _, _, strike = await stalled(world, 50)
        client, upstream = await world.pair()
        await world.link.admit(upstream.peer, 0)
        second = await world.link.strike(Stall(), Downstream(upstream.peer, 0))
        upstream.write(b"s" * 100)
        assert (await second.fired(PATIENCE_S)) is not None
        assert await client.ending(SILENCE_S) == (b"", "stall")
        await world.carry(twin, twin_client, b"t" * 5000, 50)
        await strike.heal()
        await second.heal()


async def test_two_strikes_at_once_take_turns(toxiproxy, worlds):
    """Two replies held at the same time are both struck at their own byte."""
    async with worlds(toxiproxy) as world:

        async def one(at: int) -> tuple[bytes, str]:
            client, upstream = pairs[at]
            await world.link.admit(upstream.peer, 0)
            strike = await world.link.strike(Cut(), Downstream(upstream.peer, at))
            upstream.write(b"c" * 5000)
            assert (await strike.fired(PATIENCE_S)) is not None
            return await client.ending()

        pairs = {at: await world.pair() for at in (10, 3000)}
        small, large = await asyncio.gather(one(10), one(3000))
        assert (small, large) == ((b"c" * 10, "fin"), (b"c" * 3000, "fin"))


async def test_a_strike_that_is_never_reached_has_not_fired(toxiproxy, worlds):
    """A reply shorter than the trigger gives no proof, and once healed the others are let through."""
    async with worlds(toxiproxy) as world:
        client, upstream = await world.pair()
        await world.link.admit(upstream.peer, 0)
        strike = await world.link.strike(Stall(), Downstream(upstream.peer, 1000))
        await world.carry(upstream, client, b"short")
        assert await strike.fired(0.1) is None
        await strike.heal()
        assert await strike.fired(0.1) is None
        await world.carry(upstream, client, b"l" * 3000, 5)


async def test_a_client_that_leaves_before_the_byte_frees_the_link(toxiproxy, worlds):
    """No proof, and a neighbour who was held is answered without any healing."""
    async with worlds(toxiproxy) as world:
        neighbour = await world.pair()
        client, upstream = await world.pair()
        await world.link.admit(upstream.peer, 0)
        strike = await world.link.strike(Cut(), Downstream(upstream.peer, 1000))
        waiting = asyncio.create_task(world.carry(neighbour[1], neighbour[0], b"n" * 2000))
        client.close()
        upstream.close()
        await asyncio.wait_for(waiting, PATIENCE_S)
        assert await strike.fired(PATIENCE_S) is None


async def test_a_slow_reader_next_door_is_not_cut_short(toxiproxy, worlds):
    """A strike with a low limit waits for a large answer that is still on its way, and that one arrives whole."""
    size = 12 << 20
    async with worlds(toxiproxy) as world:
        reader, writer = await world.pair()
        client, upstream = await world.pair()
        await world.link.admit(writer.peer, 0)
        writer.write(b"l" * size)
        await asyncio.sleep(0.1)
        await world.link.admit(upstream.peer, 0)
        striking = asyncio.create_task(world.link.strike(Cut(), Downstream(upstream.peer, 10)))
        await asyncio.sleep(0.1)
        assert not striking.done()
        assert await reader.read(size) == b"l" * size
        strike = await striking
        upstream.write(b"c" * 100)
        assert await client.ending() == (b"c" * 10, "fin")
        assert await strike.fired(PATIENCE_S) is not None


async def test_a_reply_that_takes_its_time_is_struck_all_the_same(toxiproxy, worlds):
    """The limit stays until the bytes have arrived, however late the fake writes the last of them."""
    async with worlds(toxiproxy) as world:
        client, upstream = await world.pair()
        await world.link.admit(upstream.peer, 0)
        strike = await world.link.strike(Stall(), Downstream(upstream.peer, 300))
        for _ in range(5):
            await world.link.admit(upstream.peer, 0)
            upstream.write(b"t" * 100)
            await asyncio.sleep(0.05)
        assert await client.ending(SILENCE_S, after=300) == (b"t" * 300, "stall")
        assert (await strike.fired(PATIENCE_S)).bytes == 300


async def test_without_the_kernels_counts_a_strike_settles(networks, worlds, monkeypatch):
    """On a system that keeps no counts the fault still hits its byte; the proof says that it was not counted."""
    monkeypatch.setattr(TcpDiag, "open", lambda: None)
    async with networks("toxiproxy") as toxiproxy, worlds(toxiproxy) as world:
        client, upstream = await world.pair()
        await world.link.admit(upstream.peer, 0)
        strike = await world.link.strike(Stall(), Downstream(upstream.peer, 300))
        upstream.write(b"t" * 500)
        assert await client.ending(SILENCE_S, after=300) == (b"t" * 300, "stall")
        proof = await strike.fired(PATIENCE_S)
        assert proof.bytes is None
        assert "no count" in proof.how


async def test_a_link_does_fin_or_rst_but_not_both(toxiproxy, worlds):
    """Through Toxiproxy the kind of close is settled at birth; the other kind is refused with a reason."""
    async with worlds(toxiproxy) as plain, worlds(toxiproxy, resets=True) as resetting:
        for world, fault in ((plain, Cut("rst")), (resetting, Cut("fin"))):
            _, upstream = await world.pair()
            with pytest.raises(NetworkError, match="was opened for"):
                await world.link.strike(fault, Downstream(upstream.peer, 10))


async def test_paces_and_delays_come_and_go_while_a_stall_is_held(toxiproxy, worlds):
    """Toxics with a life of their own don't disturb the ones that a link is born with."""
    async with worlds(toxiproxy) as world:
        held, _, strike = await stalled(world)
        for fault in (Latency(0.01), Drip(0.001, bytes=100), Latency(0.02)):
            added = await world.link.strike(fault, WholeLink())
            client, upstream = await world.pair()
            await world.carry(upstream, client, b"p" * 3000)
            assert (await added.fired(PATIENCE_S)) is not None
            await added.heal()
        assert await held.ending(SILENCE_S) == (b"", "stall")
        await strike.heal()
        assert await held.ending() == (b"", "fin")


async def test_a_drip_of_a_request_can_only_start_at_its_first_byte(toxiproxy, worlds):
    """A slicer has no offset; asking for one is an error, not a silent shift."""
    async with worlds(toxiproxy) as world:
        with pytest.raises(NetworkError, match="first byte"):
            await world.link.strike(Drip(0.01), Upstream(5))


async def test_a_server_that_was_stopped_is_noticed_at_once(toxiproxy_path, worlds, monkeypatch):
    """Killed in mid run: every call raises ToxiproxyGoneError, the network is not alive, closing still works."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with (
        start(toxiproxy_path) as server,
        ToxiproxyNetwork(server.address) as network,
        worlds(network) as world,
    ):
        assert await network.alive()
        client, upstream = await world.pair()
        await world.link.admit(upstream.peer, 0)
        strike = await world.link.strike(Stall(), Downstream(upstream.peer, 10))
        os.kill(server.pid, signal.SIGKILL)
        await client.ending()
        with pytest.raises(ToxiproxyGoneError):
            await strike.fired(PATIENCE_S)
        with pytest.raises(ToxiproxyGoneError):
            await world.link.strike(Cut(), Downstream(upstream.peer, 10))
        assert not await network.alive()


async def test_a_misspelt_toxic_never_leaves(toxiproxy):
    """The server would take it for zero; here it is an error, and so is what the server refuses."""
    link = await toxiproxy.open_link("llm", ("127.0.0.1", 9), resets=False)
    with pytest.raises(BadToxicError, match="limit_data takes bytes, not byte"):
        await link.proxy.update(Toxic("limit_data", {"byte": 3}))
    with pytest.raises(BadToxicError, match="unknown toxic 'limit'"):
        await link.proxy.add(Toxic("limit", {"bytes": 3}))
    with pytest.raises(ToxiproxyRefusedError, match="already exists"):
        await link.proxy.add(Toxic("limit_data", {"bytes": 3}))
    with pytest.raises(ToxiproxyRefusedError, match="not found"):
        await link.proxy.remove("nothing")


async def test_a_server_that_hangs_is_given_up():
    """A call that gets no answer ends at its deadline."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        api = ToxiproxyApi(mute.getsockname(), timeout_s=0.05)
        with pytest.raises(ToxiproxyGoneError):
            await api.version()


async def test_a_proxy_finds_another_port_where_the_chosen_one_is_taken(networks, monkeypatch):
    """And takes none that the system could give to a connection while the proxy is off."""
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        taken, free = somebody.getsockname()[1], free_port()
        assert FIRST <= free <= LAST
        ports = iter([taken, free])
        monkeypatch.setattr("wedgehog.harness.network.toxiproxy.api.free_port", lambda: next(ports))
        async with networks("toxiproxy") as network:
            link = await network.open_link("llm", ("127.0.0.1", taken), False)
            assert link.address == ("127.0.0.1", free)
            await link.close()


async def test_a_client_that_leaves_while_the_server_is_asked_for_its_count_spoils_no_proof(
    toxiproxy, worlds, monkeypatch
):
    """Struck and gone between two looks, a connection is proved by the server's count, to which neighbours add too."""
    async with worlds(toxiproxy) as world:
        link = world.link
        neighbour, its_upstream = await world.pair()
        await world.carry(its_upstream, neighbour, b"n" * 100)
        client, upstream = await world.pair()
        ask = link.proxy.counted

        def gone(conn: Address) -> bool:
            return all(it.remote != conn or not it.open for it in link._prover.look().agents.values())

        async def leaves_first(stream: str) -> ProxyCounts:
            left = neighbour.sock.getsockname() if neighbour.sock.fileno() >= 0 else None
            neighbour.close()
            while left and not gone(left):
                await asyncio.sleep(0.001)
            return await ask(stream)

        monkeypatch.setattr(link.proxy, "counted", leaves_first)
        await link.admit(upstream.peer, 0)
        strike = await link.strike(Cut(), Downstream(upstream.peer, 10))
        me = client.sock.getsockname()
        # All of it before the link can look once.
        upstream.sock.sendall(b"c" * 50)
        client.sock.setblocking(True)
        got = [client.sock.recv(50), client.sock.recv(50)]
        client.close()
        while not gone(me):
            pass
        assert got == [b"c" * 10, b""]
        proof = await strike.fired(PATIENCE_S)
        assert proof is not None
        assert "the server counted 10 bytes" in proof.how
