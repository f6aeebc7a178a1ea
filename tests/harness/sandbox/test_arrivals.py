"""Each piece of an output has the time at which it arrived."""

import asyncio

import pytest

from wedgehog.harness.sandbox.arrivals import TAIL_BYTES, Arrivals
from wedgehog.harness.sim.world import simulate


def arrived(*pieces: bytes, head_bytes: int = 10) -> Arrivals:
    """The pieces, one per second, the first at second 0."""

    async def main() -> Arrivals:
        arrivals = Arrivals(head_bytes)
        for piece in pieces:
            arrivals.add(piece)
            await asyncio.sleep(1)
        return arrivals

    return simulate(main)


def since_first(arrivals: Arrivals, at_s: float | None) -> float | None:
    first_s = arrivals.line_s(0)
    return None if at_s is None or first_s is None else round(at_s - first_s)


@pytest.mark.parametrize(("index", "at_s"), [(0, 0), (1, 2), (2, 2), (3, 3), (4, 3)])
def test_a_line_came_with_the_piece_that_holds_its_last_word(index: int, at_s: int):
    """Blanks at its end may come later; a line without words came with the line before it."""
    arrivals = arrived(b"one", b"\ntwo and ", b"more", b"  \n\nfive\n", b"\n\n")
    assert since_first(arrivals, arrivals.line_s(index)) == at_s


def test_the_times_of_what_is_kept_stay_when_the_middle_is_lost():
    """Of the beginning, and of the last megabyte; where nothing came there is no time."""
    long = [b"x" * 100_000] * (3 * TAIL_BYTES // 100_000)
    arrivals = arrived(b"one\n", b"two\n", *long, b"\nlast\n")
    assert [line[:3] for line in arrivals.lines] == ["one", "two", "xx", "[… ", "xxx", "las", ""]
    assert [since_first(arrivals, arrivals.line_s(index)) for index in (0, 1, 2, 4, 5)] == [0, 1, 2, 31, 32]
    assert arrivals.words_s == arrivals.line_s(5)
    assert (arrived().words_s, arrived(b" \n").words_s, arrived().last_s) == (None, None, None)
