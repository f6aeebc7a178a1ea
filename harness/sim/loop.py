"""An asyncio event loop in virtual time whose TCP is in memory."""

import asyncio
import contextvars
import os
import socket
import ssl
import threading
import weakref
from asyncio import sslproto
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from wedgehog.harness.network.base import Address
from wedgehog.harness.sim.byte_stream import ByteStream
from wedgehog.harness.sim.errors import SimUnsupportedError
from wedgehog.harness.sim.net import Net
from wedgehog.harness.sim.processes import ProcessTable, SimChild
from wedgehog.harness.sim.programs import PROGRAM
from wedgehog.harness.sim.refused import RefusesRealThings
from wedgehog.harness.sim.server import SimServer
from wedgehog.harness.sim.sim_socket import SimSocket
from wedgehog.harness.sim.tasks import in_order, numbered_tasks, waits_for
from wedgehog.harness.sim.tcp import SimTransport
from wedgehog.harness.sim.virtual_time import START_S, VirtualTimeLoop

AddrInfo = tuple[int, int, int, str, Address]
ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class SimLoop(RefusesRealThings, VirtualTimeLoop):
    """An event loop in virtual time, and the network that its connections use."""

    def __init__(
        self,
        net: Net | None = None,
        *,
        horizon_s: float | None = None,
        on_jump: Callable[[float], None] = lambda now: None,
    ) -> None:
        """`horizon_s` limits the virtual time; `on_jump` gets the new time at each jump."""
        super().__init__(horizon_s, on_jump)
        self.net = net or Net()
        self.processes = ProcessTable(self.refusal)
        self._dialled: weakref.WeakKeyDictionary[socket.socket, Address] = weakref.WeakKeyDictionary()
        self._foreign = False
        self.set_task_factory(numbered_tasks())

    def advance(self, now: float) -> None:
        """Move the clock. Raises the error of a foreign thread, because the loop cannot wait for it."""
        if self._foreign:
            raise self.unsupported[-1]
        super().advance(now)

    def report(self) -> str:
        """What each task waits for, one line for each."""
        head = f"after {self._now - START_S:g} virtual seconds every task waits for something that never comes"
        alive = [thread.name for thread in threading.enumerate() if thread.ident != self._thread_id]  # type: ignore[attr-defined]
        others = [f"threads, which virtual time cannot wait for: {', '.join(sorted(alive))}"] if alive else []
        return "\n  ".join([head, *map(waits_for, in_order(self)), *others])

    def _write_to_self(self) -> None:
        """No effect: this loop never waits for descriptors."""

    # ---- names

    async def getaddrinfo(  # type: ignore[override]
        self,
        host: str | bytes | None,
        port: int | str | None,
        *,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> list[AddrInfo]:
        """One IPv4 address for a known name; socket.gaierror for others."""
        if family == socket.AF_INET6:
            raise socket.gaierror(socket.EAI_ADDRFAMILY, "the simulated network has no IPv6")
        address = (self.net.resolve(host), int(port or 0))
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)]

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:
        """The address itself."""
        return sockaddr[0], str(sockaddr[1])

    # ---- connections

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Note where a socket goes: `create_connection` makes the connection. The real socket stays unconnected."""
        await self._reach((address[0], address[1]))
        self._dialled[sock] = (self.net.resolve(address[0]), address[1])

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: ProtocolFactory,
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: ssl.SSLContext | bool | None = None,
        sock: socket.socket | None = None,
        server_hostname: str | None = None,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
        **_: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect to a listener of this world; TLS is asyncio's own."""
        if sock is None:
            address = (await self.getaddrinfo(host, port))[0][4]
            await self._reach(address)
        else:
            address = self._taken(sock)
        transport = self._connected(self.net.listener(address))
        protocol = protocol_factory()
        if not ssl:
            transport.start(protocol)
            await asyncio.sleep(0)  # `connection_made` comes before this returns
            return transport, protocol
        name = host if server_hostname is None else server_hostname
        context = None if ssl is True else ssl
        times = (ssl_handshake_timeout, ssl_shutdown_timeout)
        return await self._client_tls(transport, protocol, context, name, *times), protocol

    async def _client_tls(
        self,
        transport: SimTransport,
        protocol: asyncio.BaseProtocol,
        context: ssl.SSLContext | None,
        name: str | None,
        handshake_s: float | None,
        shutdown_s: float | None,
    ) -> asyncio.Transport:
        waiter = self.create_future()
        tls = sslproto.SSLProtocol(
            self,
            protocol,
            context or sslproto._create_transport_context(False, name),
            waiter,
            False,
            name,
            ssl_handshake_timeout=handshake_s,  # type: ignore[arg-type]
            ssl_shutdown_timeout=shutdown_s,
        )
        transport.start(tls)
        try:
            await waiter
        except BaseException:
            transport.close()
            raise
        return tls._app_transport

    async def _reach(self, address: Address) -> None:
        """The handshake: one round trip, then an error if nothing listens."""
        await asyncio.sleep(2 * self.net.latency_s)
        self.net.listener((self.net.resolve(address[0]), address[1]))

    def _taken(self, sock: socket.socket) -> Address:
        """Where `sock_connect` took a socket; the socket itself is not needed any more."""
        address = self._dialled.pop(sock, None)
        if address is None:
            raise self.refusal("a connection over a real socket")
        sock.close()
        return address

    def _connected(self, server: SimServer) -> SimTransport:
        """Both ends of a new connection; the server's end has started."""
        number, local = self.net.connecting()
        remote = server.address
        client = SimTransport(self, f"{number}>", local, remote, None)
        accepted = SimTransport(self, f"{number}<", remote, local, server)
        up, down = ByteStream(self, client, accepted), ByteStream(self, accepted, client)
        client.connect(up, down)
        accepted.connect(down, up)
        protocol = accepted.context.run(server.accept)
        if server.tls is not None:
            protocol = sslproto.SSLProtocol(self, protocol, server.tls, None, True)  # type: ignore[arg-type]
        accepted.start(protocol)
        return client

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: ProtocolFactory,
        host: str | Sequence[str] | None = None,
        port: int | None = None,
        *,
        ssl: ssl.SSLContext | None = None,
        sock: socket.socket | None = None,
        start_serving: bool = True,
        **_: Any,
    ) -> SimServer:
        """Listen in this world; with several hosts, at the first."""
        if sock is not None:
            raise self.refusal("a server on a real socket")
        first = host if isinstance(host, str | None) else next(iter(host), None)
        server = SimServer(self, self.net, SimSocket(self.net.bound(first, port)), protocol_factory, ssl)
        if start_serving:
            await server.start_serving()
        return server

    # ---- child processes

    async def subprocess_exec(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.SubprocessProtocol],
        *argv: str,
        stdin: Any = asyncio.subprocess.PIPE,
        stdout: Any = asyncio.subprocess.PIPE,
        stderr: Any = asyncio.subprocess.PIPE,
        **options: Any,
    ) -> tuple[SimChild, asyncio.SubprocessProtocol]:
        """Start a command that the simulated shell has. Raises SimUnsupportedError for any other."""
        protocol = protocol_factory()
        words = [os.fsdecode(word) for word in argv]
        child = self.processes.start(protocol, words, (stdin, stdout, stderr), options)
        await asyncio.sleep(0)  # asyncio connects the pipes here, and other tasks go on meanwhile
        return child, protocol

    async def subprocess_shell(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.SubprocessProtocol], cmd: str, **options: Any
    ) -> tuple[SimChild, asyncio.SubprocessProtocol]:
        """Start a shell script."""
        return await self.subprocess_exec(protocol_factory, "/bin/sh", "-c", os.fsdecode(cmd), **options)

    # ---- what is not there

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]
        """Run the function in the next turn of the loop, in this thread; virtual time stands still meanwhile."""
        future = self.create_future()
        self.call_soon(_run, future, func, args, context=contextvars.Context())
        return future

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any, context: Any = None) -> asyncio.Handle:  # type: ignore[override]
        """Like `call_soon`. Another thread cannot be waited for: then the loop stops with SimUnsupportedError."""
        if self._thread_id not in (None, threading.get_ident()):  # type: ignore[attr-defined]
            self._foreign = True
            raise self.refusal(f"a thread ({threading.current_thread().name})")
        return self.call_soon(callback, *args, context=context)

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> None:  # type: ignore[override]
        """A handler of the program that asks. Raises SimUnsupportedError for code that is no simulated program."""
        if (program := PROGRAM.get()) is None:
            raise SimUnsupportedError("a signal handler")
        program.handlers[sig] = partial(callback, *args)

    def remove_signal_handler(self, sig: int) -> bool:
        """Remove the program's handler; whether there was one."""
        program = PROGRAM.get()
        return program is not None and program.handlers.pop(sig, None) is not None


def free_sim_port() -> int:
    """A free port of the running simulation."""
    return cast(SimLoop, asyncio.get_running_loop()).net.free_port()


def watch_commands(look: Callable[[], None], stretch: float) -> None:
    """Call `look` when a command of the running simulation has written to a file; its seconds take `stretch` s each."""
    processes = cast(SimLoop, asyncio.get_running_loop()).processes
    processes.wrote, processes.stretch = look, stretch


def _run(future: "asyncio.Future[Any]", func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if future.cancelled():
        return
    try:
        future.set_result(func(*args))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        future.set_exception(error)
