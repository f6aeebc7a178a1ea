"""Discord's gateway brings messages over a WebSocket, and again what a broken one did not bring."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from wedgehog.harness.faults.chat_fault import ChatRefusal
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.services.chat.discord import Discord
from wedgehog.harness.services.chat.service import ChatService

PATIENCE_S = 10.0


class Rig:
    """A service, and what it reported."""

    def __init__(self, service: ChatService, client: aiohttp.ClientSession) -> None:
        self.service, self.client = service, client
        self.heard: list[tuple[str, str]] = []
        service.asked = lambda what, text, chat: self.heard.append((what, text))

    async def connected(self) -> "Peer":
        """A new connection, after hello."""
        host, port = self.service.address
        peer = Peer(await self.client.ws_connect(f"ws://{host}:{port}/?v=10&encoding=json"))
        assert (await peer.read())["op"] == 10
        return peer

    async def identified(self) -> "Peer":
        """One with a new session."""
        peer = await self.connected()
        await peer.say(2, token="T")
        peer.session = (await peer.event("READY"))["session_id"]
        return peer

    async def resumed(self, session: str, seq: int) -> "Peer":
        """One that goes on with a session."""
        peer = await self.connected()
        await peer.say(6, session_id=session, seq=seq)
        return peer


class Peer:
    """The agent's side of a connection."""

    session = ""
    seq = 0

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws

    async def say(self, op: int, **data: Any) -> None:
        """Send a payload."""
        await self.ws.send_json({"op": op, "d": data})

    async def read(self) -> dict[str, Any]:
        """The next payload."""
        return dict(await asyncio.wait_for(self.ws.receive_json(), PATIENCE_S))

    async def event(self, name: str) -> dict[str, Any]:
        """The data of the next event, which has this name."""
        payload = await self.read()
        assert payload["t"] == name, payload
        self.seq = payload["s"]
        return dict(payload["d"])

    async def message(self) -> str:
        """The words of the next message."""
        return str((await self.event("MESSAGE_CREATE"))["content"]).removeprefix("<@1042> ")

    async def close_code(self) -> int | None:
        """With which the service ends the connection."""
        await asyncio.wait_for(self.ws.receive(), PATIENCE_S)
        return self.ws.close_code


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    """Its times are Discord's."""
    told: list[str] = []
    async with (
        ChatService(WallClock(), 1, Discord(), again=told.append) as service,
        aiohttp.ClientSession() as client,
    ):
        made = Rig(service, client)
        made.told = told  # type: ignore[attr-defined]
        yield made


async def test_messages_come_with_growing_numbers(rig: Rig):
    """From before the agent was there, too; its heartbeats are answered."""
    rig.service.put("Hello")
    peer = await rig.identified()
    assert rig.service.polled.is_set() and peer.seq == 1
    assert (await peer.message(), peer.seq) == ("Hello", 2)
    rig.service.put("And now?")
    assert (await peer.message(), peer.seq, rig.service.chats[0].handed) == ("And now?", 3, 2)
    await peer.say(1)
    assert (await peer.read())["op"] == 11
    assert rig.heard == [("poll", "Hello"), ("poll", "And now?")]


async def test_a_mention_in_a_server_comes_behind_the_server():
    """The agent knows then where a message is, who is there, and what it may do."""
    async with ChatService(WallClock(), 1, Discord(mention=True)) as service, aiohttp.ClientSession() as client:
        peer = await Rig(service, client).identified()
        guild = await peer.event("GUILD_CREATE")
        service.put("Hello")
        said = await peer.event("MESSAGE_CREATE")
    assert (said["guild_id"], said["channel_id"]) == (guild["id"], guild["channels"][0]["id"])
    assert (said["content"], said["mentions"][0]["id"], said["member"]["roles"]) == ("<@1042> Hello", "1042", [])
    assert {it["user"]["id"] for it in guild["members"]} == {"1042", said["author"]["id"]}


async def test_an_agent_gets_its_own_messages_too(rig: Rig):
    """One that does not know its own name answers itself."""
    peer = await rig.identified()
    host, port = rig.service.address
    async with rig.client.post(
        f"http://{host}:{port}/api/v10/channels/1000007/messages", json={"content": "Hi"}
    ) as reply:
        id_ = (await reply.json())["id"]
    own = await peer.event("MESSAGE_CREATE")
    assert (own["id"], own["author"]["bot"], own["content"]) == (id_, True, "Hi")
    assert rig.heard == [("send", "Hi")]


async def test_a_resumed_session_brings_what_was_missed_and_no_more(rig: Rig):
    """A message that had gone out and was not received is told of as delivered again."""
    peer = await rig.identified()
    rig.service.put("one")
    rig.service.put("two")
    assert [await peer.message(), await peer.message()] == ["one", "two"]
    await peer.ws.close()
    rig.service.put("three")
    later = await rig.resumed(peer.session, peer.seq - 1)
    assert [await later.message(), await later.message()] == ["two", "three"]
    await later.event("RESUMED")
    assert rig.told == ["two"]  # type: ignore[attr-defined]


async def test_a_new_session_brings_only_what_had_not_gone_out(rig: Rig):
    """As if its user had written it when the agent was back."""
    peer = await rig.identified()
    rig.service.put("one")
    await peer.message()
    await peer.ws.close()
    rig.service.put("two")
    later = await rig.identified()
    assert await later.message() == "two" and later.session != peer.session
    assert rig.told == []  # type: ignore[attr-defined]


async def test_a_session_that_is_not_known_is_invalid(rig: Rig):
    """And one with a number that was never reached ends the connection."""
    assert (await (await rig.resumed("other", 1)).read())["op"] == 9
    peer = await rig.identified()
    assert (await (await rig.resumed("other", 1)).read()) == {"op": 9, "d": False, "s": None, "t": None}
    assert await (await rig.resumed(peer.session, 7)).close_code() == 4007


async def test_an_agent_says_first_who_it_is(rig: Rig):
    """Any other word ends the connection."""
    peer = await rig.connected()
    await peer.say(3)
    assert await peer.close_code() == 4003


async def test_a_refused_message_ends_the_connection_and_comes_when_it_is_resumed(rig: Rig):
    """In the three ways in which Discord does that; the message was not handed over before."""
    peer = await rig.identified()
    refusals = [ChatRefusal(502, "Bad Gateway")] * 3
    rig.service.refuses = lambda operation: refusals.pop() if operation == "poll" and refusals else None
    rig.service.put("one")
    assert await peer.close_code() == 4000
    assert (await (await rig.resumed(peer.session, peer.seq)).read())["op"] == 7
    asked = await (await rig.resumed(peer.session, peer.seq)).read()
    assert (asked["op"], asked["d"]) == (9, True) and rig.service.chats[0].handed == 0
    assert await (await rig.resumed(peer.session, peer.seq)).message() == "one"
    assert rig.told == []  # type: ignore[attr-defined]


async def test_an_agent_that_does_not_connect_again_when_asked_loses_its_connection():
    """After a moment."""
    async with ChatService(WallClock(), 1000, Discord()) as service, aiohttp.ClientSession() as client:
        peer = await Rig(service, client).identified()
        service.refuses = lambda operation: ChatRefusal(502, "Bad Gateway") if operation == "poll" else None
        assert service._gateway is not None
        service._gateway._refusals = 1
        service.put("one")
        assert (await peer.read())["op"] == 7
        assert await peer.close_code() == 4000


async def test_an_agent_without_heartbeats_is_left():
    """After twelve intervals, here of five milliseconds each."""
    async with ChatService(WallClock(), 1000, Discord()) as service, aiohttp.ClientSession() as client:
        peer = await Rig(service, client).connected()
        assert await peer.close_code() == 4009


async def test_a_gate_knows_how_many_bytes_the_connection_has_carried(rig: Rig):
    """So that a fault on the message strikes at its first byte."""
    at: list[int] = []

    async def gate(operation: str, conn: Any, written: int) -> None:
        if operation == "poll":
            at.append(written)

    rig.service.gate = gate  # type: ignore[assignment]
    reader, writer = await asyncio.open_connection(*rig.service.address)
    key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13"
    writer.write(f"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{key}\r\n\r\n".encode())
    got = await _until(reader, b'"op": 10', b"")
    writer.write(_masked(0x9, b"ping") + _masked(0x1, json.dumps({"op": 2, "d": {}}).encode()))
    got = await _until(reader, b'"READY"}', got)
    rig.service.put("x" * 300)
    got = await _until(reader, b"MESSAGE_CREATE", got)
    writer.close()
    frame = got.rindex(b'{"op": 0, "d": {"id"') - 4
    assert at == [frame]


def _masked(opcode: int, payload: bytes) -> bytes:
    """A client's frame with a mask of zeros."""
    return bytes([0x80 | opcode, 0x80 | len(payload)]) + bytes(4) + payload


async def _until(reader: asyncio.StreamReader, end: bytes, got: bytes) -> bytes:
    while end not in got:
        got += await asyncio.wait_for(reader.read(4096), PATIENCE_S)
    return got
