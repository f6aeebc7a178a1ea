"""Who looks at a Toxiproxy link until a strike is proved or over: at the kernel's counts, and at the server's own."""

import asyncio
import contextlib

from wedgehog.harness.network.base import Address, Downstream, LinkBusyError, NetworkError, Proof
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
from wedgehog.harness.network.toxiproxy.strike import ToxicStrike, rounds, watch_for

# How long bytes that were written before a strike may take to be sent on.
QUIET_S = 2.0
# Where the kernel can't be asked: how long after the fake's last write they are taken to have passed.
SETTLE_S = 0.5
# A byte that the proxy has taken off its socket may be this long on its way to the limiter, on a busy machine.
INSIDE_S = 0.05
# How long the server's count of an ended connection may trail behind the socket's end.
GRACE_S = 0.25
# After so long a proof that seems lost is looked for once more: on a busy machine the server gets no processor.
ONCE_MORE_S = 0.3


class Prover:
    """What is known about the connections of one link; without `evidence` it takes time for a sign."""

    def __init__(self, name: str, proxy: ProxyApi, evidence: LinkSockets | None) -> None:
        """Nothing seen yet."""
        self.name, self.evidence = name, evidence
        self.stalls: dict[ToxicStrike, set[int]] = {}
        """Those that are held, and the sockets towards agents that each may be holding open."""
        self._proxy = proxy
        self._conns: dict[Address, int] = {}
        self._last_write = 0.0

    def admitted(self, conn: Address, carried: int) -> None:
        """The fake writes on this connection, which has carried so many bytes."""
        self._conns[conn] = carried
        self._last_write = asyncio.get_running_loop().time()

    def look(self) -> Sockets:
        """The sockets as they are now."""
        return self.evidence.look() if self.evidence else Sockets({}, {}, {})

    # ---- before a strike

    async def before(self, strike: ToxicStrike) -> Watch | None:
        """What to watch from now on, once all that was written before has been sent on.

        Raises:
            LinkBusyError: it was not, for long.
            NetworkError: the byte that is to be struck has passed.
        """
        await (self.quiet() if isinstance(strike.spot, Downstream) else self._still())
        strike.armed_at = asyncio.get_running_loop().time()
        watch = watch_for(strike, await self._counted(strike, self.evidence)) if self.evidence else None
        if isinstance(watch, DownstreamWatch) and watch.at < watch.base:
            raise NetworkError(f"link {self.name}: byte {watch.at} has passed, {watch.base} bytes are through")
        return watch

    async def quiet(self) -> None:
        """Wait until all that the fake has written has been sent on to agents."""
        if self.evidence is None:
            await asyncio.sleep(INSIDE_S)
            return
        # Whoever was admitted in this very moment writes in the next few rounds of the loop.
        calm = 0
        stalled = {cookie for held in self.stalls.values() if len(held) == 1 for cookie in held}
        struck = {it.spot.conn for it in self.stalls if isinstance(it.spot, Downstream)}
        async for _ in rounds(QUIET_S):
            seen = self.look()
            self._conns = {conn: n for conn, n in self._conns.items() if conn in seen.proxied}
            calm = calm + 1 if seen.quiet(self._conns.keys() - struck, stalled) else 0
            if calm > 1:
                return
        raise LinkBusyError(f"link {self.name}: bytes of another reply did not reach their agent in {QUIET_S:g} s")

    async def _still(self) -> None:
        """Wait until all that agents have sent through the turnstile has been sent on."""
        if self.evidence is None:
            await asyncio.sleep(INSIDE_S)
            return
        stalled = {cookie for held in self.stalls.values() for cookie in held}
        async for _ in rounds(QUIET_S):
            if self.look().still(stalled):
                return
        raise LinkBusyError(f"link {self.name}: bytes of another request were not sent on in {QUIET_S:g} s")

    async def _counted(self, strike: ToxicStrike, evidence: LinkSockets) -> Sockets:
        """The sockets, and what the server had counted by then; who leaves in between would be in both."""
        async for _ in rounds(QUIET_S):
            before = evidence.look()
            strike.counted = await self._proxy.counted(strike.stream)
            if before.open <= evidence.look().open:
                return before
        raise LinkBusyError(f"link {self.name}: one connection or another ended all through {QUIET_S:g} s")

    # ---- after it

    async def proof(self, strike: ToxicStrike, watch: Watch | None) -> Proof | None:
        """That the bytes have arrived; None when the connection is over, or the strike withdrawn."""
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
        """Whether bytes that should have been lost arrived once the limit was lifted."""
        await asyncio.sleep(0.002)
        return watch.overran(self.look())

    def holds(self, stall: ToxicStrike, watch: Watch | None) -> None:
        """A stall is held from now on."""
        if watch is None:
            held = set()
        elif isinstance(watch, UpstreamWatch):
            held = {it.cookie for it in watch.own(self.look())}
        else:
            sent = (it for it in self.look().agents.values() if it.sent == stall.at)
            held = {it.cookie for it in sent if watch.suspects(it.cookie)}
        self.stalls[stall] = held

    def listened_to(self) -> bool:
        """Whether an agent still waits at a stall: when it hangs up, the proxy closes the connection to the fake."""
        now = self.look()
        return any(self._waits(stall, now) for stall in self.stalls)

    def _waits(self, stall: ToxicStrike, now: Sockets) -> bool:
        if isinstance(stall.spot, Downstream):
            conn = now.proxied.get(stall.spot.conn)
            return conn is not None and conn.open
        return any(now.agents[it].state == ESTABLISHED for it in self.stalls[stall] if it in now.agents)

    async def flow(self, strike: ToxicStrike, base: dict[int, int]) -> Proof | None:
        """That a byte has passed under a pace or a delay; None once it is withdrawn. `base`: bytes sent before."""
        async for _ in rounds():
            if strike.withdrawn.is_set():
                return None
            if self.evidence is None or any(it > base.get(cookie, 0) for cookie, it in self.sent().items()):
                return Proof(None, f"{', '.join(strike.names)} was on while bytes passed")
        return None

    def sent(self) -> dict[int, int]:
        """Bytes that have gone to agents, by socket."""
        return {cookie: it.sent for cookie, it in self.look().agents.items()}

    async def _ended(self, strike: ToxicStrike, watch: Watch, vanished: SocketGone) -> Proof | None:
        """Ask the server what it counted on connections that have ended: exactly what the strike lets pass?"""
        counted = await self._proxy.counted(strike.stream)
        before = strike.counted or ProxyCounts(0, 0)
        received, sent = counted.received - before.received, counted.sent - before.sent
        if sent != vanished.expected:
            return None
        if isinstance(watch, UpstreamWatch) and watch.swallows and not (received or watch.knocked):
            return None
        return Proof(strike.at, f"the server counted {sent} bytes on connections that have ended since")

    async def _settled(self, strike: ToxicStrike) -> Proof | None:
        """Without the kernel's counts: some time after the last write, take it that the bytes have passed."""
        loop = asyncio.get_running_loop()
        rest = SETTLE_S
        while rest > 0 and not strike.withdrawn.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(strike.withdrawn.wait(), rest)
            rest = max(self._last_write, strike.armed_at) + SETTLE_S - loop.time()
        if strike.withdrawn.is_set() or (strike.passage and strike.passage.up.carried < max(1, strike.at)):
            return None
        return Proof(None, f"{SETTLE_S:g} s have passed since they were sent; this system keeps no count")
