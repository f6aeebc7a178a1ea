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
from wedgehog.harness.network.base import (
    Address,
    Downstream,
    LinkBusyError,
    NetworkError,
    Proof,
    Target,
    Upstream,
)
from wedgehog.harness.network.connection_gate import AGAIN_S, let_through
from wedgehog.harness.network.port import refused
from wedgehog.harness.network.tcp_diag import TcpDiag
from wedgehog.harness.network.toxiproxy.api import ProxyApi, ToxiproxyError, name_of
from wedgehog.harness.network.toxiproxy.delivery_proof import LinkSockets, Watch
from wedgehog.harness.network.toxiproxy.prover import INSIDE_S, Prover
from wedgehog.harness.network.toxiproxy.request_gate import RequestGate
from wedgehog.harness.network.toxiproxy.strike import ToxicStream, ToxicStrike, byte_of, stream_of

STREAMS: tuple[ToxicStream, ToxicStream] = ("downstream", "upstream")
# More than any connection carries.
UNLIMITED = 10**15


class ToxicLink:
    """One proxy of a Toxiproxy server."""

    def __init__(
        self,
        name: str,
        upstream: Address,
        resets: bool,
        proxy: ProxyApi,
        kernel: TcpDiag | None,
        turnstile: RequestGate | None = None,
    ) -> None:
        """Wrap a proxy that exists; `born` gives it its toxics."""
        self.name, self.upstream, self.resets = name, upstream, resets
        self.proxy, self.turnstile = proxy, turnstile
        self.address = turnstile.address if turnstile else proxy.address
        self._witness = Prover(name, proxy, LinkSockets(kernel, proxy.address, upstream) if kernel else None)
        self._turn = {stream: asyncio.Lock() for stream in STREAMS}
        self._armed: Address | None = None
        self._tuning = asyncio.Lock()
        self._free = asyncio.Event()
        self._free.set()
        self._slow: dict[ToxicStream, int] = dict.fromkeys(STREAMS, 0)
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
        self._witness.admitted(conn, carried)

    async def strike(self, fault: WireFault, spot: Target) -> ToxicStrike:
        """Arm the fault by the recipe above."""
        stream = stream_of(fault, spot)
        strike = ToxicStrike(self, fault, spot, stream, asyncio.get_running_loop().create_future(), byte_of(spot))
        self._strikes.append(strike)
        if fault.closes_port:
            await self._close_port(strike)
        elif fault.proof == "flow":
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
        self._witness.stalls.pop(strike, None)
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

    async def _strike_next(self, strike: ToxicStrike, turnstile: RequestGate) -> None:
        try:
            async with turnstile.next_one(strike.withdrawn) as strike.passage:
                if strike.passage is None:
                    return strike.settle(None)
                watch = await self._limit(strike)
                let_through(strike.passage)
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
            if isinstance(strike.spot, Downstream):
                self._armed = strike.spot.conn
                self._free.clear()
            watch = await self._witness.before(strike)
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
        if strike.fault.ends == "stall":
            return
        if (strike.fault.ends == "rst") != self.resets:
            kinds = ("resets", "no FIN") if self.resets else ("no resets", "no RST")
            raise NetworkError(f"link {self.name} was opened for {kinds[0]}: through Toxiproxy it can send {kinds[1]}")
        if self._witness.listened_to():
            raise LinkBusyError(f"link {self.name} holds a stall whose agent still waits; a cut would end it too")

    async def _see_through(self, strike: ToxicStrike, watch: Watch | None) -> None:
        """From armed to proved, or given up; the limit is lifted in any case."""
        try:
            proof = await self._witness.proof(strike, watch)
            if proof and (watch is None or watch.swallows):
                await asyncio.sleep(INSIDE_S)
            await self._lift(strike)
            if proof and watch and await self._witness.overran(watch):
                proof = None
            if proof and strike.fault.ends == "stall" and not strike.withdrawn.is_set():
                self._witness.holds(strike, watch)
            self._step_back(strike)
            await self._release(strike.stream)
            strike.settle(proof)
        except (NetworkError, OSError) as error:
            self._failed(strike, error)
        finally:
            self._step_back(strike)

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

    async def _release(self, stream: ToxicStream) -> None:
        """Let closes pass again once no stall is held that way; those that are still open end now."""
        async with self._tuning:
            if not self._turn[stream].locked() and not any(it.stream == stream for it in self._witness.stalls):
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
        if not isinstance(strike.spot, Upstream) and strike.spot.conn is not None:
            await self._witness.quiet()
        base = self._witness.sent()
        for toxic in strike.fault.toxics(strike.at):
            name = f"{name_of(toxic)}_{len(self._strikes)}"
            await self.proxy.add(toxic._replace(stream=strike.stream), name)
            strike.names.append(name)
        strike.task = asyncio.create_task(self._see_flow(strike, base))

    async def _see_flow(self, strike: ToxicStrike, base: dict[int, int]) -> None:
        strike.settle(await self._witness.flow(strike, base))

    async def _close_port(self, strike: ToxicStrike) -> None:
        self._shut.add(strike)
        await self.proxy.enable(False)
        if self.turnstile:
            await self.turnstile.shut()
        if not await asyncio.to_thread(refused, self.address):
            raise NetworkError(f"link {self.name}: something still answers at port {self.address[1]}")
        strike.settle(Proof(None, f"our own connect to {self.address[0]}:{self.address[1]} was refused"))
