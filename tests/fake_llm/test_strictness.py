"""The same mistakes, refused by each provider in its own words."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from wedgehog.fake_llm.observer import RefusalSent

FUNCTION = {"name": "f", "arguments": "{}"}
CHAT_CALL = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": FUNCTION}]}
NAMELESS = {"id": "a", "type": "function", "function": FUNCTION | {"name": ""}}
CHAT_RESULT = {"role": "tool", "tool_call_id": "a", "content": "x"}
ITEM_CALL = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
ITEM_RESULT = {"type": "function_call_output", "call_id": "a", "output": "x"}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
RESULT_BLOCK = {"type": "tool_result", "tool_use_id": "a", "content": "x"}
RESULTS = {"role": "user", "content": [RESULT_BLOCK]}
CALL_PART = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
RESPONSE_PART = {"functionResponse": {"name": "f", "response": {}}}
RESPONSE = {"role": "user", "parts": [RESPONSE_PART]}
SAYS = {"role": "user", "content": "go"}
ASKS = {"role": "user", "parts": [{"text": "go"}]}

WRONG: dict[str, dict[str, tuple[Any, int, str]]] = {
    "anthropic": {
        "unpaired": ({"messages": [SAYS, USE, SAYS]}, 400, "were found without `tool_result` blocks immediately after"),
        "orphan": ({"messages": [RESULTS]}, 400, "unexpected `tool_use_id` found in `tool_result` blocks: a."),
        "duplicate result": (
            {"messages": [SAYS, USE, {"role": "user", "content": [RESULT_BLOCK, RESULT_BLOCK]}]},
            400,
            "each tool_use must have a single result. Found multiple `tool_result` blocks with id: a",
        ),
        "duplicate call": ({"messages": [SAYS, USE, RESULTS, USE, RESULTS]}, 400, "`tool_use` ids must be unique"),
        "misplaced": (
            {"messages": [SAYS, {"role": "user", "content": USE["content"]}]},
            400,
            "`tool_use` blocks can only be in `assistant` messages",
        ),
        "nameless call": (
            {"messages": [SAYS, USE | {"content": [USE["content"][0] | {"name": ""}]}, RESULTS]},
            400,
            "tool_use.name: String should have at least 1 character",
        ),
        "role": ({"messages": [{"role": "tool", "content": "x"}]}, 400, 'Unexpected role "tool"'),
        "missing field": ({"max_tokens": None}, 400, "max_tokens: "),
        "unknown model": ({"model": "z"}, 404, "model: z"),
    },
    "openai-chat": {
        "unpaired": (
            {"messages": [SAYS, CHAT_CALL]},
            400,
            "The following tool_call_ids did not have response messages: a",
        ),
        "orphan": ({"messages": [SAYS, CHAT_RESULT]}, 400, "must be a response to a preceeding message"),
        "duplicate result": (
            {"messages": [SAYS, CHAT_CALL, CHAT_RESULT, CHAT_RESULT]},
            400,
            "Duplicate value for 'tool_call_id' of 'a'",
        ),
        "duplicate call": (
            {"messages": [SAYS, CHAT_CALL | {"tool_calls": 2 * CHAT_CALL["tool_calls"]}, CHAT_RESULT]},
            400,
            "Duplicate value for 'tool_call_id' of 'a' in 'tool_calls'",
        ),
        "misplaced": (
            {"messages": [SAYS, CHAT_CALL, SAYS, CHAT_RESULT]},
            400,
            "must be followed by tool messages responding to each 'tool_call_id'",
        ),
        "nameless call": (
            {"messages": [SAYS, CHAT_CALL | {"tool_calls": [NAMELESS]}, CHAT_RESULT]},
            400,
            "Invalid 'messages[1].tool_calls[0].function.name': empty string.",
        ),
        "role": ({"messages": [{"role": "robot", "content": "x"}]}, 400, "Invalid value: 'robot'. Supported values"),
        "missing field": ({"messages": [{"role": "user"}]}, 400, "Invalid value for 'content'"),
        "unknown model": ({"model": "z"}, 404, "The model `z` does not exist"),
    },
    "openai-responses": {
        "unpaired": ({"input": [ITEM_CALL]}, 400, "No tool output found for function call a."),
        "orphan": ({"input": [ITEM_RESULT]}, 400, "No tool call found for function call output with call_id a."),
        "duplicate result": (
            {"input": [ITEM_CALL, ITEM_RESULT, ITEM_RESULT]},
            400,
            "Duplicate function_call_output for call_id 'a'.",
        ),
        "duplicate call": ({"input": [ITEM_CALL, ITEM_CALL, ITEM_RESULT]}, 400, "Duplicate item found with id a."),
        "misplaced": ({"input": [ITEM_RESULT, ITEM_CALL]}, 400, "No tool call found for function call output"),
        "nameless call": (
            {"input": [ITEM_CALL | {"name": ""}, ITEM_RESULT]},
            400,
            "Invalid 'input[0].name': empty string.",
        ),
        "role": ({"input": [{"role": "robot", "content": "x"}]}, 400, "Invalid value: 'robot'. Supported values"),
        "missing field": ({"input": None}, 400, 'One of "input" or "previous_response_id"'),
        "unknown model": ({"model": "z"}, 400, "The requested model 'z' does not exist."),
    },
    "gemini": {
        "unpaired": ({"contents": [ASKS, CALL_PART, ASKS]}, 400, "number of function response parts is equal"),
        "orphan": ({"contents": [ASKS, RESPONSE]}, 400, "function response turn comes immediately after"),
        "duplicate result": (
            {"contents": [ASKS, CALL_PART, {"role": "user", "parts": [RESPONSE_PART, RESPONSE_PART]}]},
            400,
            "number of function response parts is equal",
        ),
        "duplicate call": (
            {"contents": [ASKS, CALL_PART | {"parts": 2 * CALL_PART["parts"]}, RESPONSE]},
            400,
            "number of function response parts is equal",
        ),
        "misplaced": (
            {"contents": [CALL_PART, RESPONSE]},
            400,
            "function call turn comes immediately after a user turn",
        ),
        "nameless call": (
            {"contents": [ASKS, {"role": "model", "parts": [{"functionCall": {"args": {}}}]}, RESPONSE]},
            400,
            "Name cannot be empty.",
        ),
        "role": ({"contents": [ASKS | {"role": "robot"}]}, 400, "Please use a valid role: user, model."),
        "missing field": ({"contents": [{"role": "user", "parts": []}]}, 400, "contents.parts must not be empty."),
        "unknown model": ({"model": "z"}, 404, "models/z is not found for API version v1beta"),
    },
    "ollama": {
        "missing field": ({"model": ""}, 400, "model is required"),
        "unknown model": ({"model": "z"}, 404, "model 'z' not found"),
    },
}
"""Ollama compares no calls with results, and accepts any role."""
PAIRING = ("unpaired", "orphan", "duplicate result", "duplicate call", "misplaced")
NO_KEY = {
    "anthropic": (401, "x-api-key header is required"),
    "openai-chat": (401, "You didn't provide an API key."),
    "openai-responses": (401, "You didn't provide an API key."),
    "gemini": (403, "Method doesn't allow unregistered callers"),
    "ollama": (200, ""),
}
NO_JSON = {
    "anthropic": "The request body is not valid JSON",
    "openai-chat": "We could not parse the JSON body of your request.",
    "openai-responses": "We could not parse the JSON body of your request.",
    "gemini": "Invalid JSON payload received. Unexpected token.",
    "ollama": "invalid character 'n' looking for beginning of value",
}
TOO_LARGE = {
    "anthropic": (413, "Request exceeds the maximum size"),
    "openai-chat": (413, "Request body too large."),
    "openai-responses": (413, "Request body too large."),
    "gemini": (400, "Request payload size exceeds the limit: 67108864 bytes."),
    "ollama": (413, "request body too large"),
}


@pytest.fixture
def wrong(request: pytest.FixtureRequest, provider: Any) -> tuple[str, Any, int, str]:
    """A mistake, as a request to the provider under test."""
    if request.param not in WRONG[provider.wire]:
        pytest.skip(f"{provider.wire} knows no such mistake")
    return request.param, *WRONG[provider.wire][request.param]


MISTAKES = pytest.mark.parametrize(
    "wrong", [*PAIRING, "nameless call", "role", "missing field", "unknown model"], indirect=True
)


@MISTAKES
@pytest.mark.parametrize("stream", [False, True])
async def test_a_mistake_is_refused_in_the_providers_words(
    open_llm: Any, ask: Any, recorder: Any, provider: Any, wrong: Any, stream: bool
) -> None:
    """Refused with its status and recorded; mistakes in calls and results as pairing refusals."""
    mistake, more, status, words = wrong
    received = await ask(await open_llm(models=["m"]), provider, **{"stream": stream, **more})
    (refused,) = recorder.all(RefusalSent)
    told = received.json[0] if isinstance(received.json, list) else received.json
    message = told["error"] if isinstance(told["error"], str) else told["error"]["message"]
    assert (received.status, words in message) == (status, True), message
    assert (refused.status, refused.message, refused.enforced) == (status, message, True)
    assert refused.pairing == (mistake in PAIRING)


@MISTAKES
async def test_a_lenient_server_records_it_and_answers(
    open_llm: Any, ask: Any, recorder: Any, provider: Any, wrong: Any
) -> None:
    """The same fact, not enforced."""
    mistake, more, status, words = wrong
    received = await ask(await open_llm(models=["m"], strict=False), provider, **more)
    (refused,) = recorder.all(RefusalSent)
    assert received.status == 200
    assert (refused.status, words in refused.message, refused.enforced) == (status, True, False)
    assert refused.pairing == (mistake in PAIRING)


@MISTAKES
async def test_a_gateway_takes_back_what_it_sends_itself_and_refuses_all_else(
    open_llm: Any, ask: Any, recorder: Any, provider: Any, wrong: Any
) -> None:
    """A session is not bricked by equal ids and empty names that the gateway itself has sent."""
    mistake, more, status, _ = wrong
    received = await ask(await open_llm(models=["m"], gateway=True), provider, **more)
    equal = mistake in ("duplicate call", "duplicate result") and provider.wire != "gemini"  # it has no ids
    own = equal or mistake == "nameless call"
    assert received.status == (200 if own else status)
    assert bool(recorder.all(RefusalSent)) != own


async def test_a_key_is_missed_in_the_providers_words(open_llm: Any, ask: Any, provider: Any) -> None:
    """All but Ollama refuse it."""
    headers = {name: value for name, value in provider.headers.items() if "canary" not in value}
    received = await ask(await open_llm(), provider, headers=headers | getattr(provider, "keyless", {}))
    status, words = NO_KEY[provider.wire]
    assert received.status == status
    assert status == 200 or received.error[1].startswith(words)


@pytest.mark.parametrize("strict", [True, False])
async def test_what_is_no_json_is_refused_by_all(open_llm: Any, ask: Any, provider: Any, strict: bool) -> None:
    """It cannot be answered, strict or not."""
    received = await ask(await open_llm(strict=strict), provider, b"nonsense")
    assert (received.status, received.error[1].startswith(NO_JSON[provider.wire])) == (400, True)


async def test_what_is_too_large_is_refused_by_all(open_llm: Any, ask: Any, provider: Any) -> None:
    """With the provider's status: Gemini's is 400."""
    headers = {**provider.headers, "Content-Encoding": "gzip"}
    received = await ask(await open_llm(), provider, gzip.compress(bytes(2**26 + 1), 1), headers=headers)
    assert (received.status, received.error[1]) == TOO_LARGE[provider.wire]


async def test_anthropic_takes_32_megabytes(open_llm: Any, ask: Any, anthropic: Any) -> None:
    """Not a byte more, though the server could read it."""
    llm = await open_llm()
    headers = {**anthropic.headers, "Content-Encoding": "gzip"}
    statuses = [
        (await ask(llm, anthropic, gzip.compress(b'{"x":"' + b"x" * (size - 8) + b'"}', 1), headers=headers)).status
        for size in (32 * 2**20, 32 * 2**20 + 1)
    ]
    assert statuses == [400, 413]
