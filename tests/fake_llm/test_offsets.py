"""Every offset that a fact or a point tells is where the bytes really are."""

from __future__ import annotations

from typing import Any

from wedgehog.fake_llm.observer import WriteEnded
from wedgehog.fake_llm.reply import Failure, Reply, Text, Thinking, ToolCall, Usage

RICH = Reply(
    (
        Thinking("Let me think about it."),
        Text("Grüße 👩‍🚀, here it comes."),
        ToolCall("shell", {"command": "ls"}),
        ToolCall("shell", {"command": "pwd"}),
    )
)


async def test_frames_end_where_the_facts_say(open_llm: Any, ask: Any, recorder: Any, provider: Any) -> None:
    """The marks of a streamed reply are the ends of its HTTP chunks, and head and body add up."""
    received = await ask(await open_llm(RICH), provider, stream=True)
    (ended,) = await recorder.wait_for(WriteEnded)
    assert tuple(mark.end for mark in ended.frames) == received.ends
    assert (ended.head_bytes, ended.body_bytes) == (len(received.head), len(received.raw_body))
    (point,) = recorder.points
    assert (point.head, point.frame_ends) == (len(received.head), received.ends)
    assert (point.body, point.at, point.stream) == (len(received.raw_body), -1, True)


async def test_a_whole_reply_has_one_mark(open_llm: Any, ask: Any, recorder: Any, provider: Any) -> None:
    """A reply that is not streamed delivers everything with its last byte, and has no events."""
    received = await ask(await open_llm(RICH), provider)
    (ended,) = await recorder.wait_for(WriteEnded)
    (mark,) = ended.frames
    assert (mark.end, mark.tokens, mark.completes) == (len(received.raw_body), ended.output_tokens, True)
    assert (recorder.points[0].frame_ends, recorder.points[0].stream) == ((), False)


async def test_tokens_grow_with_the_frames_up_to_the_bill(
    open_llm: Any, ask: Any, recorder: Any, provider: Any
) -> None:
    """Delivered tokens never decrease from frame to frame, begin above zero and end at the reported usage."""
    await ask(await open_llm(RICH), provider, stream=True)
    (ended,) = await recorder.wait_for(WriteEnded)
    tokens = [mark.tokens for mark in ended.frames]
    assert tokens == sorted(tokens)
    assert tokens[0] < tokens[1] or tokens[0] == 0
    assert tokens[-1] == ended.output_tokens > 0
    assert [mark.completes for mark in ended.frames].count(True) == 3


async def test_the_first_piece_delivers_a_token(open_llm: Any, ask: Any, recorder: Any, provider: Any) -> None:
    """A token that has begun counts as delivered, also where the script bills few for much text."""
    llm = await open_llm(Reply((Text("a word " * 40),), Usage(output_tokens=2)))
    await ask(llm, provider, stream=True)
    (ended,) = await recorder.wait_for(WriteEnded)
    delivered = [mark.tokens for mark in ended.frames]
    assert (delivered[4], delivered[-1]) == (1, 2)


async def test_each_reply_knows_what_its_connection_carried(
    open_llm: Any, open_wire: Any, recorder: Any, provider: Any
) -> None:
    """`carried` counts all bytes of earlier replies on a kept-alive connection, and starts anew on another."""
    llm = await open_llm()
    wire = await open_wire(llm)
    sizes = [0]
    for stream in (True, False, True):
        await wire.ask(provider.path, provider.request(stream=stream), provider.headers)
        reply = await wire.reply()
        sizes.append(sizes[-1] + len(reply.head) + len(reply.raw_body))
    fresh = await open_wire(llm)
    await fresh.ask(provider.path, provider.request(), provider.headers)
    await fresh.reply()
    assert [point.carried for point in recorder.points] == [*sizes[:3], 0]
    assert {point.conn.peer for point in recorder.points} == {wire.address, fresh.address}


async def test_the_go_ahead_for_a_body_counts_as_carried(
    open_llm: Any, open_wire: Any, recorder: Any, provider: Any
) -> None:
    """`Expect: 100-continue` is answered before the body is sent, and its bytes count."""
    wire = await open_wire(await open_llm())
    await wire.ask(provider.path, b"", {**provider.headers, "Expect": "100-continue", "Content-Length": "2"})
    go_ahead = await wire.exactly(25)
    wire.writer.write(b"{}")
    assert go_ahead == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert (await wire.reply()).status == 400
    assert recorder.points[0].carried == len(go_ahead)


async def test_refusals_are_held_and_counted_like_replies(
    open_llm: Any, ask: Any, recorder: Any, provider: Any
) -> None:
    """An error passes the gate before its first byte, and its end is reported."""
    received = await ask(await open_llm(Failure(500)), provider)
    (ended,) = await recorder.wait_for(WriteEnded)
    assert [point.at for point in recorder.points] == [-1]
    assert (ended.head_bytes, ended.body_bytes) == (len(received.head), len(received.raw_body))
    assert (ended.stop, ended.output_tokens, ended.how) == ("", 0, "complete")
