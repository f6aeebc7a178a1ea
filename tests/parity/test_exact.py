"""Stall, FIN and RST hit the byte, every time, on kept-alive connections beside an innocent one."""

import asyncio
import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import product, starmap

import pytest

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.wire.cut import Cut
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.network.base import Downstream

ROUNDS = {True: 100, False: 30} if os.environ.get("WEDGEHOG_LONG") else {True: 30, False: 10}
"""Beside a process that takes a processor again and again, and on a quiet machine, where fewer things can go wrong.

`WEDGEHOG_LONG=1` makes it more of them.
"""
BUSY = """
import time
while True:
    until_s = time.monotonic() + 0.02
    while time.monotonic() < until_s:
        pass
    time.sleep(0.02)
"""
KINDS = {"stall": Stall(), "fin": Cut("fin"), "rst": Cut("rst")}
CASES = list(product(("embedded", "toxiproxy"), KINDS))
EARLIER = 700
BYTES = bytes(range(251)) * 300


@contextlib.contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """Another process that takes a processor for half of the time."""
    process = subprocess.Popen([sys.executable, "-S", "-E", "-c", BUSY]) if wanted else None
    try:
        yield
    finally:
        if process:
            process.kill()
            process.wait()


@pytest.mark.parametrize("loaded", [False, True])
async def test_many_strikes_in_a_row_hit_their_byte(networks, worlds, loaded):
    """Each of many faults of each kind at a random byte of the second answer of a connection passes exactly the bytes
    before it, while an older neighbour on the same link loses nothing. Each kind has both networks for itself."""

    async def missed(name: str, ending: str) -> list[tuple]:
        dice = random.Random(f"{name}{loaded}{ending}")
        async with networks(name) as network, worlds(network, resets=ending == "rst") as world:
            return await misses(world, ending, dice, ROUNDS[loaded])

    with busy(loaded):
        wrong = await asyncio.gather(*starmap(missed, CASES))
    assert dict(zip(CASES, wrong, strict=True)) == {case: [] for case in CASES}


async def misses(world, ending: str, dice: random.Random, rounds: int) -> list[tuple]:
    """The strikes that let other bytes through, or ended otherwise."""
    neighbour = await world.pair()
    wrong: list[tuple] = []
    for turn in range(rounds):
        at = dice.choice([0, dice.randint(1, 2000), dice.randint(1, 64 * 1024)])
        seen = await strike_once(world, KINDS[ending], ending, at, neighbour, 500 * turn)
        if seen != (at, ending):
            wrong.append((turn, (at, ending), seen))
    return wrong


async def strike_once(world, fault: WireFault, ending: str, at: int, neighbour, carried: int) -> tuple:
    """One strike on a fresh connection that has answered before; the neighbour is answered at the same time."""
    client, upstream = await world.pair()
    await world.carry(upstream, client, b"x" * EARLIER)
    await world.link.admit(upstream.peer, EARLIER)
    strike = await world.link.strike(fault, Downstream(upstream.peer, EARLIER + at))
    innocent = asyncio.create_task(world.carry(neighbour[1], neighbour[0], b"z" * 500, carried))
    upstream.write(BYTES[: at + 3000])
    proof = await strike.fired(5)
    # A strike that missed holds the neighbour back for ever: that must be red, not a test that hangs.
    await asyncio.wait_for(innocent, 5)
    got, how = await client.ending(0.03 if ending == "stall" else 5)
    assert proof is not None, (at, len(got), how)
    assert proof.bytes == EARLIER + at
    assert got == BYTES[: len(got)]
    client.close()
    upstream.close()
    await strike.heal()
    return len(got), how
