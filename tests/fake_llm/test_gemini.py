"""Gemini: replies as bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fake_llm.conftest import Gemini
from wedgehog.fake_llm.edit_kinds import EarlyEnd, ErrorEvent, PingsOnly
from wedgehog.fake_llm.observer import RefusalSent, RequestSeen, WriteEnded
from wedgehog.fake_llm.reply import Failure, Reply, Text, Thinking, ToolCall, Usage

MODELS = "/v1beta/models"
RICH = Reply(
    (Thinking("Hm hm."), Text("Let me look."), ToolCall("shell", {"command": "ls"}, id="1x2x1"), ToolCall("shell"))
)
USER = {"role": "user", "parts": [{"text": "go"}]}
COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
CALL_PLACE = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
RESPONSE_PLACE = "Please ensure that function response turn comes immediately after a function call turn."
SSE = f"{MODELS}/m:streamGenerateContent?alt=sse"
ARRAY = f"{MODELS}/m:streamGenerateContent"


def calling(*names: str, **more: Any) -> dict[str, Any]:
    return {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}, **more} for name in names]}


def answering(*names: str, **more: Any) -> dict[str, Any]:
    answers = [{"functionResponse": {"name": name, "response": {"result": "ok"}}} for name in names]
    return {"role": "user", "parts": [*answers, *more.get("also", [])]}


def chunks(received: Any) -> list[Any]:
    """The responses of a stream of events."""
    blocks = received.body.decode().split("\r\n\r\n")[:-1]
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def parts(responses: list[Any]) -> list[Any]:
    return [part for response in responses for part in response["candidates"][0]["content"]["parts"]]


async def test_a_response_holds_text_and_calls(open_llm: Any, ask: Any) -> None:
    """The first of parallel calls is signed, thoughts are billed and not shown, and the model is the path's."""
    received = await ask(await open_llm(RICH), Gemini)
    (candidate,) = received.json["candidates"]
    text, first, second = candidate["content"]["parts"]
    assert text == {"text": "Let me look."}
    assert first["functionCall"] == {"id": "call_1x2x1", "name": "shell", "args": {"command": "ls"}}
    assert first["thoughtSignature"]
    assert "thoughtSignature" not in second
    assert (candidate["finishReason"], candidate["content"]["role"]) == ("STOP", "model")
    assert received.json["modelVersion"] == "m"
    usage = received.json["usageMetadata"]
    assert usage["thoughtsTokenCount"] == 2
    assert usage["totalTokenCount"] == usage["promptTokenCount"] + usage["candidatesTokenCount"] + 2


async def test_thoughts_are_shown_where_they_are_asked_for(open_llm: Any, ask: Any) -> None:
    """`includeThoughts` brings them as parts of their own kind, streamed or not."""
    llm = await open_llm(RICH)
    config = {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
    whole, streamed = await ask(llm, Gemini, **config), await ask(llm, Gemini, path=SSE, **config)
    assert whole.json["candidates"][0]["content"]["parts"][0] == {"text": "Hm hm.", "thought": True}
    assert "".join(part["text"] for part in parts(chunks(streamed)) if part.get("thought")) == "Hm hm."


async def test_a_blocked_prompt_has_no_candidates(open_llm: Any, ask: Any) -> None:
    """But a reason, streamed or not."""
    llm = await open_llm(Reply(stop="end", no_choice=True))
    whole, streamed = await ask(llm, Gemini), await ask(llm, Gemini, path=SSE)
    for told in (whole.json, *chunks(streamed)):
        assert "candidates" not in told and told["promptFeedback"] == {"blockReason": "OTHER"}


async def test_a_call_that_could_not_be_read_ends_the_reply(open_llm: Any, ask: Any) -> None:
    """With a reason of its own and no parts, streamed or not."""
    llm = await open_llm(Reply(stop="end", broken_call=True))
    whole, streamed = await ask(llm, Gemini), await ask(llm, Gemini, path=SSE)
    for told in (whole.json, *chunks(streamed)):
        (candidate,) = told["candidates"]
        assert candidate["content"] == {} and candidate["finishReason"] == "MALFORMED_FUNCTION_CALL"


async def test_a_stream_says_the_same_in_events(open_llm: Any, ask: Any) -> None:
    """Pieces of text, each call whole, and last the reason and the whole bill; all bear one id."""
    received = await ask(await open_llm(RICH), Gemini, path=SSE)
    said = chunks(received)
    calls = [part["functionCall"] for part in parts(said) if "functionCall" in part]
    assert received.headers["content-type"].startswith("text/event-stream")
    assert "".join(part.get("text", "") for part in parts(said)) == "Let me look."
    assert [call["name"] for call in calls] == ["shell", "shell"]
    assert len({call["id"] for call in calls}) == 2
    assert [response["candidates"][0].get("finishReason") for response in said][-2:] == [None, "STOP"]
    assert len({response["responseId"] for response in said}) == 1
    counted = [response["usageMetadata"]["totalTokenCount"] for response in said]
    assert counted == sorted(counted)


async def test_without_alt_a_stream_is_one_array(open_llm: Any, ask: Any, recorder: Any) -> None:
    """The body is JSON as a whole and holds the very responses that events would bring."""
    llm = await open_llm(RICH)
    array, events = await ask(llm, Gemini, path=ARRAY), await ask(llm, Gemini, path=SSE)
    await recorder.wait_for(WriteEnded, 2)
    said = [
        [(part.get("text"), part.get("functionCall", {}).get("name")) for part in parts(all_of_it)]
        for all_of_it in (array.json, chunks(events))
    ]
    assert array.headers["content-type"].startswith("application/json")
    assert said[0] == said[1]
    assert tuple(mark.end for mark in recorder.all(WriteEnded)[0].frames) == array.ends
    assert recorder.all(RequestSeen)[0].conversation.stream is True


async def test_an_array_is_closed_wherever_it_ends(open_llm: Any, ask: Any) -> None:
    """An early end and an error leave valid JSON behind; the error takes the place of a response."""
    early = await ask(await open_llm(Reply((Text("Hello you"),), edits=(EarlyEnd(2),))), Gemini, path=ARRAY)
    empty = await ask(await open_llm(Reply((Text("Hello you"),), edits=(EarlyEnd(0),))), Gemini, path=ARRAY)
    failed = await ask(await open_llm(Reply((Text("Hello you"),), edits=(ErrorEvent(0, 503),))), Gemini, path=ARRAY)
    assert (len(early.json), empty.json) == (2, [])
    assert [one["error"]["status"] for one in failed.json] == ["UNAVAILABLE"]


async def test_pings_of_an_array_leave_it_open(open_llm: Any, open_wire: Any, recorder: Any) -> None:
    """Line breaks follow the last response, and no bracket closes what never ends."""
    llm = await open_llm(Reply((Text("Hello you"),), edits=(PingsOnly(1, every_s=1),)))
    wire = await open_wire(llm)
    await wire.ask(ARRAY, Gemini.request(), Gemini.headers)
    await recorder.until(lambda: len(recorder.points) > 4)
    point = recorder.points[0]
    raw = await wire.exactly(point.head + point.frame_ends[-1] + 14)
    assert raw.endswith(b"}\r\n2\r\n\r\n\r\n2\r\n\r\n\r\n")


async def test_arguments_that_are_no_object_are_malformed(open_llm: Any, ask: Any) -> None:
    """The client gets no call but the reason and the model's words; at max_tokens only the reason."""
    garbage = Reply((Text("So:"), ToolCall("shell", raw_args='{"comm')))
    cut = Reply((ToolCall("shell", raw_args='{"comm'),), stop="max_tokens")
    for path in (Gemini.path, SSE):
        received = await ask(await open_llm(garbage), Gemini, path=path)
        last = (received.json if path == Gemini.path else chunks(received)[-1])["candidates"][0]
        assert (last["finishReason"], last["finishMessage"]) == (
            "MALFORMED_FUNCTION_CALL",
            'Malformed function call: shell({"comm)',
        )
    (candidate,) = (await ask(await open_llm(cut), Gemini)).json["candidates"]
    assert (candidate["finishReason"], candidate["content"]["parts"]) == ("MAX_TOKENS", [])


async def test_scripted_usage_wins(open_llm: Any, ask: Any) -> None:
    """Numbers of the script are reported as they are, zero included."""
    received = await ask(await open_llm(Reply((Text("Hello"),), Usage(8000, 0))), Gemini, path=SSE)
    usage = chunks(received)[-1]["usageMetadata"]
    assert (usage["promptTokenCount"], usage["candidatesTokenCount"], usage["totalTokenCount"]) == (8000, 0, 8000)


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (418, "INVALID_ARGUMENT"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        (503, "UNAVAILABLE"),
        (529, "UNAVAILABLE"),
    ],
)
async def test_errors_have_the_providers_shape(open_llm: Any, ask: Any, status: int, name: str) -> None:
    """Code, message and status; in an array if the reply is one, and Retry-After beside it."""
    llm = await open_llm(Failure(status, retry_after=2))
    received, in_array = await ask(llm, Gemini), await ask(llm, Gemini, path=ARRAY)
    error = received.json["error"]
    assert (received.status, error["code"], error["status"]) == (status, status, name)
    assert error["message"]
    assert received.headers["retry-after"] == "2"
    assert in_array.json == [received.json]


@pytest.mark.parametrize(
    ("failure", "delay"),
    [(Failure(429, retry_after=2), "2s"), (Failure(429, retry_after="date:0"), "0s"), (Failure(429), None)],
)
async def test_a_limit_says_in_its_details_when_to_come_again(
    open_llm: Any, ask: Any, failure: Failure, delay: str | None
) -> None:
    """Google's own server says it only there; clients that look for it would find nothing."""
    received = await ask(await open_llm(failure), Gemini)
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    assert received.json["error"].get("details") == ([info] if delay else None)


GOOD = {
    "two calls": [USER, calling("a", "b"), answering("b", "a")],
    "in several contents": [USER, calling("a"), calling("b"), answering("a"), answering("b")],
    "text in between": [USER, {"role": "model", "parts": [{"text": "So"}]}, calling("a"), answering("a")],
    "text beside": [USER, calling("a"), answering("a", also=[{"text": "and now?"}])],
    "two rounds": [USER, calling("a"), answering("a"), calling("a"), answering("a"), USER],
    "role of old": [USER, calling("a"), {**answering("a"), "role": "function"}],
    "no role": [{"parts": [{"text": "go"}]}],
    "an empty text": [USER, {"role": "model", "parts": [{"text": ""}]}, USER],
    "a prefill": [USER, {"role": "model", "parts": [{"text": "It is"}]}],
}


@pytest.mark.parametrize("contents", GOOD.values(), ids=GOOD)
async def test_what_the_provider_accepts_is_answered(open_llm: Any, ask: Any, contents: Any) -> None:
    """The validator is not stricter than the provider."""
    assert (await ask(await open_llm(), Gemini, contents=contents)).status == 200


PAIRING = {
    "no response": ([USER, calling("a"), USER], COUNT),
    "at the end": ([USER, calling("a")], COUNT),
    "one of two": ([USER, calling("a", "b"), answering("a")], COUNT),
    "one too many": ([USER, calling("a"), answering("a", "a")], COUNT),
    "late": ([USER, calling("a"), USER, {"role": "model", "parts": [{"text": "x"}]}, answering("a")], COUNT),
    "orphan": ([answering("a")], RESPONSE_PLACE),
    "orphan after text": ([USER, {"role": "model", "parts": [{"text": "x"}]}, answering("a")], RESPONSE_PLACE),
    "response of the model": ([USER, {**answering("a"), "role": "model"}], RESPONSE_PLACE),
    "call first": ([calling("a"), answering("a")], CALL_PLACE),
    "call of the user": ([USER, {**calling("a"), "role": "user"}], CALL_PLACE),
}


@pytest.mark.parametrize(("contents", "words"), PAIRING.values(), ids=PAIRING)
async def test_broken_pairs_are_refused_in_the_providers_words(
    open_llm: Any, ask: Any, recorder: Any, contents: Any, words: str
) -> None:
    """Each refusal is a 400 INVALID_ARGUMENT, reported as a pairing refusal."""
    received = await ask(await open_llm(), Gemini, contents=contents)
    (refused,) = recorder.all(RefusalSent)
    assert (received.status, received.json["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert received.json["error"]["message"] == words
    assert (refused.pairing, refused.scripted, refused.enforced) == (True, False, True)


BAD = {
    "no contents": ({}, "* GenerateContentRequest.contents: contents is not specified"),
    "contents of words": ({"contents": "Hi"}, "Invalid value at 'contents' (type.googleapis.com"),
    "system role": ({"contents": [{"role": "system", "parts": [{"text": "x"}]}]}, "Please use a valid role: user, mo"),
    "no parts": ({"contents": [{"role": "user"}]}, "* GenerateContentRequest.contents[0].parts: contents.parts must"),
    "an empty model": (
        {"contents": [USER, {"role": "model", "parts": []}, USER]},
        "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.",
    ),
    "an empty part": ({"contents": [{"parts": [{}]}]}, "* GenerateContentRequest.contents[0].parts[0].data: required"),
    "text of numbers": ({"contents": [{"parts": [{"text": 1}]}]}, "Invalid value at 'contents[0].parts[0].text' (TYPE"),
    "a nameless response": (
        {"contents": [USER, calling("a"), answering("")]},
        "* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.",
    ),
    "a response of words": (
        {"contents": [USER, calling("a"), {"parts": [{"functionResponse": {"name": "a", "response": "ok"}}]}]},
        "Invalid value at 'contents[2].parts[0].function_response.response' (type.googleapis.com",
    ),
    "a bad name": (
        {"contents": [USER], "tools": [{"functionDeclarations": [{"name": "1 a"}]}]},
        "* GenerateContentRequest.tools[0].function_declarations[0].name: Invalid function name.",
    ),
    "a name twice": (
        {"contents": [USER], "tools": [{"function_declarations": [{"name": "a"}, {"name": "a"}]}]},
        "Duplicate function declaration found: a",
    ),
    "candidates": ({"contents": [USER], "generationConfig": {"candidateCount": 2}}, "Multiple candidates is not"),
    "no JSON": (b"{", "Invalid JSON payload received."),
    "nothing": (b"", "Request is empty."),
}


@pytest.mark.parametrize(("document", "words"), BAD.values(), ids=BAD)
async def test_other_bad_requests_are_refused_too(
    open_llm: Any, ask: Any, recorder: Any, document: Any, words: str
) -> None:
    """Other mistakes are refused, not as pairing refusals."""
    received = await ask(await open_llm(), Gemini, document)
    (refused,) = recorder.all(RefusalSent)
    assert received.status == 400
    assert received.json["error"]["message"].startswith(words)
    assert refused.pairing is False


async def test_newer_models_want_their_signature_back(open_llm: Any, ask: Any, recorder: Any) -> None:
    """From Gemini 3 on the first call of each turn since the user's last words must be signed; it is no pairing."""
    llm = await open_llm()
    path = f"{MODELS}/gemini-3-pro:generateContent"
    signed, bare = calling("a", thoughtSignature="YQ=="), calling("a")
    histories = {
        "bare": [USER, bare, answering("a")],
        "signed": [USER, signed, bare, answering("a", "a")],
        "earlier": [USER, bare, answering("a"), {"role": "model", "parts": [{"text": "So"}]}, USER],
        "second": [USER, signed, answering("a"), bare, answering("a")],
    }
    statuses = {name: (await ask(llm, Gemini, path=path, contents=told)).status for name, told in histories.items()}
    assert statuses == {"bare": 400, "signed": 200, "earlier": 200, "second": 400}
    assert (await ask(llm, Gemini, contents=histories["bare"])).status == 200
    assert "position 2" in recorder.all(RefusalSent)[0].message
    assert not any(refused.pairing for refused in recorder.all(RefusalSent))


async def test_a_key_is_needed_in_a_header_or_in_the_address(open_llm: Any, ask: Any) -> None:
    """`x-goog-api-key`, `?key=` or a bearer token; without any it is a 403."""
    llm = await open_llm()
    bearer = {"Authorization": "Bearer k"}
    statuses = [
        (await ask(llm, Gemini, path=path, headers=headers)).status
        for path, headers in (
            (Gemini.path, {}),
            (Gemini.path, Gemini.headers),
            (f"{Gemini.path}?key=k", {}),
            (Gemini.path, bearer),
        )
    ]
    assert statuses == [403, 200, 200, 200]


async def test_a_request_is_read_into_one_view(open_llm: Any, ask: Any, recorder: Any) -> None:
    """System text first, results matched to their calls without ids, types of a schema in small letters."""
    declared = {"name": "shell", "parameters": {"type": "OBJECT", "properties": {"command": {"type": "STRING"}}}}
    call = {"functionCall": {"name": "shell", "args": {}, "id": "call_1x1"}}
    answers = answering("shell", also=[{"text": "and now?"}])
    await ask(
        await open_llm(),
        Gemini,
        path="/v1/models/gemini-2.5-flash:generateContent",
        system_instruction={"parts": {"text": "Be brief."}},
        contents=[USER, {"role": "model", "parts": [{"text": "hm", "thought": True}, call]}, answers],
        tools=[{"functionDeclarations": [declared]}],
        generationConfig={"maxOutputTokens": 5, "responseSchema": {"type": "OBJECT"}},
    )
    conversation = recorder.all(RequestSeen)[0].conversation
    system, user, model, tool, then = conversation.messages
    assert [m.role for m in (system, user, model, tool, then)] == ["system", "user", "assistant", "tool", "user"]
    assert (system.text, model.text, then.text) == ("Be brief.", "", "and now?")
    assert (model.tool_calls[0].id, model.tool_calls[0].arguments) == ("call_1x1", "{}")
    assert (tool.tool_results[0].call_id, tool.tool_results[0].text) == ("call_1x1", "ok")
    assert conversation.tools[0].schema["properties"]["command"]["type"] == "string"
    assert (conversation.model, conversation.max_tokens, conversation.schema) == (
        "gemini-2.5-flash",
        5,
        {"type": "object"},
    )


async def test_an_error_of_a_tool_is_known_as_one(open_llm: Any, ask: Any, recorder: Any) -> None:
    """A response with an `error` failed; one of several fields is given as JSON."""
    responses = [{"error": "no such file"}, {"a": 1, "b": 2}]
    answers = [{"functionResponse": {"name": "a", "response": response}} for response in responses]
    await ask(await open_llm(), Gemini, contents=[USER, calling("a", "a"), {"role": "user", "parts": answers}])
    first, second = recorder.all(RequestSeen)[0].conversation.messages[-1].tool_results
    assert (first.text, first.is_error) == ("no such file", True)
    assert (second.text, second.is_error) == ('{"a": 1, "b": 2}', False)
    assert first.call_id != second.call_id


async def test_models_are_listed_and_tokens_counted(open_llm: Any, ask: Any, recorder: Any) -> None:
    """Under both versions of the API; on the path that others share, the key's header or `?key=` identifies Gemini."""
    llm = await open_llm(models=["m", "n"])
    for path, headers in ((MODELS, Gemini.headers), ("/v1/models", Gemini.headers), ("/v1/models?key=k", {})):
        listed = await ask(llm, Gemini, b"", path=path, method="GET", headers=headers)
        assert [model["name"] for model in listed.json["models"]] == ["models/m", "models/n"]
    one = await ask(llm, Gemini, b"", path=f"{MODELS}/n", method="GET")
    none = await ask(llm, Gemini, b"", path=f"{MODELS}/z", method="GET")
    counted = await ask(llm, Gemini, path=f"{MODELS}/m:countTokens")
    wrapped = await ask(llm, Gemini, {"generateContentRequest": Gemini.request()}, path=f"{MODELS}/m:countTokens")
    refused = await ask(llm, Gemini, path=f"{MODELS}/z:countTokens")
    assert (one.json["name"], none.status, refused.status) == ("models/n", 404, 404)
    assert "models/z is not found for API version v1beta" in none.json["error"]["message"]
    assert counted.json["totalTokens"] == wrapped.json["totalTokens"] == 4
    assert recorder.all(RequestSeen)[-1].conversation is None


async def test_a_result_can_be_counted_without_its_call(open_llm: Any, ask: Any) -> None:
    """Gemini CLI counts the picture that a tool has read before it sends it."""
    alone = [{"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {"output": "ok"}}}]}]
    llm = await open_llm()
    counted = await ask(llm, Gemini, {"contents": alone}, path=f"{MODELS}/m:countTokens")
    assert (counted.status, counted.json["totalTokens"] > 0) == (200, True)
    assert (await ask(llm, Gemini, contents=alone)).status == 400
