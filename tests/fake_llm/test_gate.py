"""The gate, from the client's side."""

from __future__ import annotations

from typing import Any

import pytest

from wedgehog.fake_llm.reply import Failure, Reply, Text


@pytest.mark.parametrize("answer", [Reply((Text("Hello there."),)), Failure(429)])
async def test_nothing_is_sent_before_the_gate_opens(
    open_llm: Any, open_wire: Any, recorder: Any, provider: Any, answer: Any
) -> None:
    """A reply and a refusal alike wait whole before their first byte."""
    held = recorder.hold(-1)
    wire = await open_wire(await open_llm(answer))
    await wire.ask(provider.path, provider.request(), provider.headers)
    await recorder.until(lambda: bool(recorder.points))
    assert await wire.silent()
    held.set()
    assert (await wire.reply()).status in {200, 429}


@pytest.mark.parametrize("at", [0, 1, 57, 300])
async def test_a_stop_lets_exactly_its_bytes_through(
    open_llm: Any, open_wire: Any, recorder: Any, provider: Any, at: int
) -> None:
    """At a stop all bytes before it have arrived, none after it; then the reply continues without a loss."""
    recorder.plan = lambda point: [at] if point.at == -1 else []
    held = recorder.hold(at)
    wire = await open_wire(await open_llm(Reply((Text("Hello there, how are you?"),))))
    await wire.ask(provider.path, provider.request(stream=True), provider.headers)
    await recorder.until(lambda: len(recorder.points) == 2)
    head = recorder.points[0].head
    first = await wire.exactly(head + at)
    assert await wire.silent()
    held.set()
    rest = await wire.exactly(recorder.points[0].body - at)
    assert (first + rest).endswith(b"0\r\n\r\n")
    assert [point.at for point in recorder.points] == [-1, at]


async def test_a_stop_behind_the_last_byte_keeps_the_reply_open(
    open_llm: Any, open_wire: Any, recorder: Any, provider: Any
) -> None:
    """A stop at the body's length is met when everything has been written: the reply has not ended yet."""
    recorder.plan = lambda point: [point.body] if point.at == -1 else []
    wire = await open_wire(await open_llm())
    await wire.ask(provider.path, provider.request(), provider.headers)
    reply = await wire.reply()
    await recorder.until(lambda: len(recorder.points) == 2)
    assert recorder.points[1].at == len(reply.raw_body)


async def test_the_gate_is_asked_before_each_paced_piece(
    open_llm: Any, ask: Any, recorder: Any, clock: Any, provider: Any
) -> None:
    """A paced text sleeps and asks before each of its pieces, at the piece's first byte."""
    received = await ask(await open_llm(Reply((Text("12345678", pace_ms=200),))), provider, stream=True)
    events = [data for _, data in received.events]
    pieces = [number for number, data in enumerate(events) if isinstance(data, dict) and provider.delta(data)]
    assert clock.slept == [0.2, 0.2]
    assert [point.at for point in recorder.points] == [-1, *((0, *received.ends)[number] for number in pieces)]


async def test_the_gate_of_a_late_reply_is_asked_before_its_delay_and_after_it(
    open_llm: Any, open_wire: Any, recorder: Any, clock: Any, provider: Any
) -> None:
    """While `delay_s` passes nothing is sent."""
    clock.held = True
    held = recorder.hold(-2)
    recorder.plan = lambda point: [5] if point.at == -2 else []
    wire = await open_wire(await open_llm(Reply((Text("Hi"),), delay_s=7)))
    await wire.ask(provider.path, provider.request(), provider.headers)
    await recorder.until(lambda: bool(recorder.points))
    assert (clock.slept, [point.at for point in recorder.points]) == ([], [-2])
    held.set()
    assert await wire.silent()
    assert (clock.slept, [point.at for point in recorder.points]) == ([7], [-2])
    clock.ring()
    assert (await wire.reply()).status == 200
    assert [point.at for point in recorder.points] == [-2, -1, 5], "and its stops hold"
