"""`time` and `datetime` follow the virtual clock, and come back."""

import asyncio
import datetime
import ssl
import sys
import time
import weakref

import pydantic
import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.sim.clock import EPOCH, SimClock
from wedgehog.harness.sim.lazy_ca import lazy_ca
from wedgehog.harness.sim.world import SimWorld, simulate


def test_every_clock_is_at_the_virtual_time():
    async def main() -> list[object]:
        loop, ours, walls = asyncio.get_running_loop(), SimClock(), WallClock()
        began = time.monotonic(), time.time(), time.perf_counter()
        await asyncio.sleep(600)
        assert time.monotonic() == loop.time()
        assert datetime.datetime.now(datetime.UTC) == ours.wall() == EPOCH + datetime.timedelta(seconds=600)
        assert (ours.now(), walls.now()) == (600, 600)
        return [time.monotonic() - began[0], time.time() - began[1], time.perf_counter() - began[2]]

    with SimWorld() as world:
        assert world.run(main) == world.run(main) == [600, 600, 600]


def test_the_real_time_comes_back():
    with SimWorld() as world:
        world.run(lambda: asyncio.sleep(600))
    assert datetime.datetime.now(datetime.UTC).year > 2025
    assert type(datetime.datetime.now(datetime.UTC)) is datetime.datetime
    assert abs(time.time() - datetime.datetime.now(datetime.UTC).timestamp()) < 5


def test_a_pydantic_model_that_is_built_meanwhile_takes_dates():
    async def main() -> object:
        from datetime import date, datetime

        class Event(pydantic.BaseModel):
            at: datetime
            day: date

        return Event.model_validate({"at": "2026-01-01T00:10:00Z", "day": "2026-01-01"}).at.minute

    with SimWorld() as world:
        assert world.run(main) == 10


def test_the_old_pydantic_is_imported_meanwhile(monkeypatch: pytest.MonkeyPatch):
    """LangChain imports it; its class of dates has a metaclass of its own."""
    for name in [it for it in sys.modules if it.startswith("pydantic.v1")]:
        monkeypatch.delitem(sys.modules, name)

    async def main() -> object:
        from pydantic.v1 import BaseModel

        class Event(BaseModel):
            day: datetime.date

        return Event(day=datetime.datetime.now(datetime.UTC).date()).day == EPOCH.date()

    with SimWorld() as world:
        assert world.run(main)


def test_hypothesis_sees_the_real_time():
    """Its deadline of 200 ms does not count virtual minutes."""

    @given(st.integers(1, 1000))
    def property_(minutes: int) -> None:
        world.run(lambda: asyncio.sleep(60 * minutes))

    with SimWorld() as world:
        property_()


def test_what_a_run_left_is_gone_before_the_next_one_begins():
    """A finalizer that ran in the middle of a later run could change it."""
    left: list[weakref.ref[object]] = []

    class Cycle:
        def __init__(self) -> None:
            self.me = self

    async def leaves_a_cycle() -> None:
        left.append(weakref.ref(Cycle()))

    async def is_it_gone() -> bool:
        return left[0]() is None

    with SimWorld() as world:
        world.run(leaves_a_cycle)
        assert world.run(is_it_gone)


def test_randomness_is_the_same_for_the_same_seed():
    async def main() -> list[object]:
        import os
        import random
        import secrets
        import uuid

        return [random.random(), os.urandom(4), uuid.uuid4(), uuid.uuid1().time, secrets.token_hex(4)]

    with SimWorld() as world:
        first, again, other = (world.run(main, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert all(one != two for one, two in zip(first[:3], other[:3], strict=True))


def test_certificates_are_loaded_when_they_are_needed(tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with lazy_ca():
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        other = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        with pytest.raises(OSError, match="No such file"):
            context.load_verify_locations(str(tmp_path / "missing.pem"))
        assert len(context.get_ca_certs()) == 1
    assert len(other.get_ca_certs()) == 1


def test_nothing_is_patched_after_a_simulation():
    before = time.sleep, ssl.SSLContext.wrap_bio, __import__("os").urandom
    simulate(lambda: asyncio.sleep(1))
    assert before == (time.sleep, ssl.SSLContext.wrap_bio, __import__("os").urandom)
