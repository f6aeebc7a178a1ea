"""A raw client and a raw upstream, with a network between them, so that every byte and every close is seen."""

import asyncio
import contextlib
import functools
import os
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from wedgehog.harness.network.base import Address, Link, Network
from wedgehog.harness.network.relay import EmbeddedNetwork
from wedgehog.harness.network.toxiproxy.link import ToxiproxyNetwork
from wedgehog.harness.network.toxiproxy.server import NoServerError, fetch, locate, start

PATIENCE_S = 20.0
"""So long a busy machine may take for what must come."""


@dataclass
class Conn:
    """One end of a connection: a bare socket, because a stream reader forgets what came before an RST."""

    sock: socket.socket
    got: int = 0
    _writing: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def peer(self) -> Address:
        """The remote address; at the upstream's end, what a fake would call the connection."""
        return self.sock.getpeername()[:2]

    async def read(self, count: int) -> bytes:
        """Exactly so many bytes."""
        got = b""
        while len(got) < count:
            data = await asyncio.wait_for(self._loop.sock_recv(self.sock, count - len(got)), PATIENCE_S)
            assert data, f"the end came after {len(got)} of {count} bytes"
            got += data
            self.got += len(data)
        return got

    def write(self, data: bytes) -> None:
        """Write without waiting; whether anybody reads it is not our business."""
        task = self._loop.create_task(self._send(data))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def ending(
        self, silence_s: float = PATIENCE_S, *, after: int = 0, of: "Sequence[Conn]" = ()
    ) -> tuple[bytes, str]:
        """All that still comes, and how it ends: silence counts after `after` bytes, its own or all that `of` got."""
        got, until_s = b"", self._loop.time() + PATIENCE_S
        while True:
            try:
                data = await asyncio.wait_for(self._loop.sock_recv(self.sock, 65536), silence_s)
            except TimeoutError:
                if (sum(conn.got for conn in of) if of else len(got)) >= after or self._loop.time() > until_s:
                    return got, "stall"
                continue
            except ConnectionResetError:
                return got, "rst"
            if not data:
                return got, "fin"
            got += data
            self.got += len(data)

    def close(self) -> None:
        """Close it."""
        for task in self._writing:
            task.cancel()
        self.sock.close()

    async def _send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            await self._loop.sock_sendall(self.sock, data)

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()


@dataclass
class World:
    """One link, its upstream, and a way to connect."""

    network: Network
    link: Link
    listener: socket.socket
    everything: list[Conn] = field(default_factory=list)

    async def connect(self) -> Conn:
        """A client's end through the link."""
        sock = socket.socket()
        sock.setblocking(False)
        client = Conn(sock)
        self.everything.append(client)
        await asyncio.get_running_loop().sock_connect(sock, self.link.address)
        return client

    async def accept(self) -> Conn:
        """The upstream's end of the connection that came next."""
        sock, _ = await asyncio.wait_for(asyncio.get_running_loop().sock_accept(self.listener), PATIENCE_S)
        self.everything.append(Conn(sock))
        return self.everything[-1]

    async def pair(self) -> tuple[Conn, Conn]:
        """A client's end and the upstream's end of one new connection."""
        return await self.connect(), await self.accept()

    async def carry(self, upstream: Conn, client: Conn, data: bytes, before: int = 0) -> None:
        """An answer goes through unharmed, as a fake would send it."""
        await self.link.admit(upstream.peer, before)
        upstream.write(data)
        assert await client.read(len(data)) == data


@contextlib.asynccontextmanager
async def open_world(network: Network, resets: bool = False, requests: bool = False) -> AsyncIterator[World]:
    """A world on that network."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        link = await network.open_link("llm", listener.getsockname(), resets, requests)
        world = World(network, link, listener)
        try:
            yield world
        finally:
            for conn in world.everything:
                conn.close()
            await link.close()
            await asyncio.sleep(0.01)


@functools.cache
def had() -> Path | str:
    """The server's binary, fetched if need be, or why there is none; asked once."""
    try:
        found = locate()
        return found.path or fetch(lambda _: None).path or "not found"
    except NoServerError as error:
        return f"no Toxiproxy server: {error}"


def toxiproxy_binary() -> Path:
    """The server's binary, or skip; where the environment demands Toxiproxy, fail."""
    found = had()
    if isinstance(found, Path):
        return found
    if os.environ.get("WEDGEHOG_REQUIRE_TOXIPROXY") == "1":
        pytest.fail(found)
    pytest.skip(found)


@contextlib.asynccontextmanager
async def open_network(name: str) -> AsyncIterator[Network]:
    """The network of that name, with a server of its own if it needs one."""
    if name == "embedded":
        async with EmbeddedNetwork() as network:
            yield network
        return
    async with start(toxiproxy_binary()) as server, ToxiproxyNetwork(server.address) as network:
        yield network


@pytest.fixture(params=["embedded", "toxiproxy"])
async def network(request: pytest.FixtureRequest) -> AsyncIterator[Network]:
    """Both networks, one after the other."""
    async with open_network(request.param) as network:
        yield network


@pytest.fixture
def worlds():
    """Opens a world on a network."""
    return open_world


@pytest.fixture
def networks():
    """Opens a network by name."""
    return open_network


@pytest.fixture
def toxiproxy_path():
    """The server's binary."""
    return toxiproxy_binary()
