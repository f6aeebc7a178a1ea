"""Fakes for the engine's tests: a clock that stands until it is moved, a link that notes who struck it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import uvloop

from wedgehog.harness.network.base import Address, NetworkError, Proof

ROUNDS = 30
"""Turns of the event loop in which everything that can go on without time does."""


async def settle() -> None:
    """Let every task go on until it waits for time or for somebody else."""
    for _ in range(ROUNDS):
        await asyncio.sleep(0)


class ManualClock:
    """Time that passes only by `advance`; sleepers wake in the order of their times."""

    def __init__(self) -> None:
        self.s = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self.s

    def wall(self) -> datetime:
        return datetime(2026, 6, 1, 12, tzinfo=UTC) + timedelta(seconds=self.s)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.s + seconds, waker))
        await waker

    async def advance(self, seconds: float) -> None:
        """Let so much time pass, and everybody do what they would in it."""
        end = self.s + seconds
        await settle()
        while due := [it for it in self._sleepers if it[0] <= end + 1e-9 and not it[1].done()]:
            first = min(due, key=lambda it: it[0])
            self._sleepers.remove(first)
            self.s = max(self.s, first[0])
            first[1].set_result(None)
            await settle()
        self.s = end
        await settle()


@dataclass(eq=False)
class FakeStrike:
    """An armed fault that hits when it is told to."""

    fault: Any
    spot: Any
    hit: "asyncio.Future[Proof | None]"
    healed: bool = False
    proves_when_healed: bool = False
    heals: asyncio.Event = field(default_factory=asyncio.Event)
    stays: NetworkError | None = None
    """Raised by `heal`: the fault could not be removed."""

    def __post_init__(self) -> None:
        self.heals.set()

    async def fired(self, timeout_s: float) -> Proof | None:
        done, _ = await asyncio.wait([self.hit], timeout=timeout_s)
        return self.hit.result() if done else None

    async def heal(self) -> None:
        await self.heals.wait()
        if self.stays is not None:
            raise self.stays
        self.healed = True
        if not self.hit.done():
            self.hit.set_result(Proof(7, "counted at last") if self.proves_when_healed else None)

    async def hits(self, how: str = "counted") -> None:
        """The bytes have arrived."""
        self.hit.set_result(Proof(None, how))
        await settle()


@dataclass
class FakeLink:
    """A link that only takes notes; `broken` is raised by the next strike, `open` lets strikes pass.

    Without `told` a strike is in effect, and its caller does not know that yet. While a strike is `alone` with
    its connection, no other is admitted.
    """

    name: str = "llm"
    address: Address = ("127.0.0.1", 1)
    strikes: list[FakeStrike] = field(default_factory=list)
    admitted: list[tuple[Address, int]] = field(default_factory=list)
    broken: NetworkError | None = None
    open: asyncio.Event = field(default_factory=asyncio.Event)
    told: asyncio.Event = field(default_factory=asyncio.Event)
    alone: Address | None = None
    free: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.open.set()
        self.told.set()

    async def admit(self, conn: Address, carried: int) -> None:
        while self.alone not in (None, conn):
            await self.free.wait()
        self.admitted.append((conn, carried))

    async def strike(self, fault: Any, spot: Any) -> FakeStrike:
        await self.open.wait()
        if self.broken is not None:
            raise self.broken
        strike = FakeStrike(fault, spot, asyncio.get_running_loop().create_future())
        self.strikes.append(strike)
        await self.told.wait()
        return strike

    def give_way(self) -> None:
        """The strike that was alone is over."""
        self.alone = None
        self.free.set()

    async def close(self) -> None:
        pass


@pytest.fixture
def manual_clock() -> ManualClock:
    """Time that passes only when told."""
    return ManualClock()


@pytest.fixture
def fake_link() -> Callable[..., FakeLink]:
    """Makes links that take notes."""
    return FakeLink


@pytest.fixture
def settled() -> Callable[..., Any]:
    """Lets every task go on until it waits."""
    return settle


def pytest_asyncio_loop_factories(config: Any, item: Any) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Bytes are harmed alike on the event loop of `wedgehog serve` and on asyncio's, which `Provider` runs on."""
    both = item.path.name in ("test_serve_exact.py", "test_direct_link.py")
    return {"asyncio": asyncio.new_event_loop} | ({"uvloop": uvloop.new_event_loop} if both else {})
