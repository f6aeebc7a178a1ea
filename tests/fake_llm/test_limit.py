"""The client's own limit of output tokens, on every wire, streamed and whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fake_llm.conftest import Ollama
from wedgehog.fake_llm.observer import WriteEnded
from wedgehog.fake_llm.reply import Reply, Text, Thinking, ToolCall, Usage

LONG = Reply((Text("Hello, how are you today?"),))
"""Seven tokens."""
LIMIT = 20
"""The fewest that each provider allows (Responses: 16) and some."""
STORY = Text("Once upon a time there was a small town in the hills, and in it lived a cat that could not sleep at all.")
CALL = ToolCall("shell", {"command": "echo one two three four five six seven eight nine ten eleven twelve thirteen"})


def limited(provider: Any, tokens: int) -> dict[str, Any]:
    """What a client of each provider writes into its request."""
    name = {"anthropic": "max_tokens", "openai-chat": "max_completion_tokens", "openai-responses": "max_output_tokens"}
    if provider.wire == "gemini":
        return {"generationConfig": {"maxOutputTokens": tokens}}
    if provider.wire == "ollama":
        return {"options": {"num_predict": tokens}}
    told = {"stream_options": {"include_usage": True}} if provider.wire == "openai-chat" else {}
    return {name[provider.wire]: tokens, **told}


STOPS = {
    "anthropic": '"stop_reason":"max_tokens"',
    "openai-chat": '"finish_reason":"length"',
    "openai-responses": '"incomplete_details":{"reason":"max_output_tokens"}',
    "gemini": '"finishReason":"MAX_TOKENS"',
    "ollama": '"done_reason":"length"',
}


def stopped(provider: Any, received: Any) -> bool:
    """Whether the reply says, in the provider's words, that it ended at the limit."""
    return STOPS[provider.wire] in received.body.decode()


def told_tokens(received: Any) -> int:
    """The output tokens that the provider reports, in any provider's field."""
    names = ("output_tokens", "completion_tokens", "candidatesTokenCount", "eval_count")
    text = received.body.decode()
    return int(next(text.rpartition(f'"{name}":')[2].split(",")[0].rstrip("}] \r\n") for name in names if name in text))


def said_in(provider: Any, received: Any) -> str:
    """The text of a reply, streamed or whole."""
    if "event-stream" in received.headers["content-type"] or "ndjson" in received.headers["content-type"]:
        return "".join(provider.delta(data) or "" for _, data in received.events if isinstance(data, dict))
    body = received.json
    match provider.wire:
        case "anthropic":
            return str(body["content"][0]["text"])
        case "openai-chat":
            return str(body["choices"][0]["message"]["content"])
        case "openai-responses":
            return str(body["output"][0]["content"][0]["text"])
        case "gemini":
            return str(provider.delta(body))
    return str(body["message"]["content"])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_longer_text_ends_at_the_limit_with_the_wires_own_stop(
    open_llm: Any, ask: Any, provider: Any, recorder: Any, stream: bool
) -> None:
    """The client gets the first tokens of it, pays for those, and reads why it ended."""
    received = await ask(await open_llm(Reply((STORY,))), provider, stream=stream, **limited(provider, LIMIT))
    assert said_in(provider, received) == STORY.text[: 4 * LIMIT]
    assert stopped(provider, received)
    assert told_tokens(received) == LIMIT
    (ended,) = await recorder.wait_for(WriteEnded)
    assert (ended.stop, ended.output_tokens, ended.frames[-1].tokens) == ("max_tokens", LIMIT, LIMIT)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_reply_of_just_that_length_is_whole(open_llm: Any, ask: Any, provider: Any, stream: bool) -> None:
    """The limit is the number of tokens that may come."""
    reply = Reply((Text(STORY.text[: 4 * LIMIT]),))
    llm = await open_llm(reply)
    free, held = [await ask(llm, provider, stream=stream, **more) for more in ({}, limited(provider, LIMIT))]
    assert said_in(provider, held) == said_in(provider, free) == reply.items[0].text
    assert not stopped(provider, held)


async def test_the_same_script_serves_clients_with_other_limits(open_llm: Any, ask: Any, provider: Any) -> None:
    """A reply that was compiled for one is not sent to the next."""
    llm = await open_llm(Reply((STORY,)))
    lengths = [len(said_in(provider, await ask(llm, provider, **limited(provider, n)))) for n in (16, 20, 999, 16)]
    assert lengths == [64, 80, len(STORY.text), 64]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_tool_call_is_cut_in_its_arguments_where_the_wire_carries_that(
    open_llm: Any, ask: Any, provider: Any, stream: bool
) -> None:
    """Elsewhere the client gets what the provider makes of such a call; never a call that looks whole."""
    received = await ask(await open_llm(Reply((CALL,))), provider, stream=stream, **limited(provider, LIMIT))
    assert (stopped(provider, received), told_tokens(received)) == (True, LIMIT)
    text = received.body.decode()
    assert "thirteen" not in text
    match provider.wire, stream:
        case "anthropic", False:
            assert received.json["content"][0]["input"] == {}
        case "gemini", _:
            assert "functionCall" not in text
        case "ollama", _:
            assert "tool_calls" not in text
        case "openai-chat", False:
            cut = received.json["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
            whole = json.dumps(CALL.args, separators=(",", ":"))
            assert cut == whole[: 4 * LIMIT - len("shell")]


async def test_a_limit_within_a_tools_name_leaves_no_call(open_llm: Any, ask: Any, anthropic: Any) -> None:
    """What was said before it stays."""
    reply = Reply((Text("Okay"), CALL))
    received = await ask(await open_llm(reply), anthropic, max_tokens=2)
    assert received.json["content"] == [{"type": "text", "text": "Okay"}]
    assert (received.json["stop_reason"], received.json["usage"]["output_tokens"]) == ("max_tokens", 2)


async def test_thinking_counts_too(open_llm: Any, ask: Any, provider: Any) -> None:
    """A model that thinks longer than the limit says nothing."""
    llm = await open_llm(Reply((Thinking("Hm, " * 40), Text("Hello"))))
    received = await ask(llm, provider, **limited(provider, LIMIT))
    assert "Hello" not in received.body.decode()
    assert stopped(provider, received)


@pytest.mark.parametrize(
    "reply",
    [Reply((STORY,), stop="end"), Reply((STORY,), stop="refusal"), Reply((STORY,), Usage(output_tokens=3))],
    ids=["end", "refusal", "usage"],
)
async def test_a_script_that_says_how_the_reply_ends_or_what_it_costs_wins(
    open_llm: Any, ask: Any, anthropic: Any, reply: Reply
) -> None:
    """It is sent as it is written."""
    received = await ask(await open_llm(reply), anthropic, max_tokens=5)
    assert said_in(anthropic, received) == STORY.text
    assert received.json["stop_reason"] != "max_tokens"


async def test_scripted_input_tokens_do_not_lift_the_limit(open_llm: Any, ask: Any, anthropic: Any) -> None:
    """They say nothing about the output; a scripted stop at the limit does not contradict a lower one."""
    llm = await open_llm(Reply((STORY,), Usage(input_tokens=8000), stop="max_tokens"))
    received = await ask(llm, anthropic, max_tokens=5)
    assert said_in(anthropic, received) == STORY.text[:20]
    assert {name: received.json["usage"][name] for name in ("input_tokens", "output_tokens")} == {
        "input_tokens": 8000,
        "output_tokens": 5,
    }


@pytest.mark.parametrize("num_predict", [-2, -1, 0])
async def test_ollamas_special_numbers_are_no_limit(open_llm: Any, ask: Any, num_predict: int) -> None:
    """Without end, as far as the context goes, and none."""
    received = await ask(await open_llm(LONG), Ollama, options={"num_predict": num_predict})
    assert (said_in(Ollama, received), received.json["done_reason"]) == (LONG.items[0].text, "stop")


@pytest.mark.parametrize(
    "asked",
    [
        {"max_tokens": 5},
        {"max_completion_tokens": 5, "max_tokens": 99},
        {"max_completion_tokens": None, "max_tokens": 5},
    ],
)
async def test_chat_completions_know_two_names(open_llm: Any, ask: Any, openai: Any, asked: dict[str, Any]) -> None:
    """The newer one wins where both have a value."""
    received = await ask(await open_llm(LONG), openai, **asked)
    assert said_in(openai, received) == LONG.items[0].text[:20]


async def test_each_of_several_choices_has_the_limit(open_llm: Any, ask: Any, openai: Any) -> None:
    """And the usage is that of all of them."""
    received = await ask(await open_llm(LONG), openai, max_completion_tokens=5, n=2)
    assert [choice["finish_reason"] for choice in received.json["choices"]] == ["length", "length"]
    assert received.json["usage"]["completion_tokens"] == 10
