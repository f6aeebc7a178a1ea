"""Replies that were compiled before: faster, and not a byte different."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from wedgehog.fake_llm.ids import made_up, recorded_ids
from wedgehog.fake_llm.observer import WriteEnded
from wedgehog.fake_llm.reply import Reply, Text, Thinking, ToolCall
from wedgehog.fake_llm.script.script_file import WhenScript
from wedgehog.fake_llm.wire_reply import chunked

RICH = Reply((Thinking("Hm."), Text("Grüße 👩‍🚀 there."), ToolCall("shell", {"command": "ls"}), ToolCall("shell")))


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reply_is_the_same_whether_it_was_compiled_before_or_not(
    open_llm: Any, ask: Any, recorder: Any, provider: Any, stream: bool
) -> None:
    """The second of two equal requests gets the very bytes that it gets where the first one was another."""
    warm, cold = await open_llm(RICH), await open_llm(RICH)
    first = await ask(warm, provider, stream=stream)
    second = await ask(warm, provider, stream=stream)
    await ask(cold, provider, text="Something else, and longer", model="other", stream=stream)
    fresh = await ask(cold, provider, stream=stream)
    assert (second.head, second.raw_body) == (fresh.head, fresh.raw_body)
    assert len(first.raw_body) == len(second.raw_body)
    ends = [ended.frames for ended in recorder.all(WriteEnded)]
    assert ends[1] == ends[3]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("text", ["Grüße", "At {:%Y-%m-%dT%H:%M:%S} it was {:.0f}."])
async def test_a_reply_has_the_time_of_its_request(
    open_llm: Any, ask: Any, clock: Any, provider: Any, stream: bool, text: str
) -> None:
    """A day later it has the very bytes that a new server sends then, and a time in its text stays as it is."""
    reply = Reply((Text(text.format(clock.wall(), clock.wall().timestamp())), ToolCall("shell")))
    warm = await open_llm(reply)
    first = await ask(warm, provider, stream=stream)
    clock.now += timedelta(days=1, seconds=7)
    second = await ask(warm, provider, stream=stream)
    cold = await open_llm(reply)
    await ask(cold, provider, text="Something else, and longer", model="other", stream=stream)
    fresh = await ask(cold, provider, stream=stream)
    assert (second.head, second.raw_body) == (fresh.head, fresh.raw_body)
    assert first.head != second.head


async def test_a_second_later_nothing_is_compiled_again(
    open_llm: Any, ask: Any, clock: Any, openai: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the time and the ids are new."""
    compiled: list[object] = []
    monkeypatch.setattr(
        "wedgehog.fake_llm.respond.chunked", lambda *it, **more: compiled.append(it) or chunked(*it, **more)
    )
    llm = await open_llm(RICH)
    for _ in range(3):
        await ask(llm, openai, stream=True)
        clock.now += timedelta(seconds=1)
    assert len(compiled) == 1


async def test_no_id_is_given_twice(open_llm: Any, ask: Any, anthropic: Any) -> None:
    """What was compiled before gets ids of its own, in each place where the old one stood."""
    llm = await open_llm(RICH)
    replies = [(await ask(llm, anthropic)).json for _ in range(3)]
    ids = [(told["id"], *(block["id"] for block in told["content"] if "id" in block)) for told in replies]
    assert len({id_ for told in ids for id_ in told}) == 9


async def test_what_a_request_asks_for_changes_its_reply(open_llm: Any, ask: Any, openai: Any) -> None:
    """Options beside the messages are part of what is looked up, and so is the bill."""
    llm = await open_llm(RICH)
    plain = await ask(llm, openai, stream=True)
    counted = await ask(llm, openai, stream=True, stream_options={"include_usage": True})
    longer = await ask(llm, openai, text="x" * 400, stream=True, stream_options={"include_usage": True})
    usages = [[data["usage"] for _, data in told.events[:-1] if data.get("usage")] for told in (plain, counted, longer)]
    assert [len(told) for told in usages] == [0, 1, 1]
    assert usages[2][0]["prompt_tokens"] > usages[1][0]["prompt_tokens"]


async def test_a_held_reply_keeps_none_of_its_bytes(open_llm: Any, open_wire: Any, recorder: Any, openai: Any) -> None:
    """Two replies held in the middle go on with their own ids, though they share what was compiled."""
    recorder.plan = lambda point: [100] if point.at == -1 else []
    wires = [await open_wire(llm) for llm in [await open_llm(RICH)] for _ in range(2)]
    held = recorder.hold(100)
    for wire in wires:
        await wire.ask(openai.path, openai.request(stream=True), openai.headers)
    await recorder.until(lambda: sum(point.at == 100 for point in recorder.points) == 2)
    held.set()
    first, second = [await wire.reply() for wire in wires]
    assert {data["id"] for _, data in first.events[:-1]}.isdisjoint(data["id"] for _, data in second.events[:-1])


async def test_a_reply_that_is_kept_is_kept_under_its_own_id(open_llm: Any, ask: Any, responses: Any) -> None:
    """Each of two equal stored replies is found; with `store: false` neither is."""
    llm = await open_llm(RICH)
    kept = [(await ask(llm, responses)).json["id"] for _ in range(3)]
    dropped = [(await ask(llm, responses, store=False)).json["id"] for _ in range(3)]
    found = [await ask(llm, responses, method="GET", path=f"{responses.path}/{id_}") for id_ in (*kept, *dropped)]
    assert [one.status for one in found] == [200] * 3 + [404] * 3
    assert [one.json["id"] for one in found[:3]] == kept
    assert len({*kept, *dropped}) == 6


def test_a_line_of_a_script_says_one_value() -> None:
    """What is compiled for it is found again because it is the very same."""
    script = WhenScript.of({"replies": [{"reply": {"text": "Hi"}}]})
    (line,) = script.lines
    assert line.answer() is line.answer()


def test_generated_ids_are_recorded_with_their_parts() -> None:
    """Only meanwhile, and in their order."""
    with recorded_ids() as ids:
        one = made_up("tool", 7, 0, length=12)
    made_up("tool", 8)
    assert ids == [(("tool", 7, 0), 12, False, one)]
    assert len(one) == 12
