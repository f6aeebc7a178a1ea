"""Proof of a fault on a Toxiproxy link, from the kernel's byte counts and from the server's own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.network.base import (
    Address,
    ConnectionGoneError,
    Downstream,
    LinkBusyError,
    NetworkError,
    Proof,
    Strike,
    Target,
)
from wedgehog.harness.network.proxied_connection import ProxiedConnection
from wedgehog.harness.network.tcp_diag import ESTABLISHED
from wedgehog.harness.network.toxiproxy.api import ProxyApi, ProxyCounts
from wedgehog.harness.network.toxiproxy.delivery_proof import (
    DownstreamWatch,
    LinkSockets,
    SocketGone,
    Sockets,
    UpstreamWatch,
    Watch,
)

# The proxy must forward bytes that were written before the fault was armed within this time.
QUIET_S = 2.0
# Without kernel counts: so long after the last write, the bytes are assumed to have passed.
SETTLE_S = 0.5
# On a busy machine a byte needs up to this time from the proxy's socket to its limiter.
INSIDE_S = 0.05
# The server updates its count of an ended connection up to this time after the socket closes.
GRACE_S = 0.25
# A proof that seems lost is checked once more after this time: on a busy machine the server gets no CPU time.
ONCE_MORE_S = 0.3

ToxicStream = Literal["downstream", "upstream"]


@dataclass(eq=False)
class ToxicStrike(Strike):
    """One fault armed on a Toxiproxy link."""

    undo: Callable[["ToxicStrike"], Awaitable[None]]
    fault: WireFault
    target: Target
    stream: ToxicStream
    at: int = 0
    armed_at: float = 0.0
    task: "asyncio.Task[None] | None" = None
    counted: ProxyCounts | None = None
    connection: ProxiedConnection | None = None
    """The connection of the faulty request."""
    names: list[str] = field(default_factory=list)
    withdrawn: asyncio.Event = field(default_factory=asyncio.Event)
    holds_turn: bool = False

    async def heal(self) -> None:
        """Remove the fault. Stalls share one setting: when the last one is healed, all of them end."""
        if not self.withdrawn.is_set():
            self.withdrawn.set()
            await self.undo(self)


class Prover:
    """Collects proof on one link; without `sockets` it waits a fixed time instead."""

    def __init__(self, name: str, proxy: ProxyApi, sockets: LinkSockets | None) -> None:
        """`sockets` is None where the kernel has no counts."""
        self.name, self.sockets = name, sockets
        self.stalls: dict[ToxicStrike, set[int]] = {}
        """Active stalls, each with the cookies of the sockets to agents that it may hold open."""
        self._proxy = proxy
        self._conns: set[Address] = set()
        self._last_write = 0.0

    def admitted(self, conn: Address) -> None:
        """Record that the fake provider writes on `conn`."""
        self._conns.add(conn)
        self._last_write = asyncio.get_running_loop().time()

    def look(self) -> Sockets:
        """Take a snapshot of the sockets."""
        return self.sockets.look() if self.sockets else Sockets({}, {}, {})

    async def must_be_open(self, conn: Address) -> None:
        """Raise ConnectionGoneError if the connection from `conn` to the fake provider has ended at the proxy."""
        own = self.look().proxied.get(conn)
        if self.sockets is not None and (own is None or not own.open):
            await self._proxy.counted("downstream")  # raises the right error if the server itself has gone
            raise ConnectionGoneError(f"link {self.name}: the connection ended before the fault was armed")

    # ---- before the fault is armed

    async def before(self, strike: ToxicStrike) -> Watch | None:
        """Wait until earlier bytes are forwarded; return the proof's check. Errors: LinkBusyError, NetworkError."""
        await (self.quiet() if isinstance(strike.target, Downstream) else self._still())
        strike.armed_at = asyncio.get_running_loop().time()
        watch = _watch_for(strike, await self._counted(strike, self.sockets)) if self.sockets else None
        if isinstance(watch, DownstreamWatch) and watch.at < watch.base:
            raise NetworkError(f"link {self.name}: byte {watch.at} has passed, at {watch.base} now")
        return watch

    async def quiet(self) -> None:
        """Wait until all that the fake provider wrote has been forwarded to agents."""
        stalled = {cookie for held in self.stalls.values() if len(held) == 1 for cookie in held}
        stopped = {it.target.conn for it in self.stalls if isinstance(it.target, Downstream)}

        def forwarded(now: Sockets) -> bool:
            self._conns &= now.proxied.keys()
            return now.quiet(self._conns - stopped, stalled)

        await self._wait(forwarded, "bytes of another reply did not reach their agent")

    async def _still(self) -> None:
        """Wait until all that agents sent through the request gate has been forwarded."""
        stalled = {cookie for held in self.stalls.values() for cookie in held}
        await self._wait(lambda now: now.still(stalled), "bytes of another request were not forwarded")

    async def _wait(self, forwarded: Callable[[Sockets], bool], problem: str) -> None:
        if self.sockets is None:
            await asyncio.sleep(INSIDE_S)
            return
        # A writer that was just admitted writes in the next iterations of the event loop, so two checks are needed.
        calm = 0
        async for _ in rounds(QUIET_S):
            calm = calm + 1 if forwarded(self.look()) else 0
            if calm > 1:
                return
        raise LinkBusyError(f"link {self.name}: {problem} within {QUIET_S:g} s")

    async def _counted(self, strike: ToxicStrike, sockets: LinkSockets) -> Sockets:
        """Take a snapshot and the server's counts while no connection ends, since that one would be in both."""
        async for _ in rounds(QUIET_S):
            before = sockets.look()
            strike.counted = await self._proxy.counted(strike.stream)
            if before.open <= sockets.look().open:
                return before
        raise LinkBusyError(f"link {self.name}: connections kept ending for {QUIET_S:g} s")

    # ---- after it is armed

    async def proof(self, strike: ToxicStrike, watch: Watch | None) -> Proof | None:
        """Wait for the proof that the bytes arrived; None when the connection ends or the fault is withdrawn."""
        if watch is None:
            return await self._settled(strike)
        over_s = 0.0
        async for waited_s in rounds():
            now = self.look()
            finding = await self._found(strike, watch, now)
            if finding:
                return finding
            over_s = over_s + waited_s if watch.over(now) else 0.0
            if strike.withdrawn.is_set() or over_s > GRACE_S:
                break
        await asyncio.sleep(ONCE_MORE_S)
        return await self._found(strike, watch, self.look())

    async def _found(self, strike: ToxicStrike, watch: Watch, now: Sockets) -> Proof | None:
        finding = watch.see(now)
        return await self._ended(strike, watch, finding) if isinstance(finding, SocketGone) else finding

    async def overran(self, watch: Watch) -> bool:
        """Return whether bytes that should be lost arrived after the limit was lifted."""
        await asyncio.sleep(0.002)
        return watch.overran(self.look())

    def holds(self, stall: ToxicStrike, watch: Watch | None) -> None:
        """Record an active stall."""
        if watch is None:
            held = set()
        elif isinstance(watch, UpstreamWatch):
            held = {it.cookie for it in watch.own(self.look())}
        else:
            sent = (it for it in self.look().agents.values() if it.sent == stall.at)
            held = {it.cookie for it in sent if watch.suspects(it.cookie)}
        self.stalls[stall] = held

    def agent_waits(self) -> bool:
        """Return whether an agent still waits at a stall; when it hangs up, the proxy closes the upstream."""
        now = self.look()
        return any(self._waits(stall, now) for stall in self.stalls)

    def _waits(self, stall: ToxicStrike, now: Sockets) -> bool:
        if isinstance(stall.target, Downstream):
            conn = now.proxied.get(stall.target.conn)
            return conn is not None and conn.open
        return any(now.agents[it].state == ESTABLISHED for it in self.stalls[stall] if it in now.agents)

    async def flow(self, strike: ToxicStrike, base: dict[int, int]) -> None:
        """Prove a pace or a delay by a byte that passes under it, until it is withdrawn. `base`: bytes sent before."""
        async for _ in rounds():
            if strike.withdrawn.is_set():
                return
            if self.sockets is None or any(it > base.get(cookie, 0) for cookie, it in self.sent().items()):
                return strike.settle(Proof(None, f"bytes passed while {', '.join(strike.names)} was in place"))

    def sent(self) -> dict[int, int]:
        """Return the bytes sent to agents, by socket cookie."""
        return {cookie: it.sent for cookie, it in self.look().agents.items()}

    async def _ended(self, strike: ToxicStrike, watch: Watch, gone: SocketGone) -> Proof | None:
        """Compare with the server's count of ended connections: it must be exactly what the fault lets pass."""
        counted = await self._proxy.counted(strike.stream)
        before = strike.counted or ProxyCounts(0, 0)
        received, sent = counted.received - before.received, counted.sent - before.sent
        if sent != gone.expected:
            return None
        if isinstance(watch, UpstreamWatch) and watch.passes_nothing and not (received or watch.swallowed):
            return None
        return Proof(strike.at, f"the server counted {sent} bytes on connections that have ended since")

    async def _settled(self, strike: ToxicStrike) -> Proof | None:
        """Without kernel counts: assume that the bytes have passed some time after the last write."""
        loop = asyncio.get_running_loop()
        rest = SETTLE_S
        while rest > 0 and not strike.withdrawn.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(strike.withdrawn.wait(), rest)
            rest = max(self._last_write, strike.armed_at) + SETTLE_S - loop.time()
        if strike.withdrawn.is_set() or (strike.connection and strike.connection.up.carried < max(1, strike.at)):
            return None
        return Proof(None, f"assumed {SETTLE_S:g} s after they were sent: this system has no counts")


async def rounds(timeout_s: float | None = None) -> AsyncIterator[float]:
    """Yield at intervals that grow from 1 to 20 ms, each time with the seconds waited since the last yield."""
    passed_s, wait_s = 0.0, 0.0
    while timeout_s is None or passed_s < timeout_s:
        yield wait_s
        wait_s = 0.001 if passed_s < 0.05 else 0.005 if passed_s < 0.5 else 0.02
        await asyncio.sleep(wait_s)
        passed_s += wait_s


def _watch_for(strike: ToxicStrike, before: Sockets) -> Watch:
    stalls = strike.fault.ends == "stall"
    if isinstance(strike.target, Downstream):
        return DownstreamWatch(strike.target.conn, strike.at, stalls, before)
    if strike.connection is None:
        raise NetworkError(f"{strike.fault.name} stops one connection: through Toxiproxy it cannot stop the whole link")
    return UpstreamWatch(strike.at, stalls, before, strike.connection)
