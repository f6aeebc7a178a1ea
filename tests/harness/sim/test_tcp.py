"""Virtual TCP: what a client and a server see is what asyncio's transports give them on real sockets.

Each scene is played on real sockets too, and the two tellings are compared.
"""

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import pytest
import trustme

from wedgehog.harness.sim.errors import SimError
from wedgehog.harness.sim.loop import SimLoop
from wedgehog.harness.sim.net import Net
from wedgehog.harness.sim.virtual_time import START_S
from wedgehog.harness.sim.world import simulate

Scene = Callable[[], Awaitable[list[object]]]
RESET = struct.pack("ii", 1, 0)


class Notes(asyncio.Protocol):
    """Writes down each call; bytes that come together or apart are one entry."""

    def __init__(self, told: list[object], *, keeps_open: bool = False, reads: bool = True) -> None:
        self.told, self.keeps_open, self.reads = told, keeps_open, reads
        self.over = asyncio.get_running_loop().create_future()
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.told.append("made")
        if not self.reads:
            self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        if self.told and isinstance(self.told[-1], bytes):
            self.told[-1] += data
        else:
            self.told.append(data)

    def eof_received(self) -> bool:
        self.told.append("eof")
        self.ended.set_result(None)
        return self.keeps_open

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append(f"lost {exc!r}")
        self.over.set_result(None)


class Pair:
    """A server's and a client's notes of one connection."""

    def __init__(self, **of_server: bool) -> None:
        self.of_server = of_server
        self.server_told: list[object] = []
        self.client_told: list[object] = []

    async def __aenter__(self) -> "Pair":
        loop = asyncio.get_running_loop()
        accepted: asyncio.Future[Notes] = loop.create_future()

        def accept() -> Notes:
            accepted.set_result(Notes(self.server_told, **self.of_server))
            return accepted.result()

        self.listener = await loop.create_server(accept, "127.0.0.1", 0)
        address = self.listener.sockets[0].getsockname()
        _, self.client = await loop.create_connection(lambda: Notes(self.client_told), *address)
        self.server = await accepted
        await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for end in (self.client, self.server):
            if not end.over.done():
                end.transport.abort()
        self.listener.close()
        await asyncio.wait([self.client.over, self.server.over])

    @property
    def told(self) -> list[object]:
        return [self.client_told, self.server_told]


async def talk() -> list[object]:
    async with Pair() as it:
        it.client.transport.write(b"hello ")
        it.client.transport.writelines([b"from ", b"here"])
        await asyncio.sleep(0.01)
        it.server.transport.write(bytearray(b"hello there"))
        await asyncio.sleep(0.01)
        it.client.transport.close()
        await it.client.over
        await it.server.over
        return it.told


async def server_closes() -> list[object]:
    async with Pair() as it:
        it.server.transport.write(b"bye")
        it.server.transport.close()
        it.server.transport.write(b"unsent")
        await it.client.over
        return it.told


async def half_close() -> list[object]:
    async with Pair(keeps_open=True) as it:
        it.client.transport.write(b"question")
        it.client.transport.write_eof()
        with pytest.raises(RuntimeError, match="write_eof"):
            it.client.transport.write(b"more")
        await it.server.ended
        it.server.transport.write(b"answer")
        await asyncio.sleep(0.01)
        it.server.transport.close()
        await it.client.over
        return it.told


WHOSE = ContextVar("WHOSE", default="")


async def contexts_of_both_ends() -> list[object]:
    """Each end is called in the context of the code that listens or connects, never in that of the other end."""
    told: list[object] = []

    class Told(asyncio.Protocol):
        def __init__(self, end: str) -> None:
            self.end, self.over = end, asyncio.get_running_loop().create_future()
            told.append((end, "init", WHOSE.get()))

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport: asyncio.Transport = transport  # type: ignore[assignment]

        def data_received(self, data: bytes) -> None:
            told.append((self.end, data, WHOSE.get()))
            if self.end == "server":
                self.transport.write(b"answer")

        def connection_lost(self, exc: Exception | None) -> None:
            told.append((self.end, "lost", WHOSE.get()))
            self.over.set_result(None)

    loop = asyncio.get_running_loop()
    accepted: asyncio.Future[Told] = loop.create_future()

    def accept() -> Told:
        accepted.set_result(Told("server"))
        return accepted.result()

    WHOSE.set("listens")
    listener = await loop.create_server(accept, "127.0.0.1", 0)
    WHOSE.set("connects")
    _, client = await loop.create_connection(lambda: Told("client"), *listener.sockets[0].getsockname())
    client.transport.write(b"question")
    await asyncio.sleep(0.01)
    WHOSE.set("elsewhere")
    client.transport.close()
    await asyncio.wait([client.over, (await accepted).over])
    listener.close()
    return sorted(map(str, told))


async def reset() -> list[object]:
    async with Pair() as it:
        it.server.transport.write(b"first words")
        await asyncio.sleep(0.01)
        it.server.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        it.server.transport.close()
        await it.client.over
        return it.told


async def close_with_unread_bytes() -> list[object]:
    """The kernel answers with RST."""
    async with Pair(reads=False) as it:
        it.client.transport.write(b"never read")
        await asyncio.sleep(0.01)
        it.server.transport.close()
        await it.client.over
        return it.told


async def write_to_a_closed_socket() -> list[object]:
    async with Pair() as it:
        it.client.transport.pause_reading()
        it.server.transport.close()
        await it.server.over
        it.client.transport.write(b"into the void")
        await asyncio.sleep(0.01)
        it.client.transport.write(b"again")
        await it.client.over
        return it.told


async def reset_while_paused() -> list[object]:
    """A transport that does not read learns of it when it writes."""
    async with Pair() as it:
        it.client.transport.pause_reading()
        it.server.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        it.server.transport.close()
        await asyncio.sleep(0.01)
        assert not it.client.over.done()
        it.client.transport.write(b"hello")
        await it.client.over
        return it.told


async def back_pressure() -> list[object]:
    """A writer pauses when the kernels are full, and goes on when the reader reads."""
    async with Pair(reads=False) as it:
        it.client.transport.write(bytes(8_000_000))
        await asyncio.sleep(0.05)
        it.server.transport.resume_reading()
        it.client.transport.close()
        await it.server.over
        return [it.client_told, [len(said) if isinstance(said, bytes) else said for said in it.server_told]]


async def paused_reader_gets_all() -> list[object]:
    async with Pair(reads=False) as it:
        it.client.transport.write(b"kept")
        it.client.transport.close()
        await asyncio.sleep(0.01)
        assert it.server_told == ["made"]
        it.server.transport.resume_reading()
        await it.server.over
        return it.told


async def refused() -> list[object]:
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()
    listener.close()
    await listener.wait_closed()
    with pytest.raises(ConnectionRefusedError) as error:
        await loop.create_connection(asyncio.Protocol, host, port)
    return [error.value.errno, str(error.value).replace(str(port), "PORT")]


async def address_in_use() -> list[object]:
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()
    with pytest.raises(OSError, match="in use") as error:
        await loop.create_server(asyncio.Protocol, host, port)
    listener.close()
    return [error.value.errno, str(error.value).replace(str(port), "PORT")]


async def streams() -> list[object]:
    told: list[object] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.append(await reader.readline())
        writer.write(b"answer\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"question\n")
    told += [await reader.readline(), await reader.read()]
    writer.close()
    await writer.wait_closed()
    server.close()
    return told


AUTHORITY = trustme.CA()


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    AUTHORITY.issue_cert("localhost").configure_cert(server)
    AUTHORITY.configure_trust(client)
    return server, client


async def tls() -> list[object]:
    told: list[object] = []
    server_side, client_side = contexts()
    served = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.append(await reader.readline())
        writer.write(b"secret\n")
        writer.close()
        await writer.wait_closed()
        served.set()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=server_side)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_side, server_hostname="localhost")
    told.append(writer.get_extra_info("ssl_object").version())
    writer.write(b"question\n")
    told += [await reader.readline(), await reader.read()]
    writer.close()
    await writer.wait_closed()
    await served.wait()
    server.close()
    return told


async def start_tls() -> list[object]:
    server_side, client_side = contexts()
    served = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"go on\n")
        await writer.start_tls(server_side)
        writer.write(await reader.readline())
        writer.close()
        await writer.wait_closed()
        served.set()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"STARTTLS\n")
    told: list[object] = [await reader.readline()]
    await writer.start_tls(client_side, server_hostname="localhost")
    writer.write(b"hidden\n")
    told.append(await reader.readline())
    writer.close()
    await writer.wait_closed()
    await served.wait()
    server.close()
    return told


async def wrong_certificate() -> list[object]:
    server_side, _ = contexts()
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0, ssl=server_side)
    with pytest.raises(ssl.SSLCertVerificationError) as error:
        await asyncio.open_connection(*server.sockets[0].getsockname(), ssl=stranger, server_hostname="localhost")
    await asyncio.sleep(0.01)  # the server gets the alert
    server.close()
    return [error.value.verify_message]


SCENES: tuple[Scene, ...] = (
    talk,
    contexts_of_both_ends,
    server_closes,
    half_close,
    reset,
    close_with_unread_bytes,
    write_to_a_closed_socket,
    reset_while_paused,
    back_pressure,
    paused_reader_gets_all,
    refused,
    address_in_use,
    streams,
    tls,
    start_tls,
    wrong_certificate,
)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_simulated_tcp_tells_what_real_tcp_tells(scene: Scene):
    async def told() -> list[object]:
        return await scene()

    assert simulate(told) == asyncio.run(told())


def test_each_way_takes_the_latency():
    async def main() -> float:
        async with Pair() as it:
            began = asyncio.get_running_loop().time()
            it.client.transport.close()
            await it.server.over
            return round(asyncio.get_running_loop().time() - began, 6)

    assert simulate(main, loop=SimLoop(Net(latency_s=0.25))) == 0.25


def test_small_writes_arrive_in_order():
    async def main() -> object:
        async with Pair() as it:
            for number in range(100):
                it.client.transport.write(b"%d " % number)
                if number % 7 == 0:
                    await asyncio.sleep(1e-5)
            await asyncio.sleep(1)
            return list(it.server_told)

    assert simulate(main) == ["made", b"".join(b"%d " % number for number in range(100))]


@pytest.mark.parametrize("host", ["api.openai.com", "192.0.2.7"])
def test_a_host_outside_of_this_world_is_an_error_that_names_the_live_world(host: str):
    net = Net()

    async def main() -> str:
        with pytest.raises(OSError, match="simulated") as error:
            await asyncio.open_connection(host, 443)
        return str(error.value)

    assert f"{host} is not in the simulated network: it needs the live world" in simulate(main, loop=SimLoop(net))
    assert list(net.refused) == [host]


def test_a_host_can_be_given_a_name():
    async def main() -> bytes:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"welcome")
            writer.close()
            await writer.wait_closed()

        await asyncio.start_server(handle, "api.example.com", 443)
        reader, writer = await asyncio.open_connection("api.example.com", 443)
        words = await reader.read()
        writer.close()
        await writer.wait_closed()
        return words

    assert simulate(main, loop=SimLoop(Net(names={"api.example.com": "10.0.0.7"}))) == b"welcome"


def test_the_errors_of_this_world_are_told_apart():
    assert issubclass(SimError, RuntimeError) and START_S > 0
