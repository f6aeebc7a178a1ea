"""Streams in the form of gateways: calls in turns, wrong numbers, an error in a chunk."""

import json
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from tests.fake_llm.conftest import OpenAI, Responses
from wedgehog.fake_llm.edit_kinds import Edit, ErrorEvent, Misnumbered, OtherForm
from wedgehog.fake_llm.observer import WriteStarted
from wedgehog.fake_llm.reply import Reply, Text, ToolCall

BUILD, TEST = ToolCall("shell", {"command": "echo built"}), ToolCall("shell", {"command": "echo tested, all of it"})
BOTH = Reply((Text("I do both."), BUILD, TEST))


def edited(change: Edit, reply: Reply = BOTH) -> Reply:
    return Reply(reply.items, edits=(change,))


def parts_of(received: Any) -> list[dict[str, Any]]:
    """The parts of tool calls in the chunks of a stream."""
    chunks = [data for _, data in received.events if isinstance(data, dict)]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    return [part for delta in deltas for part in delta.get("tool_calls", ())]


async def test_calls_come_in_turns_and_each_part_has_the_index_of_its_call(open_llm: Any, ask: Any) -> None:
    """A reader of indexes puts both together; the calls end in their order, and the chunks are as many."""
    whole = await ask(await open_llm(BOTH), OpenAI, stream=True)
    received = await ask(await open_llm(edited(OtherForm("turns"))), OpenAI, stream=True)
    parts, texts = parts_of(received), defaultdict(str)
    for part in parts:
        texts[part["index"]] += part["function"]["arguments"]
    assert [json.loads(texts[index])["command"] for index in (0, 1)] == ["echo built", "echo tested, all of it"]
    assert [part["index"] for part in parts][:4] == [0, 1, 0, 1]
    assert [part["index"] for part in parts][-2:] == [0, 1]
    assert len(received.events) == len(whole.events)


@pytest.mark.parametrize("form", [OtherForm("turns"), Misnumbered("ids")])
async def test_a_stream_without_the_form_stays_as_it_is(open_llm: Any, ask: Any, recorder: Any, form: Edit) -> None:
    """One call has no turns, and chunks of chat completions no ids of items."""
    await ask(await open_llm(edited(form, Reply((BUILD,)))), OpenAI, stream=True)
    assert recorder.all(WriteStarted)[-1].edited == ()


async def test_calls_with_one_index_have_their_own_ids(open_llm: Any, ask: Any, recorder: Any) -> None:
    """A reader of the id at the first part of each tells them apart."""
    received = await ask(await open_llm(edited(Misnumbered("index"))), OpenAI, stream=True)
    parts = parts_of(received)
    assert {part["index"] for part in parts} == {0}
    assert len({part["id"] for part in parts if "id" in part}) == 2
    assert recorder.all(WriteStarted)[-1].edited == ("misnumbered",)


async def test_each_event_of_an_item_has_another_id_but_the_last(open_llm: Any, ask: Any) -> None:
    """The call keeps its `call_id`, and its place; the whole response has the ids of the last events."""
    received = await ask(await open_llm(edited(Misnumbered("ids"))), Responses, stream=True)
    told = [data for _, data in received.events if data.get("output_index") == 1]
    ids = [data["item_id"] if "item_id" in data else data["item"]["id"] for data in told]
    calls = {data["item"]["call_id"] for data in told if "item" in data}
    assert len(ids) == len(set(ids)) and all(id_.startswith("fc_") for id_ in ids)
    assert len(calls) == 1
    assert received.events[-1][1]["response"]["output"][1]["id"] == ids[-1]


async def test_each_reply_numbers_its_calls_again(open_llm: Any, ask: Any) -> None:
    """The wire's own prefix stays, and so does what the commands print."""
    calls = (replace(BUILD, id="wabcd1x2x1a1"), ToolCall("shell", {"command": "echo wabcd1x2x2"}, id="wabcd1x2x2a1"))
    received = await ask(await open_llm(edited(Misnumbered("again"), Reply(calls))), OpenAI, stream=True)
    parts = parts_of(received)
    assert [part["id"] for part in parts if "id" in part] == ["call_0", "call_1"]
    assert "wabcd1x2x2" in "".join(part["function"]["arguments"] for part in parts)


async def test_a_gateways_error_ends_its_choice(open_llm: Any, ask: Any) -> None:
    """It stands beside the choice, in a chunk like the others, and it is the last event."""
    change = ErrorEvent(4, 502, "Provider disconnected", "gateway")
    received = await ask(await open_llm(edited(change)), OpenAI, stream=True)
    last = received.events[-1][1]
    assert (received.status, len(received.events)) == (200, 5)
    assert last["error"] == {"code": 502, "message": "Provider disconnected"}
    assert [choice["finish_reason"] for choice in last["choices"]] == ["error"]
    assert last["id"] == received.events[0][1]["id"]


async def test_another_wire_has_only_its_own_error(open_llm: Any, ask: Any) -> None:
    """The form is one of chat completions."""
    change = ErrorEvent(4, 502, "Provider disconnected", "gateway")
    received = await ask(await open_llm(edited(change)), Responses, stream=True)
    assert received.events[-1][1]["type"] == "error"
