"""Reply faults: streams that end early, ping for ever, or fail in the middle."""

from __future__ import annotations

from typing import Any

import pytest

from wedgehog.fake_llm.observer import ReplyEnded, ReplyStarted
from wedgehog.fake_llm.reply import EarlyEnd, ErrorEvent, PingsOnly, Reply, Text

WORDS = (Text("Hello, how are you today?"),)


@pytest.mark.parametrize("event", [0, 1, 4])
async def test_an_early_end_is_a_proper_one(open_llm: Any, ask: Any, recorder: Any, provider: Any, event: int) -> None:
    """Exactly `event` events arrive, the body ends as HTTP wants it, and only they were generated."""
    received = await ask(await open_llm(Reply(WORDS, edits=(EarlyEnd(event),))), provider, stream=True)
    (ended,) = await recorder.wait_for(ReplyEnded)
    assert len(received.events) == event
    assert received.raw_body.endswith(b"0\r\n\r\n")
    assert ended.how == "complete"
    assert ended.output_tokens == (ended.frames[-1].tokens if event else 0)
    assert recorder.all(ReplyStarted)[0].edited == ("early_end",)


async def test_an_error_event_comes_inside_the_stream(open_llm: Any, ask: Any, recorder: Any, provider: Any) -> None:
    """After `event` events the provider's error is an event of the 200 stream, and the last one."""
    edits = (ErrorEvent(3, status=529, message="Overloaded"),)
    received = await ask(await open_llm(Reply(WORDS, edits=edits)), provider, stream=True)
    assert (received.status, len(received.events)) == (200, 4)
    name, data = received.events[-1]
    assert data["error"]["message"] == "Overloaded"
    assert name == ("error" if provider.wire == "anthropic" else "")
    assert recorder.all(ReplyStarted)[0].edited == ("error_event",)


async def test_pings_only_never_ends(open_llm: Any, open_wire: Any, recorder: Any, clock: Any, provider: Any) -> None:
    """After `event` events pings come at their pace until the client leaves; nothing else is generated."""
    llm = await open_llm(Reply(WORDS, edits=(PingsOnly(4, every_s=15),)))
    wire = await open_wire(llm)
    await wire.ask(provider.path, provider.request(stream=True), provider.headers)
    await recorder.until(lambda: len(recorder.points) > 5)
    point = recorder.points[0]
    raw = await wire.exactly(point.head + point.frame_ends[-1] + 60)
    await wire.hang_up()
    (ended,) = await recorder.wait_for(ReplyEnded)
    assert set(clock.slept) == {15}
    assert (point.body, len(point.frame_ends)) == (-1, 4)
    assert raw[-60:].count(b"ping") >= 2
    assert ended.how == "hung_up"
    assert ended.output_tokens == ended.frames[-1].tokens < 7
    assert ended.body_bytes > ended.frames[-1].end


async def test_an_edit_behind_the_last_event_did_not_apply(
    open_llm: Any, ask: Any, recorder: Any, provider: Any
) -> None:
    """A stream that is too short for an edit stays whole, and says that nothing was edited."""
    whole = await ask(await open_llm(Reply(WORDS)), provider, stream=True)
    edits = (EarlyEnd(len(whole.events)),)
    received = await ask(await open_llm(Reply(WORDS, edits=edits)), provider, stream=True)
    assert received.body == whole.body
    assert recorder.all(ReplyStarted)[-1].edited == ()


async def test_a_reply_that_is_not_streamed_is_not_edited(
    open_llm: Any, ask: Any, recorder: Any, provider: Any
) -> None:
    """Edits are about events; a reply in one piece stays as it is, and says so."""
    received = await ask(await open_llm(Reply(WORDS, edits=(ErrorEvent(1),))), provider)
    assert "how are you today?" in received.body.decode()
    assert recorder.all(ReplyStarted)[0].edited == ()
