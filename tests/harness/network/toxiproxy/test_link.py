"""The recipe's two precautions, against a limiter that is slow where Toxiproxy's can be on a busy machine.

Between the socket and the limiter bytes may be under way, and between the limiter's last byte and its decision to stop
there is a moment too. On the real server both windows are microseconds wide: two hundred faults meet neither.
"""

import asyncio
from typing import Any

import pytest

from wedgehog.harness.faults.base import Toxic
from wedgehog.harness.faults.wire.cut import Cut
from wedgehog.harness.faults.wire.slow import Latency
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.network.base import ConnectionGoneError, Downstream, NetworkError, WholeLink
from wedgehog.harness.network.tcp_diag import ESTABLISHED, SocketCount
from wedgehog.harness.network.toxiproxy.api import ProxyCounts, ToxiproxyRefusedError
from wedgehog.harness.network.toxiproxy.delivery_proof import Sockets
from wedgehog.harness.network.toxiproxy.link import UNLIMITED, ToxicLink
from wedgehog.harness.network.toxiproxy.prover import ONCE_MORE_S

AGENT, PROXY, FAKE = ("127.0.0.1", 1), ("127.0.0.1", 2), ("127.0.0.1", 3)
SLOW_S = 0.02


class SlowLimiter:
    """One connection through a `limit_data`, as Toxiproxy runs it: an update changes the limit that the limiter reads,
    then waits until it is idle or has stopped."""

    address = PROXY

    def __init__(self, inside_s: float, deciding_s: float) -> None:
        self.limit, self.received, self.sent = UNLIMITED, 0, 0
        self._inside_s, self._deciding_s = inside_s, deciding_s
        self._stopped = False
        self._busy = asyncio.Lock()

    async def carry(self, size: int) -> None:
        """The proxy takes bytes off its socket; some time later the limiter has them, and then it decides."""
        self.received += size
        await asyncio.sleep(self._inside_s)
        async with self._busy:
            if not self._stopped:
                self.sent += max(0, min(size, self.limit - self.sent))
                await asyncio.sleep(self._deciding_s)
                self._stopped = self.sent >= self.limit

    async def update(self, toxic: Toxic) -> None:
        if toxic.kind == "limit_data" and toxic.stream == "downstream":
            self.limit = toxic.attributes["bytes"]
            async with self._busy:
                pass

    async def add(self, toxic: Toxic) -> None:
        """Born with it."""

    async def counted(self, stream: str) -> ProxyCounts:
        return ProxyCounts(0, 0)

    def look(self) -> Sockets:
        """The kernel's view."""
        agent = _count(PROXY, AGENT, 1, sent=self.sent)
        proxied = _count(AGENT, FAKE, 2, received=self.received)
        return Sockets({1: agent}, {proxied.local: proxied}, {})


def _count(local: Any, remote: Any, cookie: int, sent: int = 0, received: int = 0) -> SocketCount:
    return SocketCount(local, remote, ESTABLISHED, cookie, sent, received, 0, 0, 0)


@pytest.mark.parametrize(
    ("at", "inside_s", "deciding_s"),
    [
        pytest.param(0, SLOW_S, 0.0, id="bytes under way to the limiter"),
        pytest.param(100, 0.0, SLOW_S, id="a limiter that has not decided yet"),
    ],
)
async def test_a_limit_is_lifted_only_when_the_limiter_has_stopped(at: int, inside_s: float, deciding_s: float):
    """All bytes after the fault's byte are lost, however slow the server is; no later write passes."""
    proxy = SlowLimiter(inside_s, deciding_s)
    link = await ToxicLink("llm", FAKE, False, proxy, None).install()  # type: ignore[arg-type]
    link._prover.sockets = proxy  # type: ignore[assignment]
    await link.admit(AGENT, 0)
    strike = await link.strike(Stall(), Downstream(AGENT, at))
    writing = asyncio.gather(proxy.carry(300), return_exceptions=True)
    proof = await strike.fired(5)
    await writing
    assert proof is not None and proof.bytes == at
    assert proxy.limit == UNLIMITED, "others must be able to go on"
    await proxy.carry(300)
    assert proxy.sent == at


async def test_a_count_that_comes_late_still_proves_a_cut():
    """On a busy machine the server may count the bytes of a connection well after its socket has gone."""

    class LateCount(SlowLimiter):
        gone, asked_s = False, 0.0

        async def counted(self, stream: str) -> ProxyCounts:
            """Right only when it is asked again after a rest."""
            before_s, self.asked_s = self.asked_s, asyncio.get_running_loop().time()
            return (
                ProxyCounts(100, 100) if self.gone and self.asked_s - before_s > ONCE_MORE_S / 2 else ProxyCounts(0, 0)
            )

        def look(self) -> Sockets:
            return Sockets({}, {}, {}) if self.gone else super().look()

    proxy = LateCount(0, 0)
    link = await ToxicLink("llm", FAKE, False, proxy, None).install()  # type: ignore[arg-type]
    link._prover.sockets = proxy  # type: ignore[assignment]
    await link.admit(AGENT, 0)
    strike = await link.strike(Cut(), Downstream(AGENT, 100))
    proxy.gone, proxy.asked_s = True, asyncio.get_running_loop().time()
    proof = await strike.fired(5)
    assert proof is not None and "100 bytes" in proof.how


async def test_a_strike_that_is_taken_away_is_looked_at_once_more():
    """An agent that ends at once is faster than a busy server: what it did by then counts."""
    proxy = SlowLimiter(0.05, 0.0)
    link = await ToxicLink("llm", FAKE, False, proxy, None).install()  # type: ignore[arg-type]
    link._prover.sockets = proxy  # type: ignore[assignment]
    await link.admit(AGENT, 0)
    strike = await link.strike(Stall(), Downstream(AGENT, 100))
    writing = asyncio.create_task(proxy.carry(300))
    await strike.heal()
    await writing
    assert await strike.fired(1) is not None


async def test_a_connection_that_ended_while_another_fault_was_armed_holds_no_other():
    """Agents that give up sooner than faults are armed would leave a row of them, which holds up later replies."""
    left = ("127.0.0.1", 4)

    class Leaves(SlowLimiter):
        here = True

        def look(self) -> Sockets:
            seen = super().look()
            other = _count(left, FAKE, 3)
            return Sockets(seen.agents, {**seen.proxied, other.local: other} if self.here else seen.proxied, {})

    proxy = Leaves(0, 0)
    link = await ToxicLink("llm", FAKE, False, proxy, None).install()  # type: ignore[arg-type]
    link._prover.sockets = proxy  # type: ignore[assignment]
    first = await link.strike(Stall(), Downstream(AGENT, 100))
    second = asyncio.create_task(link.strike(Stall(), Downstream(left, 100)))
    await asyncio.sleep(0)
    proxy.here = False
    await proxy.carry(300)
    assert await first.fired(5) is not None
    with pytest.raises(ConnectionGoneError):
        await second
    assert proxy.limit == UNLIMITED
    await asyncio.wait_for(link.admit(AGENT, 100), 5)


async def test_a_link_that_is_closed_under_a_strike_is_no_failure_of_the_server():
    """Its proxy is gone and says so with a 404: nothing was hit, and nothing is wrong."""

    class Gone(SlowLimiter):
        destroyed = False

        async def update(self, toxic: Toxic) -> None:
            if self.destroyed:
                raise ToxiproxyRefusedError("404: proxy not found")
            await super().update(toxic)

        async def destroy(self) -> None:
            self.destroyed = True

    proxy = Gone(0, 0)
    link = await ToxicLink("ipc:db", FAKE, False, proxy, None).install()  # type: ignore[arg-type]
    link._prover.sockets = proxy  # type: ignore[assignment]
    strike = await link.strike(Stall(), Downstream(AGENT, 100))
    await link.close()
    assert await strike.fired(1) is None


async def test_a_cut_of_a_whole_link_is_refused_in_one_sentence():
    """A limit is proved by the bytes of one connection, so a plugin's fault of that kind gets a reason."""
    proxy = SlowLimiter(0, 0)
    link = await ToxicLink("llm", FAKE, False, proxy, None).install()  # type: ignore[arg-type]
    link._prover.sockets = proxy  # type: ignore[assignment]
    with pytest.raises(NetworkError, match="cannot stop the whole link"):
        await link.strike(Stall(), WholeLink())


async def test_two_slow_faults_that_are_armed_at_the_same_time_have_names_of_their_own():
    """The server answers 409 to a toxic whose name it has already."""

    class Named(SlowLimiter):
        def __init__(self) -> None:
            super().__init__(0, 0)
            self.names: list[str | None] = []

        async def add(self, toxic: Toxic, name: str | None = None) -> None:
            if toxic.kind == "latency":
                self.names.append(name)

    proxy = Named()
    link = await ToxicLink("llm", FAKE, False, proxy, None).install()  # type: ignore[arg-type]
    link._prover.sockets = proxy  # type: ignore[assignment]
    strikes = await asyncio.gather(*(link.strike(Latency(s), WholeLink(AGENT)) for s in (1.0, 2.0)))
    assert len(set(proxy.names)) == 2
    assert [name for strike in strikes for name in strike.names] == proxy.names
    for strike in strikes:
        strike.withdrawn.set()
        await strike.task
