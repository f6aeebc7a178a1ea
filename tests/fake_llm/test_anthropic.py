"""The Messages API: replies as bytes."""

from __future__ import annotations

from typing import Any

import pytest

from wedgehog.fake_llm.observer import RequestSeen
from wedgehog.fake_llm.reply import Failure, Reply, Text, Thinking, ToolCall, Usage

RICH = Reply((Thinking("Hm."), Text("Let me look."), ToolCall("shell", {"command": "ls"}, id="1x2x1")))
JUST_USER = [{"role": "user", "content": "go"}]


def calling(*ids: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": id_, "name": "shell", "input": {}} for id_ in ids],
    }


def answering(*ids: str, text: str = "") -> dict[str, Any]:
    results: list[Any] = [{"type": "tool_result", "tool_use_id": id_, "content": "ok"} for id_ in ids]
    return {"role": "user", "content": [*results, *([{"type": "text", "text": text}] if text else [])]}


async def test_a_message_holds_thinking_text_and_calls(open_llm: Any, ask: Any, anthropic: Any) -> None:
    """Blocks come in the reply's order, with the scripted id after the provider's prefix."""
    received = await ask(await open_llm(RICH), anthropic)
    thinking, text, call = received.json["content"]
    assert (thinking["type"], thinking["thinking"]) == ("thinking", "Hm.")
    assert thinking["signature"]
    assert text == {"type": "text", "text": "Let me look."}
    assert call == {"type": "tool_use", "id": "toolu_1x2x1", "name": "shell", "input": {"command": "ls"}}
    assert (received.json["stop_reason"], received.json["model"]) == ("tool_use", "m")
    assert received.headers["request-id"].startswith("req_")


async def test_a_stream_says_the_same_in_named_events(open_llm: Any, ask: Any, anthropic: Any) -> None:
    """Every event has its `event:` line, deltas join to the items, and a ping follows the first block's start."""
    received = await ask(await open_llm(RICH), anthropic, stream=True)
    names = [name for name, _ in received.events]
    assert all(name == data["type"] for name, data in received.events)
    assert names[:3] == ["message_start", "content_block_start", "ping"]
    assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    deltas = [data["delta"] for name, data in received.events if name == "content_block_delta"]
    assert "".join(delta.get("thinking", "") for delta in deltas) == "Hm."
    assert "".join(delta.get("text", "") for delta in deltas) == "Let me look."
    assert "".join(delta.get("partial_json", "") for delta in deltas) == '{"command":"ls"}'
    assert len([delta for delta in deltas if "text" in delta]) == 3
    (ended,) = (data for name, data in received.events if name == "message_delta")
    assert ended["delta"]["stop_reason"] == "tool_use"


async def test_usage_is_estimated_and_never_zero(open_llm: Any, ask: Any, anthropic: Any) -> None:
    """Even an empty reply costs a token on both sides, streamed or not."""
    llm = await open_llm(Reply())
    whole, streamed = await ask(llm, anthropic), await ask(llm, anthropic, stream=True)
    assert whole.json["usage"]["input_tokens"] > 0
    assert whole.json["usage"]["output_tokens"] == 1
    assert streamed.events[0][1]["message"]["usage"] == whole.json["usage"]


async def test_scripted_usage_wins(open_llm: Any, ask: Any, anthropic: Any) -> None:
    """Numbers of the script are reported as they are, zero included."""
    llm = await open_llm(Reply((Text("Hello"),), Usage(8000, 0)))
    received = await ask(llm, anthropic, stream=True)
    assert received.events[0][1]["message"]["usage"]["input_tokens"] == 8000
    assert received.events[-2][1]["usage"]["output_tokens"] == 0


async def test_cut_arguments_arrive_as_far_as_the_wire_carries_them(open_llm: Any, ask: Any, anthropic: Any) -> None:
    """After a stop at max_tokens in mid argument a stream has its beginning; a whole reply's input is an object."""
    llm = await open_llm(Reply((ToolCall("shell", raw_args='{"comm'),), stop="max_tokens"))
    whole, streamed = await ask(llm, anthropic), await ask(llm, anthropic, stream=True)
    parts = [data["delta"].get("partial_json", "") for _, data in streamed.events if "delta" in data]
    assert whole.json["content"][0]["input"] == {}
    assert whole.json["stop_reason"] == "max_tokens"
    assert "".join(parts) == '{"comm'


async def test_a_call_without_a_character_of_arguments_has_an_empty_object(
    open_llm: Any, ask: Any, anthropic: Any
) -> None:
    """As clients read a stream without a piece of them."""
    whole = await ask(await open_llm(Reply((ToolCall("shell", {"command": "ls"}, raw_args=""),))), anthropic)
    assert whole.json["content"][0]["input"] == {}


async def test_made_up_ids_are_unique_and_the_same_in_every_run(open_llm: Any, ask: Any, anthropic: Any) -> None:
    """Two calls of one reply and two replies never share an id; another server generates the same ids."""
    reply = Reply((ToolCall("shell"), ToolCall("shell")))
    runs = []
    for llm in (await open_llm(reply), await open_llm(reply)):
        replies = [(await ask(llm, anthropic)).json for _ in range(2)]
        runs.append([*(r["id"] for r in replies), *(block["id"] for r in replies for block in r["content"])])
    assert len(set(runs[0])) == 6
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (418, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (529, "overloaded_error"),
    ],
)
async def test_errors_have_the_providers_shape(open_llm: Any, ask: Any, anthropic: Any, status: int, kind: str) -> None:
    """Each status has its error type, and the body names the request as the header does."""
    received = await ask(await open_llm(Failure(status)), anthropic)
    assert received.status == status
    assert received.json["type"] == "error"
    assert received.json["error"]["type"] == kind
    assert received.json["error"]["message"]
    assert received.json["request_id"] == received.headers["request-id"]


GOOD = {
    "text after results": [*JUST_USER, calling("a"), answering("a", text="and now?")],
    "results in any order": [*JUST_USER, calling("a", "b"), answering("b", "a")],
    "results in two messages": [*JUST_USER, calling("a", "b"), answering("a"), answering("b")],
    "calls in two messages": [*JUST_USER, calling("a"), calling("b"), answering("a", "b")],
    "two user messages": [*JUST_USER, *JUST_USER],
    "assistant first": [{"role": "assistant", "content": "Hello"}, *JUST_USER],
    "a prefill": [*JUST_USER, {"role": "assistant", "content": "It is"}],
    "an empty last word": [*JUST_USER, {"role": "assistant", "content": ""}],
}


@pytest.mark.parametrize("messages", GOOD.values(), ids=GOOD)
async def test_what_the_provider_accepts_is_answered(open_llm: Any, ask: Any, anthropic: Any, messages: Any) -> None:
    """The validator is not stricter than the provider."""
    assert (await ask(await open_llm(), anthropic, messages=messages)).status == 200


SYSTEM = {"role": "system", "content": "Be brief."}
AMONG = {
    "last": [*JUST_USER, SYSTEM],
    "before the model": [*JUST_USER, SYSTEM, calling("a"), answering("a"), SYSTEM],
}
NOT_AMONG = {
    "first": [SYSTEM, *JUST_USER],
    "alone": [SYSTEM],
    "behind the model": [*JUST_USER, calling("a"), SYSTEM, answering("a")],
    "behind the model, and last": [*JUST_USER, {"role": "assistant", "content": "Hello"}, SYSTEM],
    "before the user": [*JUST_USER, SYSTEM, *JUST_USER],
    "twice": [*JUST_USER, SYSTEM, SYSTEM],
    "an image": [*JUST_USER, {"role": "system", "content": [{"type": "image", "source": {}}]}],
}


@pytest.mark.parametrize("messages", AMONG.values(), ids=AMONG)
@pytest.mark.parametrize(
    ("model", "status"), [("claude-opus-4-8", 200), ("claude-fable-5-1", 200), ("claude-sonnet-4-6", 400)]
)
async def test_newer_models_accept_system_messages_behind_the_users(
    open_llm: Any, ask: Any, anthropic: Any, messages: Any, model: str, status: int
) -> None:
    """Older ones refuse the role."""
    assert (await ask(await open_llm(), anthropic, model=model, messages=messages)).status == status


@pytest.mark.parametrize("messages", NOT_AMONG.values(), ids=NOT_AMONG)
async def test_a_system_message_elsewhere_is_refused(open_llm: Any, ask: Any, anthropic: Any, messages: Any) -> None:
    """It stands between a user and the model, and is text."""
    refused = await ask(await open_llm(), anthropic, model="claude-opus-4-8", messages=messages)
    assert refused.status == 400 and "`system` message" in refused.json["error"]["message"]


UNPAIRED = "`tool_use` ids were found without `tool_result` blocks immediately after: "
ORPHAN = "unexpected `tool_use_id` found in `tool_result` blocks: "
PAIRING = {
    "no result": ([*JUST_USER, calling("a"), *JUST_USER], f"messages.1: {UNPAIRED}a. Each"),
    "no next message": ([*JUST_USER, calling("a", "b")], f"messages.1: {UNPAIRED}a, b. Each"),
    "one of two": ([*JUST_USER, calling("a", "b"), answering("b")], f"messages.1: {UNPAIRED}a. Each"),
    "text first": (
        [
            *JUST_USER,
            calling("a"),
            {"role": "user", "content": [{"type": "text", "text": "x"}, *answering("a")["content"]]},
        ],
        f"messages.1: {UNPAIRED}a.",
    ),
    "a message between": ([*JUST_USER, calling("a"), *JUST_USER, answering("a")], f"messages.1: {UNPAIRED}a."),
    "orphan": ([answering("z"), *JUST_USER], f"messages.0.content.0: {ORPHAN}z. Each"),
    "late": (
        [*JUST_USER, calling("a"), answering("a"), {"role": "assistant", "content": "ok"}, answering("a")],
        f"messages.4.content.0: {ORPHAN}a. Each",
    ),
    "twice answered": (
        [*JUST_USER, calling("a"), answering("a", "a")],
        "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a",
    ),
    "same id": (
        [*JUST_USER, calling("a"), answering("a"), calling("a"), answering("a")],
        "messages.3.content.0: `tool_use` ids must be unique",
    ),
    "call of a user": (
        [{"role": "user", "content": calling("a")["content"]}],
        "messages.0: `tool_use` blocks can only be in `assistant` messages",
    ),
    "result of an assistant": (
        [*JUST_USER, {"role": "assistant", "content": answering("a")["content"]}],
        "messages.1: `tool_result` blocks can only be in `user` messages",
    ),
}


@pytest.mark.parametrize(("messages", "words"), PAIRING.values(), ids=PAIRING)
async def test_broken_pairs_are_refused_in_the_providers_words(
    open_llm: Any, ask: Any, recorder: Any, anthropic: Any, messages: Any, words: str
) -> None:
    """Each refusal is a 400 of type invalid_request_error, reported as a pairing refusal."""
    received = await ask(await open_llm(), anthropic, messages=messages)
    (refused,) = (fact for fact in recorder.facts if type(fact).__name__ == "RefusalSent")
    assert (received.status, received.json["error"]["type"]) == (400, "invalid_request_error")
    assert received.json["error"]["message"].startswith(words)
    assert (refused.pairing, refused.scripted, refused.enforced) == (True, False, True)
    assert recorder.all(RequestSeen)[0].conversation is not None


BAD = {
    "no model": ({"model": None, "max_tokens": 1, "messages": JUST_USER}, "model: Input should be a valid string"),
    "no max_tokens": ({"model": "m", "messages": JUST_USER}, "max_tokens: Field required"),
    "max_tokens 0": ({"model": "m", "max_tokens": 0, "messages": JUST_USER}, "max_tokens: Input should be greater"),
    "no messages": ({"model": "m", "max_tokens": 1}, "messages: Field required"),
    "empty messages": ({"model": "m", "max_tokens": 1, "messages": []}, "messages: at least one message is required"),
    "system role": (
        {"model": "m", "max_tokens": 1, "messages": [{"role": "system", "content": "x"}]},
        'messages: Unexpected role "system".',
    ),
    "tool role": (
        {"model": "m", "max_tokens": 1, "messages": [{"role": "tool", "content": "x"}]},
        'messages: Unexpected role "tool". Allowed roles are "user" or "assistant".',
    ),
    "a list as role": (
        {"model": "m", "max_tokens": 1, "messages": [{"role": ["user"], "content": "x"}]},
        "messages: Unexpected role \"['user']\".",
    ),
    "a list as id": (
        {
            "model": "m",
            "max_tokens": 1,
            "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": []}]}],
        },
        "messages.0.content.0.tool_result.tool_use_id: Input should be a valid string",
    ),
    "empty user": (
        {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": ""}]},
        "messages.0: user messages must have non-empty content",
    ),
    "empty in between": (
        {"model": "m", "max_tokens": 1, "messages": [*JUST_USER, {"role": "assistant", "content": []}, *JUST_USER]},
        "messages.1: all messages must have non-empty content",
    ),
    "blank text": (
        {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": " \n"}]},
        "messages: text content blocks must contain non-whitespace text",
    ),
    "trailing space": (
        {"model": "m", "max_tokens": 1, "messages": [*JUST_USER, {"role": "assistant", "content": "It "}]},
        "messages: final assistant content cannot end with trailing whitespace",
    ),
    "arguments no object": (
        {
            "model": "m",
            "max_tokens": 1,
            "messages": [
                {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "n", "input": "{"}]},
                answering("a"),
            ],
        },
        "messages.0.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    "an id that is null": (
        {
            "model": "m",
            "max_tokens": 1,
            "messages": [
                {"role": "assistant", "content": [{"type": "tool_use", "id": None, "name": "n", "input": {}}]},
                answering("a"),
            ],
        },
        "messages.0.content.0.tool_use.id: Input should be a valid string",
    ),
    "no JSON": (b'{"model":', "The request body is not valid JSON"),
    "no object": (b"[]", "The request body is not valid JSON"),
}


@pytest.mark.parametrize(("document", "words"), BAD.values(), ids=BAD)
async def test_other_bad_requests_are_refused_too(
    open_llm: Any, ask: Any, recorder: Any, anthropic: Any, document: Any, words: str
) -> None:
    """Other mistakes are refused, not as pairing refusals."""
    received = await ask(await open_llm(), anthropic, document)
    (refused,) = (fact for fact in recorder.facts if type(fact).__name__ == "RefusalSent")
    assert received.status == 400
    assert received.json["error"]["message"].startswith(words)
    assert refused.pairing is False


async def test_a_key_and_a_version_are_needed(open_llm: Any, ask: Any, anthropic: Any) -> None:
    """No key is a 401, no version header a 400; a bearer token is as good as `x-api-key`."""
    llm = await open_llm()
    version = {"anthropic-version": "2023-06-01"}
    statuses = [
        (await ask(llm, anthropic, headers=headers)).status
        for headers in (version, {"x-api-key": "k"}, {**version, "Authorization": "Bearer k"})
    ]
    assert statuses == [401, 400, 200]


async def test_a_request_is_read_into_one_view(open_llm: Any, ask: Any, recorder: Any, anthropic: Any) -> None:
    """System text comes first, results are in their own message before the text."""
    await ask(
        await open_llm(),
        anthropic,
        path="/v1/messages?beta=true",
        system=[{"type": "text", "text": "Be brief."}],
        messages=[*JUST_USER, calling("a"), answering("a", text="and now?")],
        tools=[{"name": "shell", "description": "runs", "input_schema": {"type": "object"}}],
    )
    seen = recorder.all(RequestSeen)[0]
    messages = seen.conversation.messages
    assert [message.role for message in messages] == ["system", "user", "assistant", "tool", "user"]
    assert [message.text for message in messages] == ["Be brief.", "go", "", "", "and now?"]
    assert (messages[2].tool_calls[0].id, messages[2].tool_calls[0].arguments) == ("a", "{}")
    assert (messages[3].tool_results[0].call_id, messages[3].tool_results[0].text) == ("a", "ok")
    assert (seen.conversation.tools[0].name, seen.conversation.max_tokens) == ("shell", 64)
    assert (seen.path, seen.wire) == ("/v1/messages?beta=true", "anthropic")


async def test_tokens_can_be_counted_without_a_reply(open_llm: Any, ask: Any, anthropic: Any) -> None:
    """The count needs no max_tokens, and bad histories are refused there too."""
    llm = await open_llm()
    path = "/v1/messages/count_tokens"
    counted = await ask(llm, anthropic, {"model": "m", "messages": JUST_USER}, path=path)
    refused = await ask(llm, anthropic, {"model": "m", "messages": [calling("a")]}, path=path)
    assert counted.json == {"input_tokens": 4}
    assert UNPAIRED in refused.json["error"]["message"]
