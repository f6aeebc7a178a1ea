"""A link made of one Toxiproxy proxy, and the recipe by which its faults are exact to the byte.

1. The proxy is born with `limit_data` so high that nothing reaches it, then `slow_close` of no delay, in this order
   and in both directions; with `reset_peer` of toxicity 0 before them where an RST may be struck, which turns every
   FIN of the link into an RST. None of them is ever removed: removing `limit_data` before `slow_close` kills the
   server.
2. To strike, the fake holds the reply, all other replies of the link wait in `admit`, and what was written before has
   been sent on. Then `slow_close` and `limit_data` are *updated*. The struck request and all others are held by a
   turnstile in front of the proxy.
3. When the kernel's count says that the bytes have arrived, the limit goes back up. Before that the same limit is set
   once more: that update returns when the connection's limiter has either stopped for good or is idle, so that the
   limit can't be lifted between its last byte and its decision to stop.
"""

import asyncio
import contextlib
from typing import Self

from wedgehog.harness.faults.base import Toxic, WireFault
from wedgehog.harness.faults.wire.cut import Cut
from wedgehog.harness.faults.wire.down import Down
from wedgehog.harness.faults.wire.refuse import Refuse
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.network.base import (
    Address,
    Downstream,
    LinkBusy,
    NetworkError,
    Proof,
    Spot,
    Upstream,
)
from wedgehog.harness.network.door import AGAIN_S, let
from wedgehog.harness.network.evidence import DownstreamWatch, Evidence, Sockets, UpstreamWatch, Vanished, Watch
from wedgehog.harness.network.kernel import ESTABLISHED, Count, KernelCounts
from wedgehog.harness.network.probe import refused
from wedgehog.harness.network.toxic_strike import Stream, ToxicStrike, byte_of, rounds, stream_of, watch_for
from wedgehog.harness.network.toxiproxy import Counted, ProxyApi, ToxiproxyError, name_of
from wedgehog.harness.network.turnstile import Turnstile

STREAMS: tuple[Stream, Stream] = ("downstream", "upstream")
# More than any connection carries.
UNLIMITED = 10**15
# How long bytes that were written before a strike may take to be sent on.
QUIET_S = 2.0
# Where the kernel can't be asked: how long after the fake's last write they are taken to have passed.
SETTLE_S = 0.5
# A byte that the proxy has taken off its socket may be this long on its way to the limiter, on a busy machine.
INSIDE_S = 0.05
# How long the server's count of an ended connection may trail behind the socket's end.
GRACE_S = 0.25


class ToxicLink:
    """One proxy of a Toxiproxy server."""

    def __init__(
        self,
        name: str,
        upstream: Address,
        resets: bool,
        proxy: ProxyApi,
        kernel: KernelCounts | None,
        turnstile: Turnstile | None = None,
    ) -> None:
        """Wrap a proxy that exists; `born` gives it its toxics."""
        self.name, self.upstream, self.resets = name, upstream, resets
        self.proxy, self.turnstile = proxy, turnstile
        self.address = turnstile.address if turnstile else proxy.address
        self._evidence = Evidence(kernel, proxy.address, upstream) if kernel else None
        self._turn = {stream: asyncio.Lock() for stream in STREAMS}
        self._armed: Address | None = None
        self._tuning = asyncio.Lock()
        self._free = asyncio.Event()
        self._free.set()
        self._conns: dict[Address, int] = {}
        self._last_write = 0.0
        self._stalls: dict[ToxicStrike, set[int]] = {}
        self._slow: dict[Stream, int] = dict.fromkeys(STREAMS, 0)
        self._shut: set[ToxicStrike] = set()
        self._strikes: list[ToxicStrike] = []
        self._closed = False

    async def born(self) -> Self:
        """Install the toxics that strikes will update."""
        if self.resets:
            await self.proxy.add(Toxic("reset_peer", {"timeout": 0}, toxicity=0.0))
        for stream in STREAMS:
            await self.proxy.add(Toxic("limit_data", {"bytes": UNLIMITED}, stream))
            await self.proxy.add(Toxic("slow_close", {"delay": 0}, stream))
        return self

    async def admit(self, conn: Address, carried: int) -> None:
        """Let the struck connection through, and everybody when nothing is armed. Await it last in the gate."""
        while self._armed not in (None, conn):
            await self._free.wait()
        self._conns[conn] = carried
        self._last_write = asyncio.get_running_loop().time()

    async def strike(self, fault: WireFault, spot: Spot) -> ToxicStrike:
        """Arm the fault by the recipe above."""
        stream = stream_of(fault, spot)
        strike = ToxicStrike(self, fault, spot, stream, asyncio.get_running_loop().create_future(), byte_of(spot))
        self._strikes.append(strike)
        if isinstance(fault, Refuse | Down):
            await self._close_port(strike)
        elif fault.armed == "at_spot":
            await self._add(strike)
        elif stream == "upstream":
            self._expect(strike)
        else:
            strike.task = asyncio.create_task(self._see_through(strike, await self._limit(strike)))
        return strike

    async def heal(self, strike: ToxicStrike) -> None:
        """Undo one strike; never by removing a toxic that the link was born with."""
        if strike.task:
            await strike.task
        for name in strike.names:
            await self.proxy.remove(name)
        strike.names.clear()
        if strike in self._shut:
            self._shut.discard(strike)
            if not self._shut:
                await self.proxy.enable(True)
                if self.turnstile:
                    await self.turnstile.listen()
        self._stalls.pop(strike, None)
        await self._release(strike.stream)
        strike.settle(None)

    async def close(self) -> None:
        """End the proxy and with it every connection and strike; what fails after that says nothing of the server."""
        self._closed = True
        for strike in self._strikes:
            strike.withdrawn.set()
        if self.turnstile:
            await self.turnstile.shut()
        with contextlib.suppress(ToxiproxyError):
            await self.proxy.destroy()
        for strike in self._strikes:
            if strike.task:
                await strike.task
            strike.settle(None)
            if strike.hit.done() and not strike.hit.cancelled():
                strike.hit.exception()  # Heard, so that nobody is told it never was.

    def _expect(self, strike: ToxicStrike) -> None:
        """Strike the next request when it comes: then everybody else can be held."""
        if self.turnstile is None:
            raise NetworkError(f"link {self.name} was not opened for faults on requests")
        self._refuse_conflict(strike)
        strike.task = asyncio.create_task(self._strike_next(strike, self.turnstile))

    async def _strike_next(self, strike: ToxicStrike, turnstile: Turnstile) -> None:
        try:
            async with turnstile.next_one(strike.withdrawn) as strike.passage:
                if strike.passage is None:
                    return strike.settle(None)
                watch = await self._limit(strike)
                let(strike.passage)
                await self._see_through(strike, watch)
                # Whoever strikes the next request too does so before those that waited go on.
                await asyncio.sleep(AGAIN_S)
        except (NetworkError, OSError) as error:
            self._failed(strike, error)

    async def _limit(self, strike: ToxicStrike) -> Watch | None:
        """Arm a limit, while everybody whom it must not hit is held; how to see that it has hit."""
        self._refuse_conflict(strike)
        await self._turn[strike.stream].acquire()
        strike.holds_turn = True
        try:
            watch = await self._alone(strike)
            async with self._tuning:
                for toxic in strike.fault.toxics(strike.at):
                    await self._set(toxic._replace(stream=strike.stream))
        except BaseException:
            self._step_back(strike)
            raise
        return watch

    def _failed(self, strike: ToxicStrike, error: NetworkError | OSError) -> None:
        if self._closed:
            strike.settle(None)
        elif not strike.hit.done():
            strike.hit.set_exception(error)

    def _refuse_conflict(self, strike: ToxicStrike) -> None:
        """Refuse what one proxy can't do at the same time."""
        if not isinstance(strike.fault, Cut):
            return
        if (strike.fault.then == "rst") != self.resets:
            kinds = ("resets", "no FIN") if self.resets else ("no resets", "no RST")
            raise NetworkError(f"link {self.name} was opened for {kinds[0]}: through Toxiproxy it can send {kinds[1]}")
        if self._evidence and any(self._listened_to(it, self._look()) for it in self._stalls):
            raise LinkBusy(f"link {self.name} holds a stall whose agent still waits; a cut would end it too")

    def _listened_to(self, stall: ToxicStrike, now: Sockets) -> bool:
        """Whether an agent still waits at a stall: when it hangs up, the proxy closes the connection to the fake."""
        if isinstance(stall.spot, Downstream):
            conn = now.proxied.get(stall.spot.conn)
            return conn is not None and conn.open
        return any(now.agents[it].state == ESTABLISHED for it in self._stalls[stall] if it in now.agents)

    async def _alone(self, strike: ToxicStrike) -> Watch | None:
        """Hold every other connection, and wait until what they were sent has been sent on."""
        if isinstance(strike.spot, Downstream):
            self._armed = strike.spot.conn
            self._free.clear()
            await self._quiet()
        else:
            await self._still()
        strike.armed_at = asyncio.get_running_loop().time()
        watch = watch_for(strike, await self._before(strike, self._evidence)) if self._evidence else None
        if isinstance(watch, DownstreamWatch) and watch.at < watch.base:
            raise NetworkError(f"link {self.name}: byte {watch.at} has passed, {watch.base} bytes are through")
        return watch

    async def _before(self, strike: ToxicStrike, evidence: Evidence) -> Sockets:
        """The sockets, and what the server had counted by then; who leaves in between would be in both."""
        async for _ in rounds(QUIET_S):
            before = evidence.look()
            strike.counted = await self.proxy.counted(strike.stream)
            if before.open <= evidence.look().open:
                return before
        raise LinkBusy(f"link {self.name}: one connection or another ended all through {QUIET_S:g} s")

    async def _quiet(self) -> None:
        if self._evidence is None:
            await asyncio.sleep(INSIDE_S)
            return
        # Whoever was admitted in this very moment writes in the next few rounds of the loop.
        calm = 0
        stalled = {cookie for held in self._stalls.values() if len(held) == 1 for cookie in held}
        struck = {it.spot.conn for it in self._stalls if isinstance(it.spot, Downstream)}
        async for _ in rounds(QUIET_S):
            seen = self._evidence.look()
            self._conns = {conn: n for conn, n in self._conns.items() if conn in seen.proxied}
            calm = calm + 1 if seen.quiet(self._conns.keys() - struck, stalled) else 0
            if calm > 1:
                return
        raise LinkBusy(f"link {self.name}: bytes of another reply did not reach their agent in {QUIET_S:g} s")

    async def _still(self) -> None:
        """Wait until all that agents have sent through the turnstile has been sent on."""
        if self._evidence is None:
            await asyncio.sleep(INSIDE_S)
            return
        stalled = {cookie for held in self._stalls.values() for cookie in held}
        async for _ in rounds(QUIET_S):
            if self._look().still(stalled):
                return
        raise LinkBusy(f"link {self.name}: bytes of another request were not sent on in {QUIET_S:g} s")

    async def _see_through(self, strike: ToxicStrike, watch: Watch | None) -> None:
        """From armed to proved, or given up; the limit is lifted in any case."""
        try:
            proof = await (self._hit(strike, watch) if watch else self._settled(strike))
            if proof and (watch is None or watch.swallows):
                await asyncio.sleep(INSIDE_S)
            await self._lift(strike)
            if proof and watch and await self._overran(watch):
                proof = None
            if proof and isinstance(strike.fault, Stall) and not strike.withdrawn.is_set():
                self._stalls[strike] = self._held_by(strike, watch)
            self._step_back(strike)
            await self._release(strike.stream)
            strike.settle(proof)
        except (NetworkError, OSError) as error:
            self._failed(strike, error)
        finally:
            self._step_back(strike)

    async def _overran(self, watch: Watch) -> bool:
        """Whether bytes that should have been lost arrived once the limit was lifted."""
        await asyncio.sleep(0.002)
        return self._evidence is not None and watch.overran(self._evidence.look())

    def _held_by(self, strike: ToxicStrike, watch: Watch | None) -> set[int]:
        """The sockets towards agents that a stall may be holding open."""
        if watch is None:
            return set()
        if isinstance(watch, UpstreamWatch):
            return {it.cookie for it in watch.own(self._look())}
        return {it.cookie for it in self._agents() if it.sent == strike.at and watch.suspects(it.cookie)}

    async def _hit(self, strike: ToxicStrike, watch: Watch) -> Proof | None:
        """Look until the bytes have arrived, the connection is over, or the strike is withdrawn."""
        over_s = 0.0
        async for waited_s in rounds():
            now = self._look()
            finding = watch.see(now)
            if isinstance(finding, Vanished):
                finding = await self._ended(strike, watch, finding)
            if finding:
                return finding
            over_s = over_s + waited_s if watch.over(now) else 0.0
            if strike.withdrawn.is_set() or over_s > GRACE_S:
                return None
        return None

    def _look(self) -> Sockets:
        return self._evidence.look() if self._evidence else Sockets({}, {}, {})

    async def _ended(self, strike: ToxicStrike, watch: Watch, vanished: Vanished) -> Proof | None:
        """Ask the server what it counted on connections that have ended: exactly what the strike lets pass?"""
        counted = await self.proxy.counted(strike.stream)
        before = strike.counted or Counted(0, 0)
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

    async def _lift(self, strike: ToxicStrike) -> None:
        """Lift the limit: first the barrier (see 3.), then for good."""
        await self.proxy.update(Toxic("limit_data", {"bytes": strike.at}, strike.stream))
        await self.proxy.update(Toxic("limit_data", {"bytes": UNLIMITED}, strike.stream))

    def _step_back(self, strike: ToxicStrike) -> None:
        """Let the others go on, once."""
        if strike.holds_turn:
            strike.holds_turn = False
            self._turn[strike.stream].release()
            if strike.stream == "downstream":
                self._armed = None
                self._free.set()

    async def _release(self, stream: Stream) -> None:
        """Let closes pass again once no stall is held that way; those that are still open end now."""
        async with self._tuning:
            if not self._turn[stream].locked() and not any(it.stream == stream for it in self._stalls):
                await self._set(Toxic("slow_close", {"delay": 0}, stream))

    async def _set(self, toxic: Toxic) -> None:
        """Update a toxic; a slow close that is as wanted already is left alone."""
        if toxic.kind == "slow_close":
            if self._slow[toxic.stream] == toxic.attributes["delay"]:
                return
            self._slow[toxic.stream] = toxic.attributes["delay"]
        await self.proxy.update(toxic)

    async def _add(self, strike: ToxicStrike) -> None:
        """Put a pace or a delay on the whole link from the next byte on; it has no smaller reach."""
        if isinstance(strike.spot, Upstream) and strike.at:
            raise NetworkError(f"{strike.fault.name} of a request starts at its first byte, not at {strike.at}")
        if isinstance(strike.spot, Downstream):
            await self._quiet()
        base = {it.cookie: it.sent for it in self._agents()}
        for toxic in strike.fault.toxics(strike.at):
            name = f"{name_of(toxic)}_{len(self._strikes)}"
            await self.proxy.add(toxic._replace(stream=strike.stream), name)
            strike.names.append(name)
        strike.task = asyncio.get_running_loop().create_task(self._see_flow(strike, base))

    async def _see_flow(self, strike: ToxicStrike, base: dict[int, int]) -> None:
        """A pace or a delay has hit as soon as a byte has passed under it."""
        async for _ in rounds():
            if strike.withdrawn.is_set():
                return strike.settle(None)
            if self._evidence is None or any(it.sent > base.get(it.cookie, 0) for it in self._agents()):
                return strike.settle(Proof(None, f"{', '.join(strike.names)} was on while bytes passed"))
        return None

    def _agents(self) -> list[Count]:
        return list(self._evidence.look().agents.values()) if self._evidence else []

    async def _close_port(self, strike: ToxicStrike) -> None:
        self._shut.add(strike)
        await self.proxy.enable(False)
        if self.turnstile:
            await self.turnstile.shut()
        if not await asyncio.to_thread(refused, self.address):
            raise NetworkError(f"link {self.name}: something still answers at port {self.address[1]}")
        strike.settle(Proof(None, f"our own connect to {self.address[0]}:{self.address[1]} was refused"))
