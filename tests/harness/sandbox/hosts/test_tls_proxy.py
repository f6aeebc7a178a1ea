"""The proxy between an agent's TLS and a plain link: bytes, silence, FIN and RST pass unchanged."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.sandbox.hosts.private_hosts import CertificateAuthority
from wedgehog.harness.sandbox.hosts.tls_proxy import TlsProxy

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HOST = "api.example.com"
PATIENCE_S = 10.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    """One for all tests, because key generation is slow."""
    made = CertificateAuthority(tmp_path_factory.mktemp("authority"))
    made.publish()
    return made


@dataclass(frozen=True)
class Caller:
    """A client of the proxy."""

    address: tuple[str, int]
    authority: CertificateAuthority | None

    async def __call__(self) -> Ends:
        if self.authority is None:
            return await asyncio.open_connection(*self.address)
        client = ssl.create_default_context(cafile=str(self.authority.certificate))
        return await asyncio.open_connection(*self.address, ssl=client, server_hostname=HOST)

    def trusting_others(self) -> None:
        """A client that trusts only the system's authorities; asyncio's own client would not show the alert."""
        with socket.create_connection(self.address, PATIENCE_S) as plain:
            ssl.create_default_context().wrap_socket(plain, server_hostname=HOST).close()


@contextlib.asynccontextmanager
async def through(
    serve: Serve, authority: CertificateAuthority | None, alerts: list[str] | None = None
) -> AsyncIterator["Caller"]:
    """A server behind a proxy, and a function that connects to it."""
    serving: set[asyncio.Task[Any]] = set()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        await serve(reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    listening = socket.create_server(("127.0.0.1", 0))
    address = listening.getsockname()
    tls = authority.issue(HOST) if authority else None

    distrusted = (alerts if alerts is not None else []).append
    async with TlsProxy(listening, server.sockets[0].getsockname(), tls, distrusted):
        yield Caller(address, authority)
    server.close()
    await asyncio.wait_for(asyncio.gather(*serving), PATIENCE_S)


@pytest.fixture(params=["tls", "plain"])
def how(request: pytest.FixtureRequest, authority: CertificateAuthority) -> CertificateAuthority | None:
    """With TLS, and without."""
    return authority if request.param == "tls" else None


async def soon(waited: Awaitable[Any]) -> Any:
    """Fails the test if the result does not come in time."""
    return await asyncio.wait_for(waited, PATIENCE_S)


async def test_a_large_message_passes_whole_in_both_directions_and_fin_is_an_end(how: CertificateAuthority | None):
    """The message is larger than any buffer; at the end, the agent reads an end, not an error."""
    size = 3_000_000

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.readexactly(size)
        writer.write(data[::-1])
        await writer.drain()

    sent = bytes(range(250)) * (size // 250)
    async with through(echo, how) as call:
        reader, writer = await call()
        writer.write(sent)
        assert await soon(reader.read()) == sent[::-1]
        writer.close()


async def test_a_reset_link_is_a_reset_connection(how: CertificateAuthority | None):
    """The agent reads what came before; then its socket reports RST."""
    heard = asyncio.Event()

    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"half of it")
        await heard.wait()
        end = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, end)
        writer.transport.abort()

    async with through(reset, how) as call:
        reader, writer = await call()
        assert await soon(reader.readexactly(10)) == b"half of it"
        heard.set()
        with pytest.raises(ConnectionResetError):
            await soon(reader.read())
        writer.close()


async def test_an_agent_that_hangs_up_hangs_up_on_the_link(how: CertificateAuthority | None):
    """The server behind the link sees the end at once."""
    gone: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone.set_result(await reader.read())

    async with through(serve, how) as call:
        _, writer = await call()
        writer.write(b"hello")
        writer.close()
        assert await soon(gone) == b"hello"


async def test_a_link_that_refuses_resets_the_agents_connection(authority: CertificateAuthority):
    """Before the handshake, so that no agent counts as connected."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = closed.getsockname()
    listening = socket.create_server(("127.0.0.1", 0))
    address = listening.getsockname()
    async with TlsProxy(listening, nobody, authority.issue(HOST)):
        with pytest.raises((ConnectionResetError, ssl.SSLError)):
            client = ssl.create_default_context(cafile=str(authority.certificate))
            await soon(asyncio.open_connection(*address, ssl=client, server_hostname=HOST))


async def test_the_alert_of_an_agent_that_does_not_trust_us_is_reported(authority: CertificateAuthority):
    """The alert is reported, and the link sees no request."""
    alerts: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == b""

    async with through(serve, authority, alerts=alerts) as call:
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(call.trusting_others)
        for _ in range(200):
            if alerts:
                break
            await asyncio.sleep(0.01)
    assert len(alerts) == 1 and "unknown ca" in alerts[0]


async def test_closing_the_proxy_closes_every_connection(how: CertificateAuthority | None):
    """A finished run leaves no connection open."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with through(silent, how) as call:
        reader, writer = await call()
    with contextlib.suppress(OSError):
        assert await soon(reader.read()) == b""
    with pytest.raises(OSError):
        await soon(call())
    writer.close()


def test_no_key_is_left_on_disk(tmp_path: Path):
    """The authority's key is never written, and the host's key is deleted."""
    made = CertificateAuthority(tmp_path)
    made.publish()
    made.issue(HOST)
    assert [path.name for path in tmp_path.iterdir()] == ["ca.pem"]
    assert "PRIVATE" not in made.certificate.read_text()
    assert set(made.env.values()) == {str(made.certificate)} and "NODE_EXTRA_CA_CERTS" in made.env
