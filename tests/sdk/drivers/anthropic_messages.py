"""anthropic, the Messages API."""

import json
import sys

import anthropic
import telling

client = anthropic.Anthropic(base_url=telling.url(), api_key="k", max_retries=0)
TOOLS = [{"name": "get_weather", "input_schema": telling.CITY}]
MORE = ("tokens counted", "a beta message")


def arguments(messages):
    return {"model": telling.MODEL, "max_tokens": 500, "messages": messages, "tools": TOOLS}


def ask(said, stream, messages=None):
    messages = messages or [{"role": "user", "content": said}]
    if not stream:
        return told(client.messages.create(**arguments(messages)))
    with client.messages.stream(**arguments(messages)) as events:
        pieces = [event.text for event in events if event.type == "text"]
        return {**told(events.get_final_message()), "pieces": pieces}


def told(message):
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [[block.id, block.name, json.dumps(block.input)] for block in message.content if block.type == "tool_use"]
    usage = [message.usage.input_tokens, message.usage.output_tokens]
    return {"text": text, "calls": calls, "stop": message.stop_reason, "usage": usage}


def second_turn(stream):
    asked = {"role": "user", "content": "tools"}
    first = client.messages.create(**arguments([asked]))
    said = {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]}
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": telling.RESULTS["call"]}
        for block in first.content
        if block.type == "tool_use"
    ]
    return ask("", stream, [asked, said, {"role": "user", "content": results}])


def fail(said, stream):
    try:
        ask(said, stream)
    except anthropic.APIStatusError as raised:
        message = raised.body["error"]["message"]
        return telling.error(raised, raised.status_code, message, raised.response.headers.get("retry-after"))


def models():
    return [model.id for model in client.models.list()]


def tokens_counted():
    counted = client.messages.count_tokens(model=telling.MODEL, messages=[{"role": "user", "content": "text"}])
    return counted.input_tokens > 0


def a_beta_message():
    message = client.beta.messages.create(**arguments([{"role": "user", "content": "tool"}]), betas=["x-2026-01-01"])
    return told(message)


telling.tell(sys.modules[__name__])
