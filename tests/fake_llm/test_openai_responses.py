"""The Responses API: what is said, in its bytes, and what it keeps."""

from __future__ import annotations

from typing import Any

import pytest

from wedgehog.fake_llm.edit_kinds import ErrorEvent
from wedgehog.fake_llm.observer import RefusalSent, RequestSeen
from wedgehog.fake_llm.reply import Reply, Text, Thinking, ToolCall, Usage

RICH = Reply((Thinking("Hm hm."), Text("Let me look."), ToolCall("shell", {"command": "ls"}, id="1x2x1")))
USER = {"role": "user", "content": "go"}
TOOL = {"type": "function", "name": "shell", "description": "runs", "parameters": {"type": "object", "properties": {}}}


def calling(*ids: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "function_call", "call_id": id_, "name": "shell", "arguments": "{}", **more} for id_ in ids]


def answering(*ids: str) -> list[dict[str, Any]]:
    return [{"type": "function_call_output", "call_id": id_, "output": "ok"} for id_ in ids]


def said(received: Any) -> dict[str, Any]:
    """The response object that a stream ends with."""
    return received.events[-1][1]["response"]  # type: ignore[no-any-return]


async def test_a_response_holds_reasoning_text_and_calls(open_llm: Any, ask: Any, responses: Any) -> None:
    """Each item has an id of its kind; reasoning is there and tells nothing; the request is echoed."""
    received = await ask(await open_llm(RICH), responses, tools=[TOOL], temperature=0.5)
    body = received.json
    reasoning, message, call = body["output"]
    assert (reasoning["type"], reasoning["summary"], reasoning["id"][:3]) == ("reasoning", [], "rs_")
    assert message["content"] == [{"type": "output_text", "annotations": [], "logprobs": [], "text": "Let me look."}]
    assert (message["role"], message["status"], message["id"][:4]) == ("assistant", "completed", "msg_")
    assert (call["call_id"], call["name"], call["arguments"]) == ("call_1x2x1", "shell", '{"command":"ls"}')
    assert (call["id"][:3], body["id"][:5], body["object"]) == ("fc_", "resp_", "response")
    assert (body["status"], body["tools"], body["temperature"], body["store"]) == ("completed", [TOOL], 0.5, True)
    assert body["usage"]["output_tokens_details"]["reasoning_tokens"] == 2
    assert body["usage"]["total_tokens"] == body["usage"]["input_tokens"] + body["usage"]["output_tokens"]
    assert received.headers["x-request-id"].startswith("req_")


async def test_a_stream_says_the_same_in_numbered_events(open_llm: Any, ask: Any, responses: Any) -> None:
    """Events are numbered from 0 without a gap, named twice, and end with the object that is not streamed else."""
    whole = await ask(await open_llm(RICH), responses)
    received = await ask(await open_llm(RICH), responses, stream=True)
    names = [name for name, _ in received.events]
    assert [data["sequence_number"] for _, data in received.events] == list(range(len(names)))
    assert all(name == data["type"] for name, data in received.events)
    assert names[:2] == ["response.created", "response.in_progress"]
    assert received.events[0][1]["response"] == whole.json | {
        "status": "in_progress",
        "output": [],
        "usage": None,
        "completed_at": None,
    }
    assert said(received) == whole.json
    done = [data["item"] for name, data in received.events if name == "response.output_item.done"]
    assert done == whole.json["output"]
    opened = [data["item"] for name, data in received.events if name == "response.output_item.added"]
    assert [item["id"] for item in opened] == [item["id"] for item in done]
    assert [item.get("status") for item in opened] == [None, "in_progress", "in_progress"]
    deltas = [data["delta"] for name, data in received.events if name == "response.output_text.delta"]
    assert (deltas, "".join(deltas)) == (["Let ", "me l", "ook."], "Let me look.")
    pieces = [data["delta"] for name, data in received.events if name == "response.function_call_arguments.delta"]
    assert "".join(pieces) == '{"command":"ls"}'


async def test_a_tool_of_a_namespace_is_called_by_both_its_names(
    open_llm: Any, ask: Any, responses: Any, recorder: Any
) -> None:
    """https://developers.openai.com/api/docs/guides/function-calling#defining-namespaces: two tools share a name."""
    spaces = [{"type": "namespace", "name": name, "description": name, "tools": [TOOL]} for name in ("here", "there")]
    llm = await open_llm(Reply((ToolCall("there.shell", {"command": "ls"}),)))
    whole = await ask(llm, responses, tools=[TOOL, *spaces])
    streamed = await ask(llm, responses, tools=[TOOL, *spaces], stream=True)
    (call,) = whole.json["output"]
    assert (call["name"], call["namespace"]) == ("shell", "there")
    assert {"name": "shell", "namespace": "there"}.items() <= said(streamed)["output"][0].items()
    assert [data["name"] for name, data in streamed.events if name.endswith("arguments.done")] == ["shell"]
    offered = recorder.all(RequestSeen)[0].conversation.tools
    assert [tool.name for tool in offered] == ["shell", "here.shell", "there.shell"]


PATCH = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch"
CUSTOM = {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "…"}}


async def test_a_custom_tool_is_called_with_a_text(open_llm: Any, ask: Any, responses: Any, recorder: Any) -> None:
    """https://developers.openai.com/api/docs/guides/function-calling#custom-tools: no JSON around its input."""
    llm = await open_llm(Reply((ToolCall("apply_patch", {"input": PATCH}),)))
    whole = await ask(llm, responses, tools=[TOOL, CUSTOM])
    streamed = await ask(llm, responses, tools=[TOOL, CUSTOM], stream=True)
    (call,) = whole.json["output"]
    assert (call["type"], call["id"][:4], call["name"], call["input"]) == (
        "custom_tool_call",
        "ctc_",
        "apply_patch",
        PATCH,
    )
    assert "arguments" not in call
    (shown,) = said(streamed)["output"]
    assert shown["input"] == PATCH
    deltas = [data["delta"] for name, data in streamed.events if name == "response.custom_tool_call_input.delta"]
    done = [data["input"] for name, data in streamed.events if name == "response.custom_tool_call_input.done"]
    assert ("".join(deltas), done) == (PATCH, [PATCH])
    assert [data["item"]["input"] for name, data in streamed.events if name == "response.output_item.added"] == [""]
    tool = recorder.all(RequestSeen)[-1].conversation.tools[1]
    assert (tool.name, [*tool.schema["properties"]]) == ("apply_patch", ["input"])


async def test_a_call_of_a_custom_tool_is_cut_in_its_text(open_llm: Any, ask: Any, responses: Any) -> None:
    """At the token limit a part of the text has come, and no JSON."""
    llm = await open_llm(Reply((ToolCall("apply_patch", {"input": PATCH}),)))
    cut = await ask(llm, responses, tools=[CUSTOM], max_output_tokens=17)
    (call,) = cut.json["output"]
    assert (cut.json["status"], call["status"]) == ("incomplete", "incomplete")
    assert PATCH.startswith(call["input"]) and "\n" in call["input"] and call["input"] != PATCH


async def test_broken_arguments_of_a_custom_tool_are_its_text(open_llm: Any, ask: Any, responses: Any) -> None:
    """A scenario may write them as they are."""
    llm = await open_llm(Reply((ToolCall("apply_patch", raw_args="no patch"),)))
    assert (await ask(llm, responses, tools=[CUSTOM])).json["output"][0]["input"] == "no patch"


async def test_a_call_of_a_namespace_is_read_by_both_its_names(
    open_llm: Any, ask: Any, responses: Any, recorder: Any
) -> None:
    """Else a call of `here` and one of `there` would be the same."""
    given = [USER, *calling("call_1", namespace="there"), *calling("call_2"), *answering("call_1", "call_2")]
    llm = await open_llm(RICH)
    await ask(llm, responses, input=given)
    calls = [call.name for message in recorder.all(RequestSeen)[0].conversation.messages for call in message.tool_calls]
    assert calls == ["there.shell", "shell"]


async def test_each_request_is_echoed_with_its_own_words(open_llm: Any, ask: Any, responses: Any) -> None:
    """What one request said of its tools and its metadata is not in the next answer, though the reply is the same."""
    llm = await open_llm(RICH)
    for number in ("1", "2"):
        more = {"tools": [TOOL | {"name": f"shell{number}"}], "metadata": {"number": number}, "instructions": number}
        body = (await ask(llm, responses, **more)).json
        assert more.items() <= body.items()
        kept = await ask(llm, responses, b"", path=f"/v1/responses/{body['id']}", method="GET")
        assert kept.json == body


async def test_reasoning_is_shown_where_a_summary_is_asked_for(open_llm: Any, ask: Any, responses: Any) -> None:
    """Streamed too; sealed reasoning comes where it is asked for."""
    asked = {"reasoning": {"summary": "auto"}, "include": ["reasoning.encrypted_content"]}
    received = await ask(await open_llm(RICH), responses, stream=True, **asked)
    item = said(received)["output"][0]
    assert item["summary"] == [{"type": "summary_text", "text": "Hm hm."}]
    assert item["encrypted_content"].startswith("gAAAA")
    told = [data["delta"] for name, data in received.events if name == "response.reasoning_summary_text.delta"]
    assert "".join(told) == "Hm hm."


@pytest.mark.parametrize("stream", [True, False])
async def test_a_stop_at_max_tokens_is_incomplete(open_llm: Any, ask: Any, responses: Any, stream: bool) -> None:
    """The cut item and the response are incomplete; the arguments arrive verbatim."""
    reply = Reply((Text("Hm."), ToolCall("shell", raw_args='{"co')), stop="max_tokens")
    received = await ask(await open_llm(reply), responses, stream=stream)
    body = said(received) if stream else received.json
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert [item["status"] for item in body["output"]] == ["completed", "incomplete"]
    assert body["output"][1]["arguments"] == '{"co'
    assert not stream or received.events[-1][0] == "response.incomplete"


async def test_a_refusal_is_a_part_of_its_own(open_llm: Any, ask: Any, responses: Any) -> None:
    """The words of a refusal are no text."""
    received = await ask(await open_llm(Reply((Text("I can't."),), stop="refusal")), responses, stream=True)
    assert said(received)["output"][0]["content"] == [{"type": "refusal", "refusal": "I can't."}]
    told = [data["delta"] for name, data in received.events if name == "response.refusal.delta"]
    assert "".join(told) == "I can't."


async def test_scripted_usage_wins(open_llm: Any, ask: Any, responses: Any) -> None:
    """Numbers of the script are reported as they are."""
    received = await ask(await open_llm(Reply((Text("Hello"),), Usage(8000, 0))), responses, stream=True)
    assert (said(received)["usage"]["input_tokens"], said(received)["usage"]["output_tokens"]) == (8000, 0)


async def test_an_error_event_goes_on_counting(open_llm: Any, ask: Any, responses: Any) -> None:
    """It is an event like others, with the next number and the provider's error."""
    received = await ask(await open_llm(Reply((Text("Hi"),), edits=(ErrorEvent(3, 500),))), responses, stream=True)
    name, data = received.events[-1]
    assert (name, data["type"], data["sequence_number"]) == ("error", "error", 3)
    assert data["error"]["type"] == "server_error"


async def test_a_request_is_read_into_one_view(open_llm: Any, ask: Any, recorder: Any, responses: Any) -> None:
    """What the model said and called in a row is one message, and so are results; instructions come first."""
    words = {"role": "assistant", "content": [{"type": "output_text", "text": "Sure."}]}
    document = {
        "model": "m",
        "instructions": "Be brief.",
        "input": [USER, words, *calling("a", "b"), *answering("b", "a"), words, {**USER, "content": "and now?"}],
        "tools": [TOOL],
        "max_output_tokens": 64,
        "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}},
    }
    await ask(await open_llm(), responses, document)
    seen = recorder.all(RequestSeen)[0].conversation
    assert [message.role for message in seen.messages] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert [message.text for message in seen.messages] == ["Be brief.", "go", "Sure.", "", "Sure.", "and now?"]
    assert [call.id for call in seen.messages[2].tool_calls] == ["a", "b"]
    assert [result.call_id for result in seen.messages[3].tool_results] == ["b", "a"]
    assert (seen.tools[0].name, seen.max_tokens, seen.schema) == ("shell", 64, {"type": "object"})


async def test_an_earlier_response_stands_for_its_history(
    open_llm: Any, ask: Any, recorder: Any, responses: Any
) -> None:
    """What it was asked and what it said are read as if they had been sent again, over several responses."""
    llm = await open_llm(RICH)
    first = (await ask(llm, responses)).json
    second = (await ask(llm, responses, input=answering("call_1x2x1"), previous_response_id=first["id"])).json
    await ask(llm, responses, input=[*answering("call_1x2x1"), USER], previous_response_id=second["id"])
    messages = recorder.all(RequestSeen)[2].conversation.messages
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant", "tool", "user"]
    assert messages[1].text == "Let me look."
    assert second["previous_response_id"] == first["id"]


async def test_items_can_be_named_instead_of_sent(open_llm: Any, ask: Any, recorder: Any, responses: Any) -> None:
    """A reference is the item that was said."""
    llm = await open_llm(RICH)
    output = (await ask(llm, responses)).json["output"]
    references = [{"type": "item_reference", "id": item["id"]} for item in output]
    received = await ask(llm, responses, input=[USER, *references, *answering("call_1x2x1")])
    assert received.status == 200
    assert recorder.all(RequestSeen)[1].conversation.messages[1].tool_calls[0].arguments == '{"command":"ls"}'


@pytest.mark.parametrize("store", [True, False])
async def test_responses_are_kept_unless_told_not_to(open_llm: Any, ask: Any, responses: Any, store: bool) -> None:
    """A kept one can be read, with its input, and deleted; one that is not kept is not found."""
    llm = await open_llm(RICH)
    id_ = (await ask(llm, responses, {"model": "m", "input": "Hi", "store": store})).json["id"]
    path = f"/v1/responses/{id_}"
    read = await ask(llm, responses, b"", path=path, method="GET")
    items = await ask(llm, responses, b"", path=f"{path}/input_items", method="GET")
    gone = await ask(llm, responses, b"", path=path, method="DELETE")
    again = await ask(llm, responses, b"", path=path, method="GET")
    assert [one.status for one in (read, items, gone, again)] == ([200, 200, 200, 404] if store else [404] * 4)
    assert again.json["error"]["message"] == f"Response with id '{id_}' not found."
    assert not store or (items.json["data"][0]["content"], gone.json["deleted"]) == ("Hi", True)


async def test_tokens_can_be_counted_without_a_reply(open_llm: Any, ask: Any, responses: Any) -> None:
    """The count is what the reply would be billed; what would be refused is refused there too."""
    llm = await open_llm()
    path = "/v1/responses/input_tokens"
    counted = await ask(llm, responses, path=path)
    billed = await ask(llm, responses)
    refused = await ask(llm, responses, path=path, input=calling("a"))
    assert counted.json == {"object": "response.input_tokens", "input_tokens": billed.json["usage"]["input_tokens"]}
    assert refused.json["error"]["message"] == "No tool output found for function call a."


GOOD = {
    "results in any order": [USER, *calling("a", "b"), *answering("b", "a"), USER],
    "results late": [USER, *calling("a"), USER, *answering("a")],
    "sealed reasoning": [
        USER,
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        *calling("a"),
        *answering("a"),
    ],
    "sealed reasoning without its id": [
        USER,
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        *calling("a"),
        *answering("a"),
    ],
    "custom tools": [
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"},
    ],
    "results with parts": [
        *calling("a"),
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "ok"}]},
    ],
}


@pytest.mark.parametrize("items", GOOD.values(), ids=GOOD)
async def test_sound_histories_are_answered(open_llm: Any, ask: Any, responses: Any, items: Any) -> None:
    """What the provider takes is taken."""
    received = await ask(await open_llm(), responses, input=items)
    assert received.status == 200, received.json


PAIRING = {
    "unanswered": ([USER, *calling("a")], "No tool output found for function call a."),
    "half answered": ([*calling("a", "b"), *answering("a")], "No tool output found for function call b."),
    "orphan": ([USER, *answering("z")], "No tool call found for function call output with call_id z."),
    "too early": (
        [*answering("a"), *calling("a")],
        "No tool call found for function call output with call_id a.",
    ),
    "twice called": ([*calling("a", "a"), *answering("a")], "Duplicate item found with id a."),
    "twice answered": ([*calling("a"), *answering("a", "a")], "Duplicate function_call_output for call_id 'a'. Each"),
    "same item": (
        [*calling("a", id="fc_1"), *calling("b", id="fc_1"), *answering("a", "b")],
        "Duplicate item found with id fc_1.",
    ),
    "custom": (
        [{"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"}],
        "No tool output found for custom tool call c.",
    ),
}


@pytest.mark.parametrize(("items", "words"), PAIRING.values(), ids=PAIRING)
async def test_broken_pairs_are_refused_in_the_providers_words(
    open_llm: Any, ask: Any, recorder: Any, responses: Any, items: Any, words: str
) -> None:
    """Each refusal is a 400 about `input`, reported as a pairing refusal."""
    received = await ask(await open_llm(), responses, input=items)
    (refused,) = recorder.all(RefusalSent)
    assert (received.status, received.json["error"]["type"]) == (400, "invalid_request_error")
    assert (received.json["error"]["param"], received.json["error"]["code"]) == ("input", None)
    assert received.json["error"]["message"].startswith(words)
    assert (refused.pairing, refused.scripted, refused.enforced) == (True, False, True)


async def test_a_call_of_an_earlier_response_needs_its_result(
    open_llm: Any, ask: Any, recorder: Any, responses: Any
) -> None:
    """Naming a response with a call in it and saying something else leaves that call unpaired."""
    llm = await open_llm(RICH)
    first = (await ask(llm, responses)).json
    received = await ask(llm, responses, previous_response_id=first["id"])
    assert received.json["error"]["message"] == "No tool output found for function call call_1x2x1."
    assert recorder.all(RefusalSent)[0].pairing


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
BAD: dict[str, tuple[Any, int, str]] = {
    "no model": ({"input": "Hi"}, 400, "Missing required parameter: 'model'."),
    "no input": ({"model": "m"}, 400, 'One of "input" or "previous_response_id"'),
    "input a number": ({"model": "m", "input": 1}, 400, "Invalid type for 'input'"),
    "unknown earlier response": (
        {"model": "m", "input": "Hi", "previous_response_id": "resp_0"},
        400,
        "Previous response with id 'resp_0' not found.",
    ),
    "unknown item": (
        {"model": "m", "input": [USER, {"type": "item_reference", "id": "rs_0"}]},
        404,
        "Item with id 'rs_0' not found. Items are not persisted when `store` is set to false.",
    ),
    "reasoning that was not kept": (
        {"model": "m", "input": [{**REASONING, "encrypted_content": None}, *calling("a"), *answering("a")]},
        404,
        "Item with id 'rs_1' not found.",
    ),
    "reasoning that nothing identifies": (
        {"model": "m", "input": [{"type": "reasoning", "summary": []}, *calling("a"), *answering("a")]},
        400,
        "Missing required parameter: 'input[0].id'.",
    ),
    "reasoning without what followed": (
        {"model": "m", "input": [REASONING, USER]},
        400,
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    "tool of chat completions": (
        {"model": "m", "input": "Hi", "tools": [{"type": "function", "function": {"name": "f"}}]},
        400,
        "Missing required parameter: 'tools[0].name'.",
    ),
    "role of chat completions": (
        {"model": "m", "input": [{"role": "tool", "content": "x"}]},
        400,
        "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
    ),
    "part of the wrong side": (
        {"model": "m", "input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]},
        400,
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    ),
    "part of chat completions": (
        {"model": "m", "input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        400,
        "Invalid value: 'text'. Supported values are: 'input_text',",
    ),
    "call id as item id": (
        {"model": "m", "input": [*calling("call_1", id="call_1"), *answering("call_1")]},
        400,
        "Invalid 'input[0].id': 'call_1'. Expected an ID that begins with 'fc'.",
    ),
    "no call id": (
        {"model": "m", "input": [{"type": "function_call_output", "output": "x"}]},
        400,
        "Missing required parameter: 'input[0].call_id'.",
    ),
    "empty call id": ({"model": "m", "input": calling("")}, 400, "Invalid 'input[0].call_id': empty string."),
    "long call id": ({"model": "m", "input": calling("a" * 65)}, 400, "Invalid 'input[0].call_id': string too long."),
    "arguments an object": (
        {"model": "m", "input": calling("a", arguments={})},
        400,
        "Invalid type for 'input[0].arguments': expected a string",
    ),
    "few tokens": (
        {"model": "m", "input": "Hi", "max_output_tokens": 5},
        400,
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 5 instead.",
    ),
    "no JSON": (b'{"model":', 400, "We could not parse the JSON body of your request."),
}


@pytest.mark.parametrize(("document", "status", "words"), BAD.values(), ids=BAD)
async def test_other_bad_requests_are_refused_too(
    open_llm: Any, ask: Any, recorder: Any, responses: Any, document: Any, status: int, words: str
) -> None:
    """What has nothing to do with pairs is refused without blaming them."""
    received = await ask(await open_llm(), responses, document)
    (refused,) = recorder.all(RefusalSent)
    assert received.json["error"]["message"].startswith(words)
    assert (received.status, refused.pairing) == (status, False)


async def test_a_call_does_not_come_back_without_the_reasoning_before_it(
    open_llm: Any, ask: Any, responses: Any
) -> None:
    """The provider keeps both together; without its id the call needs no reasoning."""
    llm = await open_llm(Reply((Thinking("Hm."), ToolCall("shell", id="1x1"))))
    reasoning, call = (await ask(llm, responses)).json["output"]
    alone = await ask(llm, responses, input=[USER, call, *answering("call_1x1")])
    both = await ask(llm, responses, input=[USER, reasoning, call, *answering("call_1x1")])
    nameless = await ask(llm, responses, input=[USER, call | {"id": None}, *answering("call_1x1")])
    assert alone.json["error"]["message"] == (
        f"Item '{call['id']}' of type 'function_call' was provided without its required 'reasoning' item: "
        f"'{reasoning['id']}'."
    )
    assert (alone.status, both.status, nameless.status) == (400, 200, 200)


async def test_a_key_is_needed(open_llm: Any, ask: Any, responses: Any) -> None:
    """Without one everything is a 401."""
    llm = await open_llm()
    asked = [("/v1/responses", "POST"), ("/v1/responses/resp_1", "GET"), ("/v1/responses/input_tokens", "POST")]
    for path, method in asked:
        received = await ask(llm, responses, path=path, method=method, headers={})
        assert received.status == 401
        assert received.json["error"]["message"].startswith("You didn't provide an API key.")
