"""Slack's socket mode brings an event until it is acknowledged."""

import asyncio
from collections.abc import AsyncIterator
from itertools import chain, repeat
from typing import Any

import aiohttp
import pytest

from wedgehog.harness.faults.chat_fault import ChatRefusal
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.services.chat.service import ChatService
from wedgehog.harness.services.chat.slack import Slack
from wedgehog.harness.services.chat.socket_mode import socket_url

PATIENCE_S = 10.0


class Rig:
    """A service and its client."""

    def __init__(self, service: ChatService, client: aiohttp.ClientSession, told: list[str]) -> None:
        self.service, self.client, self.told = service, client, told

    async def connected(self) -> "Peer":
        """A new connection at the address that the service names, after hello."""
        host, port = self.service.address
        async with self.client.post(f"http://{host}:{port}/api/apps.connections.open") as reply:
            url = (await reply.json())["url"]
        peer = Peer(await self.client.ws_connect(url, autoping=False))
        assert (await peer.read())["type"] == "hello"
        return peer


class Peer:
    """The agent's side of a connection."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws

    async def read(self) -> dict[str, Any]:
        """The next payload."""
        message = await asyncio.wait_for(self.ws.receive(), PATIENCE_S)
        while message.type == aiohttp.WSMsgType.PING:
            await self.ws.pong(message.data)
            message = await asyncio.wait_for(self.ws.receive(), PATIENCE_S)
        return dict(message.json())

    async def event(self, *, taken: bool = True) -> dict[str, Any]:
        """The next event, which is acknowledged if it is `taken`."""
        envelope = await self.read()
        if taken:
            await self.ws.send_json({"envelope_id": envelope["envelope_id"]})
        return envelope


async def rig_of(scale: float) -> AsyncIterator[Rig]:
    told: list[str] = []
    async with (
        ChatService(WallClock(), scale, Slack("x", "both"), again=told.append) as service,
        aiohttp.ClientSession() as client,
    ):
        yield Rig(service, client, told)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    """Its times are Slack's."""
    async for made in rig_of(1):
        yield made


@pytest.fixture
async def fast() -> AsyncIterator[Rig]:
    """Its times are a hundred times shorter."""
    async for made in rig_of(100):
        yield made


async def test_an_event_that_is_acknowledged_comes_once(rig: Rig):
    """Also from before the agent was there; the next connection brings only the next one."""
    rig.service.put("Hello")
    peer = await rig.connected()
    assert rig.service.polled.is_set()
    first = await peer.event()
    assert (first["type"], first["payload"]["event"]["text"]) == ("events_api", "<@U42> Hello")
    assert (first["retry_attempt"], rig.service.chats[0].handed) == (0, 1)
    await peer.ws.close()
    rig.service.put("And now?")
    assert (await (await rig.connected()).event())["payload"]["event"]["text"] == "<@U42> And now?"
    assert rig.told == []


async def test_one_that_is_not_acknowledged_comes_with_the_next_connection(rig: Rig):
    """With the same id, and the number of the try."""
    rig.service.put("Hello")
    first = await (await rig.connected()).event(taken=False)
    again = await (await rig.connected()).event()
    assert again == first | {"retry_attempt": 1, "retry_reason": "timeout"}
    assert rig.told == ["Hello"]


async def test_one_that_is_not_acknowledged_in_time_comes_again_and_is_given_up(fast: Rig):
    """After the times that a webhook has."""
    pauses = chain((0.0, 0.0), repeat(0.0, 1))
    assert fast.service._gateway is not None
    fast.service._gateway._pauses_s = lambda: pauses  # type: ignore[union-attr]
    fast.service.put("Hello")
    peer = await fast.connected()
    attempts = [(await peer.event(taken=False))["retry_attempt"] for _ in range(4)]
    assert attempts == [0, 1, 2, 3] and fast.told == ["Hello"] * 3
    fast.service.put("And now?")
    assert (await peer.event())["payload"]["event"]["text"] == "<@U42> And now?"


async def test_a_refused_event_ends_the_connection_by_the_word_to_connect_again(fast: Rig):
    """The next connection brings it, and it was not handed over before."""
    peer = await fast.connected()
    refusals = [ChatRefusal(502, "Bad Gateway")]
    fast.service.refuses = lambda operation: refusals.pop() if operation == "poll" and refusals else None
    fast.service.put("Hello")
    assert (await peer.read())["type"] == "disconnect" and fast.service.chats[0].handed == 0
    assert (await (await fast.connected()).event())["retry_attempt"] == 0
    kinds = [(await asyncio.wait_for(peer.ws.receive(), PATIENCE_S)).type for _ in range(2)]
    assert kinds[-1] in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
    assert fast.told == []


async def test_a_message_is_delivered_again_on_demand(rig: Rig):
    """With the same id, or as its other event."""
    rig.service.put("Hello")
    peer = await rig.connected()
    first = await peer.event()
    await rig.service.deliver_again("Hello")
    assert (await peer.event())["payload"] == first["payload"]
    await rig.service.deliver_again("Hello", other_event=True)
    assert (await peer.event())["payload"]["event"]["type"] == "message"


async def test_an_idle_connection_is_pinged(fast: Rig):
    """Slack's libraries take one without pings for dead."""
    peer = await fast.connected()
    assert (await asyncio.wait_for(peer.ws.receive(), PATIENCE_S)).type == aiohttp.WSMsgType.PING


def test_the_address_is_slacks_own_if_it_was_asked_under_its_name():
    """A private network has no other."""
    assert socket_url("slack.com").startswith("wss://wss-primary.slack.com/link/")
    assert socket_url("127.0.0.1:80").startswith("ws://127.0.0.1:80/link/")
