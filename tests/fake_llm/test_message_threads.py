"""Anthropic's message threads: the server holds the conversation, and a request brings only what is new."""

import json
from typing import Any

import pytest

from tests.harness.commands.test_provider import sent
from wedgehog.harness.commands.serve import Provider

HEADERS = {"anthropic-version": "2023-06-01", "x-api-key": "k", "anthropic-beta": "message-threads-2026-08-12"}
SCRIPT = {
    "replies": [
        {"when": {"tool_results": 0}, "reply": [{"text": "I look."}, {"tool": "bash", "args": {"command": "ls"}}]},
        {"reply": {"text": "Done"}},
    ]
}
EMPTY = {"replies": [{"reply": []}]}
TOOL = {"name": "bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
USER = {"role": "user", "content": "Go on."}
WHOLE = {"system": "You are a bot.", "tools": [TOOL]}


async def asked(llm: Provider, thread: Any, *messages: Any, headers: Any = HEADERS, **more: Any) -> tuple[int, Any]:
    body = {"model": "m", "max_tokens": 4000, "messages": [*messages], "thread": thread, **more}
    status, told = await sent("POST", f"{llm.url}/v1/messages", body, headers)
    return status, json.loads(told)


def after(reply: Any) -> dict[str, str]:
    return {"type": "continue", "previous_message_id": reply["id"]}


def result_of(reply: Any) -> dict[str, Any]:
    calls = [block["id"] for block in reply["content"] if block["type"] == "tool_use"]
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": "a"} for id_ in calls]}


async def test_a_thread_goes_on_with_what_is_new():
    """The result belongs to a call that only the server holds, and the tools are those of the first request."""
    async with Provider(SCRIPT) as llm:
        _, first = await asked(llm, {"type": "create"}, USER, **WHOLE)
        status, second = await asked(llm, after(first), result_of(first))
        assert (status, second.get("content")) == (200, [{"type": "text", "text": "Done"}])
        status, third = await asked(llm, after(second), USER)
        assert (status, third["content"][1]["name"]) == (200, "bash"), "the tools are still those of the first request"


async def test_what_the_thread_holds_is_billed():
    """The model reads the whole conversation."""
    async with Provider(SCRIPT) as llm:
        _, first = await asked(llm, {"type": "create"}, USER, **WHOLE)
        _, second = await asked(llm, after(first), result_of(first))
        assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"]


async def test_a_thread_that_is_not_there_is_refused_as_the_provider_does():
    """The SDKs know the code, and send the whole conversation again. A message without `thread` begins none."""
    async with Provider(SCRIPT) as llm:
        _, alone = await asked(llm, None, USER)
        for id_ in ("msg_01nothing", alone["id"]):
            status, told = await asked(llm, {"type": "continue", "previous_message_id": id_}, USER)
            assert (status, told["error"]["type"]) == (404, "not_found_error")
            assert told["error"]["details"] == {"error_code": "thread_not_found"}


async def test_an_empty_reply_is_no_message_of_the_thread():
    """The next request is not refused for a message that the model itself left empty."""
    async with Provider(EMPTY) as llm:
        _, first = await asked(llm, {"type": "create"}, USER)
        status, told = await asked(llm, after(first), USER)
        assert status == 200, told


@pytest.mark.parametrize(
    "reply",
    [
        [{"text": ""}, {"text": "Hello"}],
        [{"text": " "}],
        [{"tool": "bash", "raw_args": '{"command": "l'}],
        [{"tool": "bash", "raw_args": "[1]"}],
    ],
)
async def test_nothing_that_the_model_said_is_refused_as_a_part_of_its_thread(reply: Any):
    """An empty text and broken arguments are the provider's own: the client does not send them back."""
    async with Provider({"replies": [{"reply": reply}]}) as llm:
        _, first = await asked(llm, {"type": "create"}, USER, **WHOLE)
        status, told = await asked(llm, after(first), result_of(first) if "tool" in reply[0] else USER)
        assert status == 200, told


async def test_without_its_beta_header_it_is_an_unknown_field():
    """As for every field of a beta."""
    async with Provider(SCRIPT) as llm:
        plain = {name: given for name, given in HEADERS.items() if name != "anthropic-beta"}
        status, told = await asked(llm, {"type": "create"}, USER, headers=plain)
        assert (status, told["error"]["message"]) == (400, "thread: Extra inputs are not permitted")


async def test_a_refused_turn_is_not_held():
    """The provider stores no turn that the model refused; the SDK begins a new thread."""
    async with Provider({"replies": [{"reply": [{"text": "No."}, {"stop": "refusal"}]}]}) as llm:
        _, first = await asked(llm, {"type": "create"}, USER)
        status, _ = await asked(llm, after(first), USER)
        assert status == 404


async def test_the_tool_runner_of_the_sdk_works_as_it_comes():
    """It begins a thread unless it is told not to."""
    import anthropic  # as long as half of all that is imported to collect the tests

    ran: list[str] = []

    @anthropic.beta_async_tool
    async def bash(command: str) -> str:
        """Run a command."""
        ran.append(command)
        return "a"

    async with (
        Provider(SCRIPT) as llm,
        anthropic.AsyncAnthropic(base_url=llm.url, api_key="k", max_retries=0) as client,
    ):
        runner = client.beta.messages.tool_runner(model="m", max_tokens=999, tools=[bash], messages=[USER])
        last = await runner.until_done()
    assert ran == ["ls"]
    assert [block.to_dict()["text"] for block in last.content] == ["Done"]
