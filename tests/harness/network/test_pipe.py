"""The byte engine, without a socket or a clock."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wedgehog.harness.network.pipe import Close, Pipe, Send


def passed(pipe: Pipe, now: float = 0.0) -> bytes:
    return b"".join(it.data for it in pipe.ready(now) if isinstance(it, Send))


def test_without_a_fault_everything_passes_at_once_and_the_end_behind_it():
    """Bytes, then FIN, in order."""
    pipe = Pipe()
    pipe.feed(b"hello", 0)
    pipe.end(0)
    assert pipe.ready(0) == [Send(b"hello"), Close("fin")]
    assert not pipe.reading


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_a_cut_delivers_exactly_the_bytes_before_the_trigger(how):
    """Counted from the connection's first byte, across several feeds."""
    pipe = Pipe()
    pipe.feed(b"abcd", 0)
    assert passed(pipe) == b"abcd"
    pipe.stop(6, how)
    pipe.feed(b"efgh", 0)
    assert pipe.ready(0) == [Send(b"ef"), Close(how)]
    pipe.feed(b"late", 0)
    assert pipe.ready(1e9) == []
    assert (pipe.carried, pipe.stopped) == (6, how)


def test_a_cut_hits_with_its_last_byte_although_nothing_follows():
    """The limit is reached when its last byte passes, as through Toxiproxy."""
    pipe = Pipe()
    pipe.stop(4, "fin")
    pipe.feed(b"abcd", 0)
    assert pipe.ready(0) == [Send(b"abcd"), Close("fin")]


@pytest.mark.parametrize("at", [4, 2])
def test_a_limit_that_lets_nothing_pass_hits_with_the_next_byte(at):
    """Armed at (or behind) what was carried: nothing happens until something comes, and that is lost."""
    pipe = Pipe()
    pipe.feed(b"abcd", 0)
    pipe.ready(0)
    pipe.stop(at, "fin")
    assert pipe.ready(0) == []
    pipe.feed(b"e", 0)
    assert pipe.ready(0) == [Close("fin")]


def test_a_stall_is_silent_for_ever_and_swallows_the_end():
    """No byte, no close; and healing it sends FIN, without what was lost."""
    pipe = Pipe()
    pipe.stop(2, "stall")
    pipe.feed(b"abcd", 0)
    pipe.end(0)
    assert pipe.ready(0) == [Send(b"ab")]
    assert pipe.ready(1e9) == []
    assert pipe.next_at() is None
    assert pipe.heal() == [Close("fin")]
    assert pipe.heal() == []


def test_a_pace_starts_at_its_byte_and_loses_nothing():
    """Two bytes a second from byte 3 on; the end comes behind the last."""
    pipe = Pipe()
    pipe.pace(3, every_s=1, size=2)
    pipe.feed(b"abcdefgh", 0)
    pipe.end(0)
    assert [passed(pipe, now) for now in (0, 0.5, 1, 2)] == [b"abcde", b"", b"fg", b"h"]
    assert pipe.ready(2) == []
    assert pipe.carried == 8


def test_a_pace_says_when_to_ask_again():
    """The engine has no clock of its own."""
    pipe = Pipe()
    pipe.pace(0, every_s=1, size=1)
    pipe.feed(b"ab", 5)
    assert passed(pipe, 5) == b"a"
    assert pipe.next_at() == 6
    assert passed(pipe, 5.9) == b""
    assert passed(pipe, 6) == b"b"


def test_a_pace_that_is_asked_late_does_not_drift():
    """On a busy machine each pause of a millisecond would last three. After a long hold little comes at once."""
    pipe = Pipe()
    pipe.pace(0, every_s=0.25, size=1)
    pipe.feed(b"abcdefghijkl", now=0)
    assert pipe.ready(now=0) == [Send(b"a")]
    assert pipe.ready(now=0.375) == [Send(b"b")] and pipe.next_at() == 0.5
    assert pipe.ready(now=1.125) == [Send(b"c"), Send(b"d"), Send(b"e")] and pipe.next_at() == 1.25
    assert len(pipe.ready(now=100)) == 5 and pipe.next_at() == 100.25


def test_a_pace_in_proportion_pauses_for_as_long_as_its_bytes_take():
    """A tenth of a slice takes a tenth of its time, as through Toxiproxy."""
    pipe = Pipe()
    pipe.pace(0, every_s=1, size=10, in_proportion=True)
    pipe.feed(b"a", 0)
    pipe.feed(b"bcdefghijklm", 0)
    assert passed(pipe, 0) == b"a"
    assert pipe.next_at() == 0.1
    assert (passed(pipe, 0.1), passed(pipe, 1.0), passed(pipe, 1.1)) == (b"bcdefghijk", b"", b"lm")


def test_a_pace_that_is_set_again_does_not_let_more_pass():
    """A second fault on a slow link begins behind the pause of the first."""
    pipe = Pipe()
    pipe.pace(0, every_s=1, size=2)
    pipe.feed(b"abcdef", 0)
    assert passed(pipe) == b"ab"
    pipe.pace(2, every_s=1, size=2)
    assert (passed(pipe), passed(pipe, 1)) == (b"", b"cd")


def test_latency_delays_every_byte_and_keeps_the_order():
    """Also of the end; what came before it was set is not held back."""
    pipe = Pipe()
    pipe.feed(b"a", 0)
    assert passed(pipe, 0) == b"a"
    pipe.delay(2)
    pipe.feed(b"b", 1)
    pipe.feed(b"c", 2)
    pipe.end(2)
    assert pipe.ready(2.9) == []
    assert pipe.ready(3) == [Send(b"b")]
    assert pipe.ready(4) == [Send(b"c"), Close("fin")]


def test_two_latencies_add_up():
    """Each makes every byte later than it would be; a healed one is taken from what is on its way."""
    pipe = Pipe()
    pipe.delay(6)
    pipe.feed(b"a", 0)
    pipe.delay(5)
    pipe.feed(b"b", 1)
    assert [passed(pipe, now) for now in (5.9, 6, 11.9, 12)] == [b"", b"a", b"", b"b"]
    pipe.feed(b"c", 12)
    assert pipe.heal([lambda pipe: pipe.delay(6)]) == []
    assert [passed(pipe, now) for now in (17.9, 18)] == [b"", b"c"]


def test_of_two_paces_the_slower_one_counts():
    """The second one begins at its byte, and the first one stays on before and behind it."""
    pipe = Pipe()
    pipe.pace(0, every_s=1, size=2)
    pipe.feed(b"abcdefgh", 0)
    pipe.pace(4, every_s=3, size=1)
    assert [passed(pipe, now) for now in (0, 1, 2, 4.9, 5)] == [b"ab", b"cd", b"e", b"", b"f"]
    assert pipe.heal([lambda pipe: pipe.pace(4, every_s=3, size=1)]) == []
    assert [passed(pipe, now) for now in (7.9, 8)] == [b"", b"g"]


def test_healing_lets_delayed_bytes_go_at_once():
    """Nothing that is still on its way is lost by healing."""
    pipe = Pipe()
    pipe.delay(100)
    pipe.pace(0, every_s=100, size=1)
    pipe.feed(b"abc", 0)
    assert pipe.waiting == 3
    assert pipe.heal() == []
    assert passed(pipe, 0) == b"abc"


@given(
    feeds=st.lists(st.tuples(st.floats(0, 3), st.integers(1, 60)), max_size=4),
    pace=st.none() | st.tuples(st.integers(0, 80), st.sampled_from((0.0, 0.1, 0.5)), st.integers(1, 9)),
    in_proportion=st.booleans(),
    stop=st.none() | st.integers(0, 120),
    delay_s=st.sampled_from((0.0, 0.25)),
    until_s=st.floats(0, 10) | st.just(math.inf),
)
@example(feeds=[(0.0, 40)], pace=(8, 0.1, 3), in_proportion=True, stop=None, delay_s=0.0, until_s=0.9)
@example(feeds=[(0.0, 40), (1.0, 40)], pace=(8, 0.1, 3), in_proportion=False, stop=50, delay_s=0.25, until_s=math.inf)
def test_what_is_skipped_is_what_passes_piece_by_piece(
    feeds: Sequence[tuple[float, int]],
    pace: tuple[int, float, int] | None,
    in_proportion: bool,
    stop: int | None,
    delay_s: float,
    until_s: float,
):
    """The same bytes, the same time of the last one, and the same afterwards."""
    pipes = (Pipe(), Pipe())
    for pipe in pipes:
        pipe.delay(delay_s)
        if pace:
            pipe.pace(*pace, in_proportion=in_proportion)
        if stop is not None:
            pipe.stop(stop, "stall")
        for at_s, size in sorted(feeds):
            pipe.feed(bytes(size), at_s)
    last_s = 0.0
    while (at_s := pipes[1].next_at()) is not None and at_s <= until_s:
        pipes[1].ready(at_s)
        last_s = at_s
    assert pipes[0].skip(until_s) == last_s
    assert pipes[0] == pipes[1]
