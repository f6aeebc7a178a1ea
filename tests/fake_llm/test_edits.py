"""Reply faults: streams that end early, ping without end, fail in the middle, or are malformed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.fake_llm.conftest import OpenAI, told_error
from wedgehog.fake_llm.edit_kinds import (
    MIDDLE,
    Duplicated,
    EarlyEnd,
    ErrorEvent,
    Malformed,
    NoUsage,
    OpenEnd,
    OtherForm,
    PingsOnly,
    Reordered,
)
from wedgehog.fake_llm.observer import RefusalSent, WriteEnded, WriteStarted
from wedgehog.fake_llm.reply import BALANCE, Failure, Reply, Text, ToolCall

_SILENCE = b'"created_at":"2026-01-02T03:04:05Z","message":{"role":"assistant","content":""},"done":false'
PINGS = {
    "anthropic": b'event: ping\ndata: {"type":"ping"}\n\n',
    "openai-chat": b": ping\n\n",
    "openai-responses": b": ping\n\n",
    "gemini": b"\r\n",
    "ollama": b'{"model":"m",%b}\n' % _SILENCE,
}
WORDS = (Text("Hello, how are you today?"),)


@pytest.mark.parametrize("event", [0, 1, 4])
async def test_an_early_end_is_a_proper_one(open_llm: Any, ask: Any, recorder: Any, provider: Any, event: int) -> None:
    """Exactly `event` events arrive, the body ends as HTTP wants it, and only they were generated."""
    received = await ask(await open_llm(Reply(WORDS, edits=(EarlyEnd(event),))), provider, stream=True)
    (ended,) = await recorder.wait_for(WriteEnded)
    assert len(received.events) == event
    assert received.raw_body.endswith(b"0\r\n\r\n")
    assert ended.how == "complete"
    assert ended.output_tokens == (ended.frames[-1].tokens if event else 0)
    assert recorder.all(WriteStarted)[0].edited == ("early_end",)


async def test_the_middle_is_behind_half_of_the_events(open_llm: Any, ask: Any, provider: Any) -> None:
    """Of n events (n - 1) // 2 arrive, on each wire, so that a call is cut wherever its wire cuts it."""
    words = (ToolCall("shell", {"command": "echo removing build/cache and nothing else"}),)
    whole = await ask(await open_llm(Reply(words)), provider, stream=True)
    half = await ask(await open_llm(Reply(words, edits=(EarlyEnd(MIDDLE),))), provider, stream=True)
    assert len(half.events) == (len(whole.events) - 1) // 2


async def test_an_error_event_comes_inside_the_stream(open_llm: Any, ask: Any, recorder: Any, provider: Any) -> None:
    """After `event` events the provider's error is an event of the 200 stream, and the last one."""
    edits = (ErrorEvent(3, status=529, message="Overloaded"),)
    received = await ask(await open_llm(Reply(WORDS, edits=edits)), provider, stream=True)
    assert (received.status, len(received.events)) == (200, 4)
    name, data = received.events[-1]
    assert told_error(data)[1] == "Overloaded"
    assert name == provider.error_event
    assert recorder.all(WriteStarted)[0].edited == ("error_event",)


async def test_pings_only_never_ends(open_llm: Any, open_wire: Any, recorder: Any, clock: Any, provider: Any) -> None:
    """After `event` events pings come at their pace until the client leaves; nothing else is generated."""
    llm = await open_llm(Reply(WORDS, edits=(PingsOnly(4, every_s=15),)))
    wire = await open_wire(llm)
    await wire.ask(provider.path, provider.request(stream=True), provider.headers)
    await recorder.until(lambda: len(recorder.points) > 5)
    point = recorder.points[0]
    pings = 2 * (b"%x\r\n%b\r\n" % (len(PINGS[provider.wire]), PINGS[provider.wire]))
    raw = await wire.exactly(point.head + point.frame_ends[-1] + len(pings))
    await wire.hang_up()
    (ended,) = await recorder.wait_for(WriteEnded)
    assert set(clock.slept) == {15}
    assert (point.body, len(point.frame_ends)) == (-1, 4)
    assert raw.endswith(pings)
    assert ended.how == "hung_up"
    assert ended.output_tokens == ended.frames[-1].tokens < 7
    assert ended.body_bytes > ended.frames[-1].end


async def test_an_edit_behind_the_last_event_did_not_apply(
    open_llm: Any, ask: Any, recorder: Any, provider: Any
) -> None:
    """A stream that is too short for an edit stays whole, and no edit is reported."""
    whole = await ask(await open_llm(Reply(WORDS)), provider, stream=True)
    edits = (EarlyEnd(len(whole.events)),)
    received = await ask(await open_llm(Reply(WORDS, edits=edits)), provider, stream=True)
    assert received.body == whole.body
    assert recorder.all(WriteStarted)[-1].edited == ()


async def test_a_reply_that_is_not_streamed_is_not_edited(
    open_llm: Any, ask: Any, recorder: Any, provider: Any
) -> None:
    """Edits are for events; a reply in one piece stays as it is, and no edit is reported."""
    received = await ask(await open_llm(Reply(WORDS, edits=(ErrorEvent(1),))), provider)
    assert "how are you today?" in received.body.decode()
    assert recorder.all(WriteStarted)[0].edited == ()


def delivering(provider: Any, received: Any) -> list[Any]:
    """The text that the events of a stream deliver, in the order of arrival."""
    deltas = [provider.delta(data) for _, data in received.events if isinstance(data, dict)]
    return [delta for delta in deltas if delta]


def first_delivery(provider: Any, received: Any) -> int:
    """The number of the first event that delivers text."""
    numbered = enumerate(received.events, start=1)
    return next(number for number, (_, data) in numbered if isinstance(data, dict) and provider.delta(data))


@pytest.fixture
async def whole(open_llm: Any, ask: Any, provider: Any) -> Any:
    """The stream as it is without an edit."""
    return await ask(await open_llm(Reply(WORDS)), provider, stream=True)


@pytest.mark.parametrize("named", [True, False])
async def test_a_duplicated_event_comes_twice(
    open_llm: Any, ask: Any, recorder: Any, provider: Any, whole: Any, named: bool
) -> None:
    """The event named, else the first that delivers: one more, the same to the byte, and not billed again."""
    first = first_delivery(provider, whole)
    received = await ask(await open_llm(Reply(WORDS, edits=(Duplicated(first * named),))), provider, stream=True)
    assert received.events == [*whole.events[:first], *whole.events[first - 1 :]]
    assert recorder.all(WriteStarted)[-1].edited == ("duplicated_event",)
    before, after = await recorder.wait_for(WriteEnded, 2)
    assert before.output_tokens == after.output_tokens


@pytest.mark.parametrize("named", [True, False])
async def test_reordered_events_change_places(
    open_llm: Any, ask: Any, recorder: Any, provider: Any, whole: Any, named: bool
) -> None:
    """Two neighbours are swapped and nothing is lost; the delivered tokens never decrease."""
    first = first_delivery(provider, whole)
    received = await ask(await open_llm(Reply(WORDS, edits=(Reordered(first * named),))), provider, stream=True)
    one, two = whole.events[first - 1 : first + 1]
    assert received.events == [*whole.events[: first - 1], two, one, *whole.events[first + 1 :]]
    assert recorder.all(WriteStarted)[-1].edited == ("reordered_events",)
    before, after = ([mark.tokens for mark in ended.frames] for ended in await recorder.wait_for(WriteEnded, 2))
    assert before == after


async def test_the_last_event_has_nothing_to_change_places_with(
    open_llm: Any, ask: Any, recorder: Any, provider: Any, whole: Any
) -> None:
    """The stream stays whole, and no edit is reported; the same event can be doubled."""
    last = len(whole.events)
    await ask(await open_llm(Reply(WORDS, edits=(Reordered(last), Duplicated(last)))), provider, stream=True)
    assert recorder.all(WriteStarted)[-1].edited == ("duplicated_event",)


async def test_malformed_json_breaks_off_inside_one_event(
    open_llm: Any, ask: Any, recorder: Any, provider: Any, whole: Any
) -> None:
    """The event keeps its frame, its JSON is half of what it was, and the stream goes on to its end."""
    received = await ask(await open_llm(Reply(WORDS, edits=(Malformed(4),))), provider, stream=True)
    between = {"ollama": b"\n", "gemini": b"\r\n\r\n"}.get(provider.wire, b"\n\n")
    blocks, sound = received.body.split(between), whole.body.split(between)
    changed = [number for number, block in enumerate(blocks, start=1) if block != sound[number - 1]]
    assert (changed, len(blocks)) == ([4], len(sound))
    assert sound[3].startswith(blocks[3])
    with pytest.raises(json.JSONDecodeError):
        json.loads(blocks[3].rpartition(b"data: ")[2])
    assert recorder.all(WriteStarted)[-1].edited == ("malformed_json",)


async def test_a_reply_in_one_piece_can_be_malformed_too(open_llm: Any, ask: Any, recorder: Any, provider: Any) -> None:
    """The length that was announced is the length of what is sent."""
    received = await ask(await open_llm(Reply(WORDS, edits=(Malformed(),))), provider)
    with pytest.raises(json.JSONDecodeError):
        json.loads(received.body)
    assert received.status == 200
    assert recorder.all(WriteStarted)[0].edited == ("malformed_json",)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_what_is_malformed_and_has_no_usage_either_is_still_sent(
    open_llm: Any, ask: Any, recorder: Any, provider: Any, stream: bool
) -> None:
    """The second edit finds no JSON to read where the first one has struck."""
    received = await ask(await open_llm(Reply(WORDS, edits=(Malformed(), NoUsage()))), provider, stream=stream)
    assert received.status == 200
    edited = recorder.all(WriteStarted)[0].edited
    assert edited[0] == "malformed_json" and (stream or len(edited) == 1)


@pytest.mark.parametrize("stream", [True, False])
async def test_without_usage_the_reply_is_billed_all_the_same(
    open_llm: Any, ask: Any, recorder: Any, provider: Any, stream: bool
) -> None:
    """No event and no body tells tokens, also where they were asked for; a tool's own argument of that name stays."""
    items = (*WORDS, ToolCall("count", {"usage": {"usage": 1}}))
    asked = {"stream_options": {"include_usage": True}} if provider.wire == "openai-chat" else {}
    llm = await open_llm(Reply(items, edits=(NoUsage(),)))
    received = await ask(llm, provider, stream=stream, **(asked if stream else {}))
    text = received.body.decode()
    assert '_tokens":' not in text.replace("max_output_tokens", "")
    if not stream:
        assert re.search(r"usage\W+usage\W+1", text)
    assert recorder.all(WriteStarted)[0].edited == ("no_usage",)
    assert recorder.all(WriteStarted)[0].input_tokens > 0
    assert (await recorder.wait_for(WriteEnded))[0].output_tokens > 0


async def test_a_page_stands_where_json_was_expected(open_llm: Any, ask: Any, recorder: Any, provider: Any) -> None:
    """A gateway's page has any status, says that it is HTML, and is neither accepted nor billed."""
    for status in (200, 502):
        received = await ask(await open_llm(Failure(status, html=True)), provider, stream=True)
        assert (received.status, received.headers["content-type"]) == (status, "text/html")
        assert received.body.startswith(b"<!DOCTYPE html>")
    assert [fact.status for fact in recorder.all(RefusalSent)] == [200, 502]
    assert recorder.all(WriteStarted) == []


async def test_an_error_may_look_like_a_success(open_llm: Any, ask: Any, recorder: Any, provider: Any) -> None:
    """The provider's own words in JSON under status 200, also where a stream was asked for; recorded as refused."""
    received = await ask(await open_llm(Failure(429, as_success=True)), provider, stream=True)
    assert (received.status, received.headers["content-type"].split(";")[0]) == (200, "application/json")
    assert received.error == (await ask(await open_llm(Failure(429)), provider, stream=True)).error
    assert [fact.status for fact in recorder.all(RefusalSent)] == [429, 429]


async def test_an_error_may_have_the_form_of_a_local_server_or_a_gateway(
    open_llm: Any, ask: Any, recorder: Any, provider: Any
) -> None:
    """The status stays, and the provider's words."""
    own = await ask(await open_llm(Failure(404, message="no such model")), provider)
    bodies = {
        "text": b"no such model\n",
        "string": b'{"error":"no such model"}',
        "detail": b'{"detail":"no such model"}',
    }
    for form, body in {**bodies, "list": None}.items():
        received = await ask(await open_llm(Failure(404, message="no such model", form=form)), provider)
        assert received.status == 404
        assert received.headers["content-type"].split(";")[0] == (
            "text/plain" if form == "text" else "application/json"
        )
        if body is not None:
            assert received.body == body
        else:
            assert len(json.loads(received.body)) == 1 and received.body[1:2] == own.body[:1]
    assert {fact.message for fact in recorder.all(RefusalSent)} == {"no such model"}


async def test_a_used_up_balance_is_refused_in_each_providers_words(
    open_llm: Any, ask: Any, recorder: Any, provider: Any
) -> None:
    """The script has one kind; status, type and message are the provider's."""
    received = await ask(await open_llm(Failure(402, kind=BALANCE)), provider)
    words = {
        "anthropic": (400, "invalid_request_error", "Your credit balance is too low"),
        "gemini": (429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted"),
        "ollama": (402, "", "you have used up your prepaid balance"),
    }
    status, kind, message = words.get(provider.wire, (429, "insufficient_quota", "You exceeded your current quota"))
    assert received.status == status
    assert received.error[0] == kind
    assert received.error[1].startswith(message)
    assert recorder.all(RefusalSent)[0].scripted


def _words(provider: Any, received: Any) -> str:
    return "".join(delivering(provider, received))


async def test_other_lines_say_the_same_to_a_reader_that_follows_the_standard(
    open_llm: Any, ask: Any, recorder: Any, provider: Any, whole: Any
) -> None:
    """A comment, CR LF, an id and no space behind a colon; a wire with one form keeps it, and no edit is reported."""
    received = await ask(await open_llm(Reply(WORDS, edits=(OtherForm("lines"),))), provider, stream=True)
    if provider.wire in ("gemini", "ollama"):
        assert received.body == whole.body and recorder.all(WriteStarted)[-1].edited == ()
        return
    assert received.body.startswith(b": PROCESSING\r\n\r\nid:1\r\n")
    assert b": " not in received.body.removeprefix(b": ") and b"\n" not in received.body.replace(b"\r\n", b"")
    told = [line[5:] for line in received.body.split(b"\r\n") if line.startswith(b"data:")]
    assert told == [line[6:] for line in whole.body.split(b"\n") if line.startswith(b"data: ")]
    assert recorder.all(WriteStarted)[-1].edited == ("other_form",)


async def test_a_stream_may_end_with_the_text_of_its_last_event(
    open_llm: Any, ask: Any, recorder: Any, provider: Any, whole: Any
) -> None:
    """No empty line is behind it, and no `[DONE]`."""
    received = await ask(await open_llm(Reply(WORDS, edits=(OpenEnd(),))), provider, stream=True)
    if provider.wire in ("gemini", "ollama"):
        assert received.body == whole.body and recorder.all(WriteStarted)[-1].edited == ()
        return
    assert received.body == whole.body.removesuffix(b"data: [DONE]\n\n").rstrip(b"\n")
    assert received.body.endswith(b"}") and recorder.all(WriteStarted)[-1].edited == ("open_end",)


async def test_other_fields_and_events_say_the_same(open_llm: Any, ask: Any, provider: Any, whole: Any) -> None:
    """Who looks only at what it knows reads the same words."""
    received = await ask(await open_llm(Reply(WORDS, edits=(OtherForm("fields"),))), provider, stream=True)
    assert _words(provider, received) == _words(provider, whole)
    added = {"anthropic": 2, "openai-chat": 1, "openai-responses": 2}.get(provider.wire, 0)
    assert len(received.events) == len(whole.events) + added
    if provider.wire == "openai-chat":
        assert received.events[0][1]["choices"] == []


async def test_a_tool_call_in_chunks_of_another_form_is_the_same_call(open_llm: Any, ask: Any) -> None:
    """Its name and its id come once; later chunks have them empty or null."""
    call = ToolCall("shell", {"command": "echo looking"})
    received = await ask(await open_llm(Reply((call,), edits=(OtherForm("fields"),))), OpenAI, stream=True)
    deltas = [data["choices"][0]["delta"] for _, data in received.events if isinstance(data, dict) and data["choices"]]
    parts = [part for delta in deltas for part in delta.get("tool_calls", ())]
    assert [bool(part["id"]) for part in parts] == [True, *[False] * (len(parts) - 1)] and len(parts) > 1
    assert {part["function"]["name"] for part in parts} == {"shell", None}
    assert json.loads("".join(part["function"]["arguments"] for part in parts)) == {"command": "echo looking"}
