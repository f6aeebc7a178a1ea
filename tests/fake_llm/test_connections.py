"""Connections: kept alive, closed when asked, hung up by the client, dropped with the server."""

from __future__ import annotations

import asyncio
from typing import Any

from wedgehog.fake_llm.edit_kinds import PingsOnly
from wedgehog.fake_llm.observer import ConnectionClosed, ConnectionOpened, WriteEnded, WriteStarted
from wedgehog.fake_llm.reply import Reply, Text


async def test_a_client_that_hangs_up_while_held_ends_the_reply(
    open_llm: Any, open_wire: Any, recorder: Any, provider: Any
) -> None:
    """An unpaced reply was generated whole when its client leaves before the first byte."""
    recorder.hold(-1)
    wire = await open_wire(await open_llm())
    await wire.ask(provider.path, provider.request(stream=True), provider.headers)
    await recorder.until(lambda: bool(recorder.points))
    await wire.hang_up()
    (ended,) = await recorder.wait_for(WriteEnded)
    assert (ended.how, ended.head_bytes, ended.body_bytes) == ("hung_up", 0, 0)
    assert ended.output_tokens == ended.frames[-1].tokens > 0


async def test_a_hang_up_in_a_paced_reply_bills_what_was_written(
    open_llm: Any, open_wire: Any, recorder: Any, clock: Any, provider: Any
) -> None:
    """A paced reply has generated only the tokens up to the hang-up."""
    clock.held = True
    wire = await open_wire(await open_llm(Reply((Text("abcd" * 10, pace_ms=100),))))
    await wire.ask(provider.path, provider.request(stream=True), provider.headers)
    for _ in range(3):
        clock.ring()
    await recorder.until(lambda: len(recorder.points) == 4)
    await wire.hang_up()
    (ended,) = await recorder.wait_for(WriteEnded)
    assert (ended.how, ended.output_tokens, ended.frames[-1].tokens) == ("hung_up", 3, 10)
    assert ended.body_bytes in {mark.end for mark in ended.frames}


async def test_a_hang_up_in_a_delay_is_noticed(
    open_llm: Any, open_wire: Any, recorder: Any, clock: Any, provider: Any
) -> None:
    """The request was accepted, so a client that does not wait for the first byte is still billed."""
    clock.held = True
    wire = await open_wire(await open_llm(Reply((Text("Hi"),), delay_s=60)))
    await wire.ask(provider.path, provider.request(), provider.headers)
    await recorder.wait_for(WriteStarted)
    await wire.hang_up()
    (ended,) = await recorder.wait_for(WriteEnded)
    assert (ended.how, ended.output_tokens) == ("hung_up", 1)


async def test_a_connection_that_ends_after_its_reply_is_no_hang_up(
    open_llm: Any, ask: Any, recorder: Any, provider: Any
) -> None:
    """A reply that was written whole is complete; the close is a fact of the connection alone."""
    await ask(await open_llm(), provider)
    (closed,) = await recorder.wait_for(ConnectionClosed)
    (ended,) = recorder.all(WriteEnded)
    assert ended.how == "complete"
    assert closed.conn == recorder.all(ConnectionOpened)[0].conn


async def test_a_connection_is_kept_alive(open_llm: Any, open_wire: Any, recorder: Any, provider: Any) -> None:
    """Replies, streams and refusals leave the connection usable."""
    wire = await open_wire(await open_llm())
    documents: list[dict[str, Any]] = [provider.request(stream=True), {}, provider.request()]
    for document in documents:
        await wire.ask(provider.path, document, provider.headers)
        assert (await wire.reply()).headers["connection"] == "keep-alive"
    assert len(recorder.all(ConnectionOpened)) == 1


async def test_a_reply_can_ask_for_the_connections_end(
    open_llm: Any, open_wire: Any, recorder: Any, provider: Any
) -> None:
    """`close_after` makes that call's reply say `Connection: close`, and closes after its last byte."""
    llm = await open_llm()
    llm.close_after = lambda call: call == 2
    wire = await open_wire(llm)
    replies = []
    for _ in range(2):
        await wire.ask(provider.path, provider.request(stream=True), provider.headers)
        replies.append(await wire.reply())
    assert await wire.rest() == b""
    assert [reply.headers["connection"] for reply in replies] == ["keep-alive", "close"]
    assert [ended.how for ended in recorder.all(WriteEnded)] == ["complete", "complete"]


async def test_a_client_that_wants_to_close_is_obeyed(open_llm: Any, open_wire: Any, provider: Any) -> None:
    """`Connection: close` in a request is answered by the same, and by a close."""
    wire = await open_wire(await open_llm())
    await wire.ask(provider.path, provider.request(), {**provider.headers, "Connection": "close"})
    assert (await wire.reply()).headers["connection"] == "close"
    assert await wire.rest() == b""


async def test_a_client_that_wants_to_close_may_be_left_to_do_it(
    open_llm: Any, open_wire: Any, recorder: Any, provider: Any
) -> None:
    """With `waits_for_close` the reply says `Connection: close`, and the client closes."""
    llm = await open_llm()
    llm.waits_for_close = True
    wire = await open_wire(llm)
    await wire.ask(provider.path, provider.request(), {**provider.headers, "Connection": "close"})
    assert (await wire.reply()).headers["connection"] == "close"
    wire.writer.close()
    (closed,) = await recorder.wait_for(ConnectionClosed)
    assert not closed.by_us


async def test_what_only_a_close_can_end_is_closed_by_the_fake_all_the_same(
    open_llm: Any, open_wire: Any, recorder: Any, provider: Any
) -> None:
    """With `waits_for_close`: a body without a length, a reply of `close_after`, a connection that lost its framing."""
    llm = await open_llm()
    llm.waits_for_close = True
    llm.close_after = lambda call: call == 2
    close, broken = {"Connection": "close"}, {"Content-Encoding": "gzip"}
    for version, document, more in (
        ("1.0", provider.request(stream=True), close),
        ("1.1", provider.request(), close),
        ("1.1", b"no gzip at all", broken),
    ):
        wire = await open_wire(llm)
        await wire.ask(provider.path, document, {**provider.headers, **more}, version=version)
        assert await wire.rest()
    closed = await recorder.wait_for(ConnectionClosed, 3)
    assert [fact.by_us for fact in closed] == [True] * 3


async def test_which_side_closed_is_told(open_llm: Any, open_wire: Any, recorder: Any, provider: Any) -> None:
    """A connection that the fake ends after its reply was not hung up by the client."""
    wire = await open_wire(await open_llm())
    await wire.ask(provider.path, provider.request(), {**provider.headers, "Connection": "close"})
    await wire.rest()
    (closed,) = await recorder.wait_for(ConnectionClosed)
    assert closed.by_us


async def test_an_http_1_0_client_gets_no_chunks(open_llm: Any, open_wire: Any, recorder: Any, provider: Any) -> None:
    """For HTTP/1.0 the end of the connection ends the stream, and the marks are right."""
    wire = await open_wire(await open_llm())
    await wire.ask(provider.path, provider.request(stream=True), provider.headers, version="1.0")
    head, body = (await wire.rest()).split(b"\r\n\r\n", 1)
    (ended,) = recorder.all(WriteEnded)
    assert b"chunked" not in head
    assert len(body) == ended.body_bytes == ended.frames[-1].end


async def test_closing_the_server_drops_held_replies_and_leaves_no_task(
    open_wire: Any, open_llm: Any, stack: Any, recorder: Any, provider: Any
) -> None:
    """A held reply, an endless one and an idle connection all end with the server, at once."""
    before = asyncio.all_tasks()
    llm = await open_llm(Reply((Text("Hello"),), edits=(PingsOnly(1, every_s=1),)))
    held, endless, idle = await open_wire(llm), await open_wire(llm), await open_wire(llm)
    recorder.closed[-1] = asyncio.Event()
    await held.ask(provider.path, provider.request(), provider.headers)
    await recorder.until(lambda: len(recorder.points) == 1)
    del recorder.closed[-1]
    await endless.ask(provider.path, provider.request(stream=True), provider.headers)
    await recorder.until(lambda: len(recorder.points) > 5)
    await idle.ask(provider.path, {}, {})
    await idle.reply()
    async with asyncio.timeout(5):
        await llm.__aexit__(None, None, None)
    assert asyncio.all_tasks() == before
    assert len(recorder.all(ConnectionClosed)) == 3
    assert [ended.how for ended in recorder.all(WriteEnded)] == ["complete", "hung_up", "hung_up"]


async def test_a_gate_that_fails_drops_the_connection(
    open_llm: Any, open_wire: Any, recorder: Any, provider: Any
) -> None:
    """A failing observer never lets foreign bytes into a reply: what was written ends in a close."""

    def fail(point: Any) -> list[int]:
        if point.at == 40:
            raise RuntimeError("no more")
        return [40]

    recorder.plan = fail
    wire = await open_wire(await open_llm())
    await wire.ask(provider.path, provider.request(), provider.headers)
    sent = await wire.rest()
    assert len(sent) == recorder.points[0].head + 40
    assert recorder.all(WriteEnded)[0].how == "hung_up"
