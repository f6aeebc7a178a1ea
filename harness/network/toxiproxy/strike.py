"""One fault armed on a Toxiproxy link, and looking at it until it has hit."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.network.base import Downstream, Proof, Target, Upstream
from wedgehog.harness.network.proxied_connection import ProxiedConnection
from wedgehog.harness.network.toxiproxy.api import ProxyCounts
from wedgehog.harness.network.toxiproxy.delivery_proof import DownstreamWatch, Sockets, UpstreamWatch, Watch

ToxicStream = Literal["downstream", "upstream"]


class HealingLink(Protocol):
    """The link that takes a strike away."""

    async def heal(self, strike: "ToxicStrike") -> None:
        """Undo it."""


@dataclass(eq=False, slots=True)
class ToxicStrike:
    """One fault armed on a Toxiproxy link."""

    link: HealingLink
    fault: WireFault
    spot: Target
    stream: ToxicStream
    hit: "asyncio.Future[Proof | None]"
    at: int = 0
    armed_at: float = 0.0
    task: "asyncio.Task[None] | None" = None
    counted: ProxyCounts | None = None
    passage: ProxiedConnection | None = None
    """The connection whose request it strikes."""
    names: list[str] = field(default_factory=list)
    withdrawn: asyncio.Event = field(default_factory=asyncio.Event)
    holds_turn: bool = False

    async def fired(self, timeout_s: float) -> Proof | None:
        """The kernel's proof; raises ToxiproxyGone if the server died meanwhile."""
        done, _ = await asyncio.wait([self.hit], timeout=timeout_s)
        return self.hit.result() if done else None

    async def heal(self) -> None:
        """Take the fault away. Stalls share one setting: the last one healed ends them all."""
        if not self.withdrawn.is_set():
            self.withdrawn.set()
            await self.link.heal(self)

    def settle(self, proof: Proof | None) -> None:
        """Say how it ended, unless that is known."""
        if not self.hit.done():
            self.hit.set_result(proof)


def stream_of(fault: WireFault, spot: Target) -> ToxicStream:
    """Which way the bytes go that it strikes."""
    of_request = isinstance(spot, Upstream) and not fault.closes_port
    return "upstream" if of_request else "downstream"


def byte_of(spot: Target) -> int:
    """How many bytes of its connection may pass."""
    return spot.at if isinstance(spot, Downstream | Upstream) else 0


def watch_for(strike: ToxicStrike, before: Sockets) -> Watch:
    """What to look for, from now on."""
    stalls = strike.fault.ends == "stall"
    if isinstance(strike.spot, Downstream):
        return DownstreamWatch(strike.spot.conn, strike.at, stalls, before)
    assert strike.passage is not None  # noqa: S101  the turnstile has let it through
    return UpstreamWatch(strike.at, stalls, before, strike.passage)


async def rounds(timeout_s: float | None = None) -> AsyncIterator[float]:
    """Looks at ever longer intervals, each with the seconds waited for it: often at first, when most is decided."""
    passed_s, wait_s = 0.0, 0.0
    while timeout_s is None or passed_s < timeout_s:
        yield wait_s
        wait_s = 0.001 if passed_s < 0.05 else 0.005 if passed_s < 0.5 else 0.02
        await asyncio.sleep(wait_s)
        passed_s += wait_s
