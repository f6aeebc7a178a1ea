"""The link of `wedgehog serve`: no hop, and a `Pipe` in a connection from its first fault on."""

import asyncio
import itertools
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from wedgehog.harness.commands.serve import Provider
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.wire.slow import Drip, Slicer
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.network.direct_link import DirectStrike, PipedTransport

LONG, CUT_AT = {"text": "abcd" * 1_700_000}, 6_500_000
"""More than the kernel keeps for a client that reads nothing, whose own buffer is small: 4 MiB to send on Linux."""


@pytest.fixture
async def llm() -> AsyncIterator[Provider]:
    async with Provider({"replies": [{"reply": {"text": "Hi there!"}}]}) as provider:
        yield provider


@asynccontextmanager
async def connected(llm: Provider) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, port = llm.url.removeprefix("http://").split(":")
    with_small_buffer = socket.socket()
    with_small_buffer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    with_small_buffer.connect((host, int(port)))
    reader, writer = await asyncio.open_connection(sock=with_small_buffer)
    yield reader, writer
    writer.transport.abort()
    await asyncio.sleep(0.01)


def send(writer: asyncio.StreamWriter) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "go"}]}).encode()
    head = f"POST /s/it/v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer k\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


async def answer(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
        return await reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))


def strike(llm: Provider, do: Any, reply: Any = None, **more: Any) -> None:
    llm.put({"replies": [{"reply": reply or {"text": "Hi there!"}, "fault": {"do": do, **more}}]}, "it")


async def test_nothing_stands_between_a_client_and_the_fake(llm: Provider):
    """The fake's socket is the client's other end."""
    async with connected(llm) as (reader, writer):
        send(writer)
        await answer(reader)
        (attempt,) = llm._sessions.session("it").request_log.attempts
        assert attempt.seen.conn.peer == writer.get_extra_info("sockname")[:2]


async def test_a_struck_connection_answers_again_after_healing(llm: Provider):
    """Delayed bytes come when latency is healed, and the next reply on that connection comes at once."""
    strike(llm, {"latency": 60}, heal={"after_s": 0.05}, times=1)
    async with connected(llm) as (reader, writer):
        for _ in range(2):
            send(writer)
            assert b"Hi there!" in await answer(reader)
    first, second = llm.ledger("it")
    assert (first["fault"]["name"], second["fault"]) == ("latency", None)


async def test_a_pace_goes_on_however_fast_time_passes(llm: Provider, monkeypatch: Any):
    """Bytes that become due between two readings of the clock pass."""
    strike(llm, {"drip": {"every_s": 0.01, "bytes": 100}})
    looks = itertools.count()
    monkeypatch.setattr(PipedTransport, "_now", lambda piped: float(next(looks)))
    async with connected(llm) as (reader, writer):
        send(writer)
        assert b"Hi there!" in await answer(reader)


async def test_what_the_client_has_not_read_is_not_delivered(llm: Provider):
    """A client that reads nothing makes the reply wait before its fault: the ledger counts what the kernel took."""
    strike(llm, {"cut": "fin"}, LONG, at={"byte": CUT_AT})
    async with connected(llm) as (reader, writer):
        send(writer)
        while not (entries := llm.ledger("it")) or not entries[0]["bytes_delivered"]:
            await asyncio.sleep(0.01)
        assert entries[0]["bytes_delivered"] < CUT_AT and not entries[0]["fault"]["proof"]
        body = (await asyncio.wait_for(reader.read(-1), 10)).partition(b"\r\n\r\n")[2]
    (entry,) = llm.ledger("it")
    assert (len(body), entry["bytes_delivered"]) == (CUT_AT, CUT_AT)
    assert entry["fault"]["proof"].endswith("then fin")


@pytest.mark.parametrize("stays", [Stall(), Drip(60.0)], ids=["stall", "drip"])
async def test_healing_one_of_two_faults_leaves_the_other(llm: Provider, stays: WireFault):
    """What is on the connection beside a healed slicer stays on it, and the connection stays open."""
    async with connected(llm) as (reader, writer):
        send(writer)
        await answer(reader)
        (connection,) = llm._faulty.link._provider.connections
        piped = PipedTransport(connection)
        at = piped.carried
        slicer, strike = (DirectStrike(llm._faulty.link, fault, at, piped) for fault in (Slicer(), stays))
        for it in (slicer, strike):
            piped.arm(it)
        piped.write(b"ping")
        await slicer.heal()
        await slicer.heal()
        assert (piped.is_closing(), piped.carried - at <= 1) == (False, True)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.readexactly(4), 0.02)
        await strike.heal()
        assert await asyncio.wait_for(reader.read(1), 5) == (b"" if strike.fault.ends == "stall" else b"p")
