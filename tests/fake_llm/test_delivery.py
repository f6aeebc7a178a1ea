"""How a compiled reply is written through the gate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from wedgehog.fake_llm.delivery import Delivery
from wedgehog.fake_llm.frame import Frame
from wedgehog.fake_llm.wire_reply import WireReply, chunked


class InstantClock:
    """Sleeps take no time."""

    async def sleep(self, seconds: float) -> None:
        """Return at once."""

    def wall(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


class Sink:
    """Takes bytes; at each gate it notes how many had been written, and returns the stops on the first."""

    def __init__(self, stops: Sequence[int] = ()) -> None:
        self.writes: list[bytes] = []
        self.asked: list[tuple[int, int]] = []
        self._stops = stops

    async def ask(self, at: int) -> Sequence[int]:
        self.asked.append((at, len(b"".join(self.writes))))
        return self._stops if at == -1 else ()


frames = st.lists(
    st.builds(Frame, data=st.binary(min_size=1, max_size=9), delay_s=st.sampled_from([0, 0, 1])), max_size=6
)


async def deliver(image: WireReply, sink: Sink) -> Delivery:
    delivery = Delivery(image, sink.writes.append, sink.ask, InstantClock())
    await delivery.run()
    return delivery


@given(frames=frames, stops=st.lists(st.integers(0, 90)))
async def test_every_stop_is_met_with_exactly_the_bytes_before_it(frames: list[Frame], stops: list[int]) -> None:
    """With any stops and delays, the gate finds all bytes before its offset written, and none after."""
    image, sink = chunked(frames, []), Sink(stops)
    delivery = await deliver(image, sink)
    assert b"".join(sink.writes) == image.head + image.body
    assert (delivery.head, delivery.body) == (len(image.head), image.size)
    starts = [0, *image.told.ends][: len(frames)]
    paced = [start for start, frame in zip(starts, frames, strict=True) if frame.delay_s]
    reachable = sorted([*{stop for stop in stops if stop <= image.size}, *paced])
    assert [at for at, _ in sink.asked] == [-1, *reachable]
    before_the_first = paced[:1] == [0]
    for at, written in sink.asked[1:]:
        assert written == len(image.head) + at or (at == 0 and before_the_first)


async def test_a_reply_without_delays_is_one_write() -> None:
    """Frames without a stop or delay between them are one write, head included."""
    sink = Sink()
    await deliver(chunked([Frame(b"a"), Frame(b"b"), Frame(b"c")], []), sink)
    assert len(sink.writes) == 1


async def test_a_paced_frame_is_written_alone_after_its_delay() -> None:
    """Bytes before a delay are written before it begins."""
    image, sink = chunked([Frame(b"a"), Frame(b"b", delay_s=1), Frame(b"c")], []), Sink()
    await deliver(image, sink)
    assert sink.writes == [image.head + b"1\r\na\r\n", b"1\r\nb\r\n1\r\nc\r\n0\r\n\r\n"]


async def test_stops_that_a_later_gate_names_are_met_too() -> None:
    """A gate may return further stops at any point; those behind it are too late."""

    class Later(Sink):
        async def ask(self, at: int) -> Sequence[int]:
            await super().ask(at)
            return {-1: [5], 5: [2, 5, 8]}.get(at, [])

    sink = Later()
    await deliver(chunked([Frame(b"abcdefgh")], []), sink)
    assert [at for at, _ in sink.asked] == [-1, 5, 8]
