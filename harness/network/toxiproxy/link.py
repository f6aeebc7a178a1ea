"""A link made of one Toxiproxy proxy, and the recipe that makes its faults exact to the byte.

1. The proxy is created with `limit_data` so high that no connection reaches it, then `slow_close` without delay, in
   this order and in both directions; with `reset_peer` of toxicity 0 before them where an RST may be injected, which
   turns every FIN of the link into an RST. None of them is ever removed: removing `limit_data` before `slow_close`
   kills the server.
2. To arm a fault, the fake provider holds the reply, all other replies of the link wait in `admit`, and all earlier
   bytes have been forwarded. Then `slow_close` and `limit_data` are *updated*. For a fault on a request, a request
   gate in front of the proxy holds that request and all others.
3. When the kernel's count shows that the bytes have arrived, the limit goes back up. Before that the same limit is set
   once more: that update returns when the connection's limiter has either stopped for good or is idle, so that the
   limit can't be lifted between its last byte and its decision to stop.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Coroutine
from typing import Any, Self

from wedgehog.harness.faults.base import Toxic, WireFault
from wedgehog.harness.network.base import (
    Address,
    Downstream,
    LinkBusyError,
    NetworkError,
    NetworkName,
    Target,
    Upstream,
)
from wedgehog.harness.network.connection_gate import AGAIN_S, RequestGate, let_through
from wedgehog.harness.network.port import prove_refusal
from wedgehog.harness.network.tcp_diag import TcpDiag
from wedgehog.harness.network.toxiproxy.api import ProxyApi, ToxiproxyApi, ToxiproxyError, name_of
from wedgehog.harness.network.toxiproxy.delivery_proof import LinkSockets, Watch
from wedgehog.harness.network.toxiproxy.prover import INSIDE_S, Prover, ToxicStream, ToxicStrike

STREAMS: tuple[ToxicStream, ToxicStream] = ("downstream", "upstream")
UNLIMITED = 10**15  # more than any connection carries


class ToxicLink:
    """One proxy of a Toxiproxy server."""

    def __init__(
        self,
        name: str,
        upstream: Address,
        resets: bool,
        proxy: ProxyApi,
        diag: TcpDiag | None,
        request_gate: RequestGate | None = None,
    ) -> None:
        """Wrap a proxy that exists; `install` adds its toxics."""
        self.name, self.upstream, self.resets = name, upstream, resets
        self.proxy, self.request_gate = proxy, request_gate
        self.address = request_gate.address if request_gate else proxy.address
        self._prover = Prover(name, proxy, LinkSockets(diag, proxy.address, upstream) if diag else None)
        self._turn = {stream: asyncio.Lock() for stream in STREAMS}
        self._armed: Address | None = None
        self._tuning = asyncio.Lock()
        self._free = asyncio.Event()
        self._free.set()
        self._slow: dict[ToxicStream, int] = dict.fromkeys(STREAMS, 0)
        self._shut: set[ToxicStrike] = set()
        self._strikes: list[ToxicStrike] = []
        self._closed = False

    async def install(self) -> Self:
        """Add the toxics that are updated when a fault is armed."""
        if self.resets:
            await self.proxy.add(Toxic("reset_peer", {"timeout": 0}, toxicity=0.0))
        for stream in STREAMS:
            await self.proxy.add(Toxic("limit_data", {"bytes": UNLIMITED}, stream))
            await self.proxy.add(Toxic("slow_close", {"delay": 0}, stream))
        return self

    async def admit(self, conn: Address, carried: int) -> None:
        """Wait while a fault is armed for another connection. The caller must write without a further wait."""
        while self._armed not in (None, conn):
            await self._free.wait()
        self._prover.admitted(conn)

    async def strike(self, fault: WireFault, target: Target) -> ToxicStrike:
        """Arm the fault by the recipe above."""
        stream: ToxicStream = "upstream" if isinstance(target, Upstream) and not fault.closes_port else "downstream"
        at = target.at if isinstance(target, Downstream | Upstream) else 0
        strike = ToxicStrike(self.heal, fault, target, stream, at)
        self._strikes.append(strike)
        if fault.closes_port:
            await self._close_port(strike)
        elif fault.proof == "flow":
            await self._add(strike)
        elif stream == "upstream":
            self._expect(strike)
        else:
            self._follow(strike, self._see_through(strike, await self._limit(strike)))
        return strike

    async def heal(self, strike: ToxicStrike) -> None:
        """Remove one armed fault, but never a toxic that `install` added."""
        if strike.task:
            await strike.task
        for name in strike.names:
            await self.proxy.remove(name)
        strike.names.clear()
        if strike in self._shut:
            self._shut.discard(strike)
            if not self._shut:
                await self.proxy.enable(True)
                if self.request_gate:
                    await self.request_gate.listen()
        self._prover.stalls.pop(strike, None)
        await self._release(strike.stream)
        strike.settle(None)

    async def close(self) -> None:
        """Close the proxy, its connections and its armed faults; later errors are expected and dropped."""
        self._closed = True
        for strike in self._strikes:
            strike.withdrawn.set()
        if self.request_gate:
            await self.request_gate.close()
        with contextlib.suppress(ToxiproxyError):
            await self.proxy.destroy()
        for strike in self._strikes:
            if strike.task:
                await strike.task
            strike.settle(None)
            strike.hit.exception()  # Mark it as retrieved, so that asyncio logs no warning.

    def _expect(self, strike: ToxicStrike) -> None:
        """Arm the fault when the next request arrives, while the request gate holds all others."""
        if self.request_gate is None:
            raise NetworkError(f"link {self.name} was not opened for faults on requests")
        self._refuse_conflict(strike)
        self._follow(strike, self._arm_next(strike, self.request_gate))

    async def _arm_next(self, strike: ToxicStrike, request_gate: RequestGate) -> None:
        async with request_gate.next_one(strike.withdrawn) as strike.connection:
            if strike.connection is None:
                return strike.settle(None)
            watch = await self._limit(strike)
            let_through(strike.connection)
            await self._see_through(strike, watch)
            # A fault on the next request must be armed before the waiting connections continue.
            await asyncio.sleep(AGAIN_S)

    async def _limit(self, strike: ToxicStrike) -> Watch | None:
        """Arm a limit while all other connections are held; return how to check for the proof."""
        self._refuse_conflict(strike)
        await self._turn[strike.stream].acquire()
        strike.holds_turn = True
        try:
            if isinstance(strike.target, Downstream):
                await self._prover.must_be_open(strike.target.conn)  # a client may leave while another fault is armed
                self._armed = strike.target.conn
                self._free.clear()
            watch = await self._prover.before(strike)
            async with self._tuning:
                for toxic in strike.fault.toxics(strike.at):
                    await self._set(toxic._replace(stream=strike.stream))
        except BaseException:
            self._step_back(strike)
            raise
        return watch

    def _follow(self, strike: ToxicStrike, work: Coroutine[Any, Any, None]) -> None:
        """Do in a task what ends with the strike's proof, or with the error that `fired` raises."""

        async def followed() -> None:
            try:
                await work
            except (NetworkError, OSError) as error:
                if self._closed:
                    strike.settle(None)
                elif not strike.hit.done():
                    strike.hit.set_exception(error)
            finally:
                self._step_back(strike)

        strike.task = asyncio.create_task(followed())

    def _refuse_conflict(self, strike: ToxicStrike) -> None:
        """Raise NetworkError for faults that one proxy can't hold at the same time."""
        if strike.fault.ends == "stall":
            return
        if (strike.fault.ends == "rst") != self.resets:
            kinds = ("resets", "no FIN") if self.resets else ("no resets", "no RST")
            raise NetworkError(f"link {self.name} was opened for {kinds[0]}: through Toxiproxy it can send {kinds[1]}")
        if self._prover.agent_waits():
            raise LinkBusyError(f"link {self.name} holds a stall whose agent still waits; a cut would end it")

    async def _see_through(self, strike: ToxicStrike, watch: Watch | None) -> None:
        """Wait until the armed fault is proved or withdrawn, and lift the limit."""
        proof = await self._prover.proof(strike, watch)
        if proof and (watch is None or watch.passes_nothing):
            await asyncio.sleep(INSIDE_S)
        for limit in (strike.at, UNLIMITED):  # first the barrier (see 3.), then for good
            await self.proxy.update(Toxic("limit_data", {"bytes": limit}, strike.stream))
        if proof and watch and await self._prover.overran(watch):
            proof = None
        if proof and strike.fault.ends == "stall" and not strike.withdrawn.is_set():
            self._prover.holds(strike, watch)
        self._step_back(strike)
        await self._release(strike.stream)
        strike.settle(proof)

    def _step_back(self, strike: ToxicStrike) -> None:
        """Release the other connections, once."""
        if strike.holds_turn:
            strike.holds_turn = False
            self._turn[strike.stream].release()
            if strike.stream == "downstream":
                self._armed = None
                self._free.set()

    async def _release(self, stream: ToxicStream) -> None:
        """Let closes pass again when no stall is active in this direction; stalls that are still open end."""
        async with self._tuning:
            if not self._turn[stream].locked() and not any(it.stream == stream for it in self._prover.stalls):
                await self._set(Toxic("slow_close", {"delay": 0}, stream))

    async def _set(self, toxic: Toxic) -> None:
        """Update a toxic; skip a `slow_close` that has this delay already."""
        if toxic.kind == "slow_close":
            if self._slow[toxic.stream] == toxic.attributes["delay"]:
                return
            self._slow[toxic.stream] = toxic.attributes["delay"]
        await self.proxy.update(toxic)

    async def _add(self, strike: ToxicStrike) -> None:
        """Add a pace or a delay, which applies to the whole link from the next byte on."""
        if isinstance(strike.target, Upstream) and strike.at:
            raise NetworkError(f"{strike.fault.name} of a request starts at its first byte, not at {strike.at}")
        if not isinstance(strike.target, Upstream) and strike.target.conn is not None:
            await self._prover.quiet()
        base = self._prover.sent()
        number = 1 + self._strikes.index(strike)  # not their count: another fault can be armed meanwhile
        for toxic in strike.fault.toxics(strike.at):
            name = f"{name_of(toxic)}_{number}"
            await self.proxy.add(toxic._replace(stream=strike.stream), name)
            strike.names.append(name)
        self._follow(strike, self._prover.flow(strike, base))

    async def _close_port(self, strike: ToxicStrike) -> None:
        self._shut.add(strike)
        await self.proxy.enable(False)
        if self.request_gate:
            self.request_gate.refuse()
        strike.settle(await prove_refusal(self.name, self.address))


class ToxiproxyNetwork:
    """Opens links as proxies of the Toxiproxy server at `api`."""

    name: NetworkName = "toxiproxy"

    def __init__(self, api: Address) -> None:
        self._api = ToxiproxyApi(api)
        self._diag: TcpDiag | None = None
        self._numbers = itertools.count(1)
        self._links: list[ToxicLink] = []

    async def open_link(self, name: str, upstream: Address, resets: bool, requests: bool = False) -> ToxicLink:
        """A new proxy: with `resets` each close on it is an RST; with `requests` it has a request gate in front."""
        proxy = await self._api.create(f"{name}-{next(self._numbers)}", upstream)
        gate = await RequestGate(name, proxy.address).listen() if requests else None
        link = await ToxicLink(name, upstream, resets, proxy, self._diag, gate).install()
        self._links.append(link)
        return link

    async def alive(self) -> bool:
        """Return whether the server responds."""
        try:
            await self._api.version()
        except ToxiproxyError:
            return False
        return True

    async def __aenter__(self) -> Self:
        """Open the kernel's byte counts, where there are any."""
        self._diag = TcpDiag.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for link in self._links:
            await link.close()
        self._links.clear()
        if self._diag:
            self._diag.close()
