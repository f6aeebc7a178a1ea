"""Ollama: what is said, in its bytes."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from wedgehog.fake_llm.edit_kinds import EarlyEnd, ErrorEvent, PingsOnly
from wedgehog.fake_llm.observer import RefusalSent, RequestSeen, WriteEnded, WriteStarted
from wedgehog.fake_llm.reply import Failure, Reply, Text, Thinking, ToolCall, Usage

RICH = Reply(
    (Thinking("Hm hm."), Text("Let me look."), ToolCall("shell", {"command": "ls"}, id="1x2x1"), ToolCall("shell"))
)
USER = {"role": "user", "content": "go"}


class Ollama:
    wire = "ollama"
    path = "/api/chat"
    headers: ClassVar[dict[str, str]] = {}

    @staticmethod
    def request(text: str = "Hi", **more: Any) -> dict[str, Any]:
        return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


GENERATE = {"path": "/api/generate"}
PROMPT = {"model": "m", "prompt": "Hi"}


def lines(received: Any) -> list[Any]:
    return [json.loads(line) for line in received.body.decode().splitlines()]


def calling(*names: str, **more: Any) -> dict[str, Any]:
    calls = [{"function": {"name": name, "arguments": {}}, **more} for name in names]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def answering(text: str = "ok", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": text, **more}


async def test_an_answer_holds_thinking_text_and_calls(open_llm: Any, ask: Any) -> None:
    """Arguments are objects, counts and durations belong to it, and no key is needed."""
    received = await ask(await open_llm(RICH), Ollama, stream=False)
    message = received.json["message"]
    assert (message["role"], message["content"], message["thinking"]) == ("assistant", "Let me look.", "Hm hm.")
    first, second = message["tool_calls"]
    assert first == {"id": "call_1x2x1", "function": {"index": 0, "name": "shell", "arguments": {"command": "ls"}}}
    assert (second["function"]["index"], second["id"] != first["id"]) == (1, True)
    assert (received.json["done"], received.json["done_reason"]) == (True, "stop")
    assert min(received.json[name] for name in ("prompt_eval_count", "eval_count", "total_duration")) > 0


async def test_a_stream_is_the_default_and_says_the_same_in_lines(open_llm: Any, ask: Any, recorder: Any) -> None:
    """Each line is an object; calls come whole, and the last line is done and has the counts."""
    received = await ask(await open_llm(RICH), Ollama)
    *said, last = lines(received)
    calls = [call for line in said for call in line["message"].get("tool_calls", [])]
    assert received.headers["content-type"] == "application/x-ndjson"
    assert "".join(line["message"]["content"] for line in said) == "Let me look."
    assert "".join(line["message"].get("thinking", "") for line in said) == "Hm hm."
    assert [call["function"]["name"] for call in calls] == ["shell", "shell"]
    assert not any(line["done"] for line in said)
    assert (last["done"], last["done_reason"], last["message"]["content"]) == (True, "stop", "")
    assert last["eval_count"] == recorder.all(WriteEnded)[0].output_tokens
    assert recorder.all(RequestSeen)[0].conversation.stream is True


async def test_a_prompt_is_completed_in_the_same_way(open_llm: Any, ask: Any, recorder: Any) -> None:
    """`/api/generate` says `response`, has no calls and writes them as text."""
    llm = await open_llm(RICH)
    whole = await ask(llm, Ollama, {**PROMPT, "stream": False, "system": "Be brief."}, **GENERATE)
    streamed = await ask(llm, Ollama, PROMPT, **GENERATE)
    expected = 'Let me look.{"name":"shell","arguments":{"command":"ls"}}{"name":"shell","arguments":{}}'
    assert (whole.json["response"], whole.json["thinking"]) == (expected, "Hm hm.")
    assert "".join(line["response"] for line in lines(streamed)) == expected
    assert whole.json["context"]
    system, user = recorder.all(RequestSeen)[0].conversation.messages
    assert (system.role, system.text, user.text) == ("system", "Be brief.", "Hi")


async def test_arguments_that_are_no_object_are_text(open_llm: Any, ask: Any) -> None:
    """What the provider cannot parse as a call it passes on as words; a cut reply is done because of its length."""
    llm = await open_llm(Reply((ToolCall("shell", raw_args='{"comm'),), stop="max_tokens"))
    whole, streamed = await ask(llm, Ollama, stream=False), await ask(llm, Ollama)
    assert whole.json["message"] == {"role": "assistant", "content": '{"name":"shell","arguments":{"comm'}
    assert "".join(line["message"]["content"] for line in lines(streamed)) == '{"name":"shell","arguments":{"comm'
    assert (whole.json["done_reason"], lines(streamed)[-1]["done_reason"]) == ("length", "length")


async def test_a_call_without_a_character_of_arguments_has_an_empty_object(open_llm: Any, ask: Any) -> None:
    """A parser of calls has nothing to refuse there; a call that was cut before its arguments stays text."""
    whole = await ask(await open_llm(Reply((ToolCall("shell", {"command": "ls"}, raw_args=""),))), Ollama, stream=False)
    cut = Reply((ToolCall("shell", {"command": "ls"}, raw_args=""),), stop="max_tokens")
    (call,) = whole.json["message"]["tool_calls"]
    assert (call["function"]["name"], call["function"]["arguments"]) == ("shell", {})
    assert "tool_calls" not in (await ask(await open_llm(cut), Ollama, stream=False)).json["message"]


async def test_scripted_usage_wins(open_llm: Any, ask: Any) -> None:
    """Numbers of the script are reported as they are, zero included."""
    last = lines(await ask(await open_llm(Reply((Text("Hello"),), Usage(8000, 0))), Ollama))[-1]
    assert (last["prompt_eval_count"], last["eval_count"]) == (8000, 0)


async def test_reply_faults_fall_on_lines(open_llm: Any, ask: Any, recorder: Any) -> None:
    """An early end leaves that many lines, and an error is a line of its own with a string."""
    words = (Text("Hello, how are you?"),)
    early = await ask(await open_llm(Reply(words, edits=(EarlyEnd(2),))), Ollama)
    failed = await ask(await open_llm(Reply(words, edits=(ErrorEvent(3, 500, "Broken."),))), Ollama)
    assert [line["message"]["content"] for line in lines(early)] == ["Hell", "o, h"]
    assert (len(lines(failed)), lines(failed)[-1]) == (4, {"error": "Broken."})
    assert [started.edited for started in recorder.all(WriteStarted)] == [("early_end",), ("error_event",)]


async def test_pings_are_lines_without_words(open_llm: Any, open_wire: Any, recorder: Any) -> None:
    """Clients read every line as JSON, so that what keeps a stream alive is a message that says nothing."""
    wire = await open_wire(await open_llm(Reply((Text("Hello"),), edits=(PingsOnly(1),))))
    await wire.ask(Ollama.path, Ollama.request(), Ollama.headers)
    await recorder.until(lambda: len(recorder.points) > 3)
    point = recorder.points[0]
    size = int((await wire.exactly(point.head + point.frame_ends[-1] + 4))[-4:-2], 16)
    ping = json.loads(await wire.exactly(size))
    assert (ping["message"], ping["done"]) == ({"role": "assistant", "content": ""}, False)


@pytest.mark.parametrize("status", [400, 401, 404, 418, 429, 500, 503, 529])
async def test_errors_are_one_string(open_llm: Any, ask: Any, recorder: Any, status: int) -> None:
    """There is no kind and no code, only words, and Retry-After beside them."""
    received = await ask(await open_llm(Failure(status, retry_after=2)), Ollama)
    (refused,) = recorder.all(RefusalSent)
    assert received.status == status
    assert received.json == {"error": refused.message}
    assert (refused.message != "", refused.kind, received.headers["retry-after"]) == (True, "", "2")


HISTORIES = {
    "no result": [USER, calling("a"), USER],
    "at the end": [USER, calling("a")],
    "orphan": [answering()],
    "twice answered": [USER, calling("a"), answering(), answering()],
    "any role": [{"role": "observer", "content": "x"}],
    "no content": [USER, {"role": "assistant"}],
}


@pytest.mark.parametrize("messages", HISTORIES.values(), ids=HISTORIES)
async def test_no_history_is_refused_for_its_pairs(open_llm: Any, ask: Any, recorder: Any, messages: Any) -> None:
    """The provider puts any history into a template, so nothing is refused or recorded."""
    assert (await ask(await open_llm(), Ollama, messages=messages)).status == 200
    assert recorder.all(RefusalSent) == []


BAD = {
    "nothing": (b"", 400, "missing request body"),
    "no JSON": (b"hello", 400, "invalid character 'h' looking for beginning of value"),
    "cut JSON": (b'{"model":', 400, "unexpected EOF"),
    "a list": (b"[]", 400, "json: cannot unmarshal array into Go value of type api.ChatRequest"),
    "no model": ({"messages": [USER]}, 400, "model is required"),
    "messages of words": (
        {"model": "m", "messages": "Hi"},
        400,
        "json: cannot unmarshal string into Go struct field ChatRequest.messages of type []api.Message",
    ),
    "content of parts": (
        {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        400,
        "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string",
    ),
    "arguments of words": (
        {"model": "m", "messages": [{"tool_calls": [{"function": {"name": "a", "arguments": "{}"}}]}]},
        400,
        "json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments of "
        "type api.ToolCallFunctionArguments",
    ),
    "an unknown model": ({"model": "z", "messages": [USER]}, 404, "model 'z' not found"),
    "logprobs": ({"model": "m", "messages": [USER], "top_logprobs": 21}, 400, "top_logprobs must be between 0 and 20"),
}


@pytest.mark.parametrize(("document", "status", "words"), BAD.values(), ids=BAD)
async def test_bad_requests_are_refused_in_the_providers_words(
    open_llm: Any, ask: Any, recorder: Any, document: Any, status: int, words: str
) -> None:
    """Mostly it is its JSON decoder that speaks."""
    received = await ask(await open_llm(models=["m"]), Ollama, document)
    (refused,) = recorder.all(RefusalSent)
    assert (received.status, received.json) == (status, {"error": words})
    assert (refused.pairing, refused.scripted) == (False, False)


async def test_a_request_is_read_into_one_view(open_llm: Any, ask: Any, recorder: Any) -> None:
    """Results belong to the calls that wait, by id, by the tool's name or by their order."""
    await ask(
        await open_llm(),
        Ollama,
        messages=[
            {"role": "system", "content": "Be brief."},
            USER,
            calling("a", "b", "a"),
            answering("of b", tool_name="b"),
            answering("of a"),
            answering("of the other a"),
            calling("c", id="call_1x1"),
            answering("of c", tool_call_id="call_1x1"),
        ],
        tools=[{"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}],
        format={"type": "object", "properties": {}},
        options={"num_predict": 5},
    )
    conversation = recorder.all(RequestSeen)[0].conversation
    roles = ["system", "user", "assistant", "tool", "tool", "tool", "assistant", "tool"]
    assert [message.role for message in conversation.messages] == roles
    calls = [call.id for message in conversation.messages for call in message.tool_calls]
    results = {r.text: r.call_id for message in conversation.messages for r in message.tool_results}
    assert results == {"of b": calls[1], "of a": calls[0], "of the other a": calls[2], "of c": "call_1x1"}
    assert len(set(calls)) == 4
    of_call = {r.text: bool(r.asked) for message in conversation.messages for r in message.tool_results}
    assert of_call == {"of b": True, "of a": True, "of the other a": True, "of c": False}
    assert (conversation.tools[0].name, conversation.max_tokens) == ("shell", 5)
    assert conversation.schema == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("path", "document", "reason"),
    [
        ("/api/chat", {"model": "m"}, "load"),
        ("/api/chat", {"model": "m", "messages": []}, "load"),
        ("/api/generate", {"model": "m", "prompt": ""}, "load"),
        ("/api/generate", {"model": "m", "keep_alive": 0}, "unload"),
    ],
)
async def test_a_request_that_says_nothing_loads_the_model(
    open_llm: Any, ask: Any, recorder: Any, path: str, document: Any, reason: str
) -> None:
    """It is no call of a model: no script is asked, and it costs nothing."""
    received = await ask(await open_llm(), Ollama, document, path=path)
    assert (received.json["done"], received.json["done_reason"]) == (True, reason)
    assert recorder.all(WriteStarted) == []
    assert recorder.all(RequestSeen)[0].conversation is None


async def test_models_are_listed_and_shown(open_llm: Any, ask: Any) -> None:
    """Tags, one model, what runs, and the version; none of it needs a key."""
    llm = await open_llm(models=["m", "n"])
    tags = await ask(llm, Ollama, b"", path="/api/tags", method="GET")
    shown = await ask(llm, Ollama, {"model": "n"}, path="/api/show")
    unknown = await ask(llm, Ollama, {"model": "z"}, path="/api/show")
    running = await ask(llm, Ollama, b"", path="/api/ps", method="GET")
    version = await ask(llm, Ollama, b"", path="/api/version", method="GET")
    missing = await ask(llm, Ollama, b"", path="/api/nowhere", method="GET")
    assert [model["name"] for model in tags.json["models"]] == ["m", "n"]
    assert "tools" in shown.json["capabilities"]
    assert (unknown.status, unknown.json) == (404, {"error": "model 'z' not found"})
    assert (running.json, missing.status) == ({"models": []}, 404)
    assert version.json["version"]
