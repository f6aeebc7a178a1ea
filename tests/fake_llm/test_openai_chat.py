"""Chat completions: what is said, in its bytes."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from wedgehog.fake_llm.dialects.openai_chat.wire import OPENAI_CHAT
from wedgehog.fake_llm.observer import RequestSeen
from wedgehog.fake_llm.reply import Failure, Reply, Text, Thinking, ToolCall, Usage
from wedgehog.fake_llm.request import Request

RICH = Reply((Thinking("Hm hm."), Text("Let me look."), ToolCall("shell", {"command": "ls"}, id="1x2x1")))
USER = {"role": "user", "content": "go"}


def calling(*ids: str) -> dict[str, Any]:
    function = {"name": "shell", "arguments": "{}"}
    return {"role": "assistant", "tool_calls": [{"id": id_, "type": "function", "function": function} for id_ in ids]}


def answering(id_: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": "ok"}


async def test_a_completion_holds_text_and_calls(open_llm: Any, ask: Any, openai: Any) -> None:
    """Thinking is billed and not shown; the scripted id follows the provider's prefix."""
    received = await ask(await open_llm(RICH), openai)
    (choice,) = received.json["choices"]
    assert choice["message"]["content"] == "Let me look."
    assert choice["message"]["tool_calls"] == [
        {"id": "call_1x2x1", "type": "function", "function": {"name": "shell", "arguments": '{"command":"ls"}'}}
    ]
    assert choice["finish_reason"] == "tool_calls"
    assert received.json["usage"]["completion_tokens_details"]["reasoning_tokens"] == 2
    assert received.headers["x-request-id"].startswith("req_")


async def test_a_stream_says_the_same_in_chunks(open_llm: Any, ask: Any, openai: Any) -> None:
    """The role comes first, then pieces, the finish reason and `[DONE]`; there is no usage unless asked for."""
    received = await ask(await open_llm(RICH), openai, stream=True)
    *chunks, (_, done) = received.events
    deltas = [data["choices"][0]["delta"] for _, data in chunks]
    assert deltas[0] == {"role": "assistant", "content": "", "refusal": None}
    assert "".join(delta.get("content") or "" for delta in deltas) == "Let me look."
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert (calls[0]["id"], calls[0]["function"]["name"]) == ("call_1x2x1", "shell")
    assert "".join(call["function"]["arguments"] for call in calls) == '{"command":"ls"}'
    assert [data["choices"][0]["finish_reason"] for _, data in chunks][-2:] == [None, "tool_calls"]
    assert done == "[DONE]"
    assert not any("usage" in data for _, data in chunks)
    assert len({data["id"] for _, data in chunks}) == 1


async def test_a_reply_may_have_no_choice(open_llm: Any, ask: Any, openai: Any) -> None:
    """In one piece and in a stream the list is there, and empty; the tokens are told."""
    llm = await open_llm(Reply(stop="end", no_choice=True))
    whole = await ask(llm, openai)
    assert whole.json["choices"] == [] and whole.json["usage"]["prompt_tokens"] > 0
    *chunks, (_, done) = (await ask(llm, openai, stream=True)).events
    assert [data["choices"] for _, data in chunks] == [[]] and done == "[DONE]"


async def test_thoughts_are_shown_where_a_compatible_provider_shows_them(open_llm: Any, ask: Any, openai: Any) -> None:
    """In a field of their own, before the words; in a stream as a delta of it."""
    llm = await open_llm(replace(RICH, shows_thoughts=True))
    (choice,) = (await ask(llm, openai)).json["choices"]
    assert (choice["message"]["reasoning_content"], choice["message"]["content"]) == ("Hm hm.", "Let me look.")
    *chunks, _ = (await ask(llm, openai, stream=True)).events
    shown = [data["choices"][0]["delta"].get("reasoning_content") for _, data in chunks]
    assert shown[1] == "Hm hm." and set(shown) == {None, "Hm hm."}


async def test_usage_comes_last_and_alone_where_it_was_asked_for(open_llm: Any, ask: Any, openai: Any) -> None:
    """With include_usage earlier chunks say `usage: null`, and one without choices tells it before `[DONE]`."""
    llm = await open_llm(Reply((Text("Hello"),), Usage(8000, 3)))
    received = await ask(llm, openai, stream=True, stream_options={"include_usage": True})
    *chunks, last, _ = (data for _, data in received.events)
    assert all(chunk["usage"] is None for chunk in chunks)
    assert last["choices"] == []
    assert (last["usage"]["prompt_tokens"], last["usage"]["completion_tokens"]) == (8000, 3)
    assert last["usage"]["total_tokens"] == 8003


async def test_several_choices_are_written_and_billed(open_llm: Any, ask: Any, openai: Any) -> None:
    """`n=2` gives two choices, twice the tokens, and calls that do not share ids."""
    llm = await open_llm(Reply((Text("Hello"), ToolCall("shell"), ToolCall("shell", id="1x1"))))
    one, two = await ask(llm, openai), await ask(llm, openai, n=2)
    streamed = await ask(llm, openai, n=2, stream=True)
    ids = [call["id"] for choice in two.json["choices"] for call in choice["message"]["tool_calls"]]
    indexes = [choice["index"] for _, data in streamed.events[:-1] for choice in data["choices"]]
    assert two.json["usage"]["completion_tokens"] == 2 * one.json["usage"]["completion_tokens"]
    assert len(set(ids)) == 4
    assert set(indexes) == {0, 1}


@pytest.mark.parametrize(("asked", "words"), [(0, "below minimum value"), (129, "above maximum value")])
async def test_there_are_between_1_and_128_choices(
    open_llm: Any, ask: Any, openai: Any, asked: int, words: str
) -> None:
    """Other numbers are refused; a lenient provider writes no more than it would."""
    received = await ask(await open_llm(), openai, n=asked)
    assert received.status == 400
    assert words in received.json["error"]["message"]
    lenient = await ask(await open_llm(strict=False), openai, n=asked)
    assert len(lenient.json["choices"]) == min(max(1, asked), 128)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_is_no_content(open_llm: Any, ask: Any, openai: Any, stream: bool) -> None:
    """A refusal's text has its own field; without text a filter stopped the model."""
    received = await ask(await open_llm(Reply((Text("I can't."),), stop="refusal")), openai, stream=stream)
    filtered = await ask(await open_llm(Reply(stop="refusal")), openai, stream=stream)
    if stream:
        deltas = [data["choices"][0]["delta"] for _, data in received.events[:-1]]
        said = "".join(delta.get("refusal") or "" for delta in deltas), "".join(d.get("content") or "" for d in deltas)
        stops = [told.events[-2][1]["choices"][0]["finish_reason"] for told in (received, filtered)]
    else:
        message = received.json["choices"][0]["message"]
        said = message["refusal"], message["content"] or ""
        stops = [told.json["choices"][0]["finish_reason"] for told in (received, filtered)]
    assert (said, stops) == (("I can't.", ""), ["stop", "content_filter"])


async def test_texts_have_vectors_of_their_own(open_llm: Any, ask: Any, openai: Any) -> None:
    """The same text the same one, in the size and the form asked for; it costs no call of a model."""
    llm, path = await open_llm(), "/v1/embeddings"
    several = await ask(llm, openai, {"model": "m", "input": ["a", "b", "a"], "dimensions": 8}, path=path)
    packed = await ask(llm, openai, {"model": "m", "input": "a", "encoding_format": "base64"}, path=path)
    refused = await ask(llm, openai, {"model": "m"}, path=path)
    one, two, again = (vector["embedding"] for vector in several.json["data"])
    assert (len(one), one == again, one == two) == (8, True, False)
    assert len(base64.b64decode(packed.json["data"][0]["embedding"])) == 4 * 1536
    assert refused.json["error"]["message"] == "Missing required parameter: 'input'."


async def test_moderations_flag_nothing(open_llm: Any, ask: Any, openai: Any) -> None:
    """One result for each text; a message with images is one."""
    llm, path = await open_llm(), "/v1/moderations"
    several = await ask(llm, openai, {"input": ["a", "b"]}, path=path)
    message = await ask(
        llm, openai, {"input": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, path=path
    )
    refused = await ask(llm, openai, {}, path=path)
    assert [result["flagged"] for result in several.json["results"]] == [False, False]
    assert len(message.json["results"]) == 1
    assert refused.json["error"]["message"] == "Missing required parameter: 'input'."


async def test_a_stop_at_max_tokens_is_a_length(open_llm: Any, ask: Any, openai: Any) -> None:
    """Cut arguments arrive verbatim, and a reply of calls alone has no content."""
    received = await ask(await open_llm(Reply((ToolCall("shell", raw_args='{"co'),), stop="max_tokens")), openai)
    (choice,) = received.json["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"co'


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", None),
        (401, "invalid_request_error", "invalid_api_key"),
        (429, "requests", "rate_limit_exceeded"),
        (500, "server_error", None),
        (502, "server_error", None),
        (529, "server_error", None),
    ],
)
async def test_errors_have_the_providers_shape(
    open_llm: Any, ask: Any, openai: Any, status: int, kind: str, code: str | None
) -> None:
    """Each status has its type and code."""
    received = await ask(await open_llm(Failure(status, message="No.")), openai)
    assert received.status == status
    assert received.json == {"error": {"message": "No.", "type": kind, "param": None, "code": code}}


async def test_a_used_up_quota_is_a_429_of_its_own(open_llm: Any, ask: Any, openai: Any) -> None:
    """Type and code differ from a rate limit's, so that a client need not retry."""
    error = (await ask(await open_llm(Failure(429, kind="insufficient_quota")), openai)).json["error"]
    assert (error["type"], error["code"]) == ("insufficient_quota", "insufficient_quota")
    assert error["message"].startswith("You exceeded your current quota")


GOOD = {
    "results in any order": [USER, calling("a", "b"), answering("b"), answering("a"), USER],
    "ids used again later": [USER, calling("a"), answering("a"), calling("a"), answering("a")],
    "assistant first": [{"role": "assistant", "content": "Hello"}, USER],
    "empty texts": [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}],
    "developer": [{"role": "developer", "content": "Be brief."}, USER],
}


@pytest.mark.parametrize("messages", GOOD.values(), ids=GOOD)
async def test_what_the_provider_accepts_is_answered(open_llm: Any, ask: Any, openai: Any, messages: Any) -> None:
    """The validator is not stricter than the provider."""
    assert (await ask(await open_llm(), openai, messages=messages)).status == 200


UNPAIRED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
ORPHAN = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
PAIRING = {
    "no result": ([USER, calling("a", "b"), answering("b"), USER], f"{UNPAIRED}a", "messages.[3].role"),
    "at the end": ([USER, calling("a", "b")], f"{UNPAIRED}a, b", "messages.[2].role"),
    "orphan": ([USER, answering("a")], ORPHAN, "messages.[1].role"),
    "late": ([USER, calling("a"), answering("a"), USER, answering("a")], ORPHAN, "messages.[4].role"),
    "unknown id": (
        [USER, calling("a"), answering("a"), answering("z")],
        "Invalid parameter: 'tool_call_id' of 'z' not found in 'tool_calls' of previous message.",
        "messages.[3].tool_call_id",
    ),
    "twice answered": (
        [USER, calling("a"), answering("a"), answering("a")],
        "Invalid parameter: Duplicate value for 'tool_call_id' of 'a', in messages[2] and messages[3].",
        "messages.[3].tool_call_id",
    ),
    "same id": (
        [USER, calling("a", "a"), answering("a")],
        "Invalid parameter: Duplicate value for 'tool_call_id' of 'a'",
        "messages.[1].tool_calls",
    ),
    "no id": (
        [USER, calling("a"), {"role": "tool", "content": "ok"}],
        "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
        "messages.[2].tool_call_id",
    ),
}


@pytest.mark.parametrize(("messages", "words", "param"), PAIRING.values(), ids=PAIRING)
async def test_broken_pairs_are_refused_in_the_providers_words(
    open_llm: Any, ask: Any, recorder: Any, openai: Any, messages: Any, words: str, param: str
) -> None:
    """Each refusal is a 400 of type invalid_request_error that names its place, reported as a pairing refusal."""
    received = await ask(await open_llm(), openai, messages=messages)
    (refused,) = (fact for fact in recorder.facts if type(fact).__name__ == "RefusalSent")
    error = received.json["error"]
    assert (received.status, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert error["message"].startswith(words)
    assert (refused.pairing, refused.scripted, refused.enforced) == (True, False, True)


BAD = {
    "no model": ({"messages": [USER]}, "you must provide a model parameter"),
    "no messages": ({"model": "m"}, "Missing required parameter: 'messages'."),
    "empty messages": ({"model": "m", "messages": []}, "Invalid 'messages': empty array."),
    "empty tools": ({"model": "m", "messages": [USER], "tools": []}, "Invalid 'tools': empty array."),
    "empty calls": (
        {"model": "m", "messages": [{"role": "assistant", "content": "x", "tool_calls": []}]},
        "Invalid 'messages[0].tool_calls': empty array.",
    ),
    "odd role": ({"model": "m", "messages": [{"role": "me", "content": "x"}]}, "Invalid value: 'me'. Supported"),
    "no role": ({"model": "m", "messages": [{"content": "x"}]}, "Missing required parameter: 'messages[0].role'."),
    "silent assistant": (
        {"model": "m", "messages": [{"role": "assistant", "content": None}]},
        "Invalid value for 'content': expected a string, got null.",
    ),
    "arguments no text": (
        {
            "model": "m",
            "messages": [
                {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "n"}}]}
            ],
        },
        "Missing required parameter: 'messages[0].tool_calls[0].function.arguments'.",
    ),
    "no JSON": (b"{", "We could not parse the JSON body of your request."),
}


@pytest.mark.parametrize(("document", "words"), BAD.values(), ids=BAD)
async def test_other_bad_requests_are_refused_too(
    open_llm: Any, ask: Any, recorder: Any, openai: Any, document: Any, words: str
) -> None:
    """What has nothing to do with pairs is refused without blaming them."""
    received = await ask(await open_llm(), openai, document)
    (refused,) = (fact for fact in recorder.facts if type(fact).__name__ == "RefusalSent")
    assert received.status == 400
    assert received.json["error"]["message"].startswith(words)
    assert refused.pairing is False


async def test_a_key_is_needed(open_llm: Any, ask: Any, openai: Any) -> None:
    """Without a key the provider says how to send one."""
    received = await ask(await open_llm(), openai, headers={})
    assert received.status == 401
    assert received.json["error"]["message"].startswith("You didn't provide an API key.")


async def test_a_request_is_read_into_one_view(open_llm: Any, ask: Any, recorder: Any, openai: Any) -> None:
    """Developer text is system text, each tool message holds its result, and a wanted schema is kept."""
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    await ask(
        await open_llm(),
        openai,
        messages=[{"role": "developer", "content": "Be brief."}, USER, calling("a"), answering("a")],
        tools=[{"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}],
        response_format={"type": "json_schema", "json_schema": {"name": "t", "schema": schema}},
        max_completion_tokens=5,
    )
    conversation = recorder.all(RequestSeen)[0].conversation
    assert [message.role for message in conversation.messages] == ["system", "user", "assistant", "tool"]
    assert conversation.messages[2].tool_calls[0].name == "shell"
    assert conversation.messages[3].tool_results[0].call_id == "a"
    assert (conversation.tools[0].name, conversation.schema, conversation.max_tokens) == ("shell", schema, 5)


@pytest.mark.parametrize(
    ("sent", "seen"),
    [({"reasoning_content": "Hm."}, ("Hm.",)), ({"reasoning_content": None, "reasoning": ""}, ("",)), ({}, ())],
)
async def test_thoughts_that_come_back_are_read_in_both_fields(sent: dict[str, Any], seen: tuple[str, ...]) -> None:
    """Empty ones too: an agent may say that there were none."""
    body = {"model": "m", "messages": [USER, {**calling("a"), **sent}, answering("a")]}
    conversation = OPENAI_CHAT.parse(Request(1, "POST", "/v1/chat/completions", {}, b"", body))
    assert conversation.messages[1].thoughts == seen
