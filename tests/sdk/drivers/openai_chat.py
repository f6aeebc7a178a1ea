"""openai, chat completions."""

import sys
from collections import defaultdict

import openai
import telling

client = openai.OpenAI(base_url=f"{telling.url()}/v1", api_key="k", max_retries=0)
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": telling.CITY}}]
MORE = ("streamed by the helper", "embeddings")


def create(messages, stream):
    more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    return client.chat.completions.create(model=telling.MODEL, messages=messages, tools=TOOLS, **more)


def ask(said, stream, messages=None):
    messages = messages or [{"role": "user", "content": said}]
    return gathered(create(messages, True)) if stream else told(create(messages, False))


def told(completion):
    (choice,) = completion.choices
    calls = [[call.id, call.function.name, call.function.arguments] for call in choice.message.tool_calls or ()]
    usage = [completion.usage.prompt_tokens, completion.usage.completion_tokens]
    return {"text": choice.message.content or "", "calls": calls, "stop": choice.finish_reason, "usage": usage}


def gathered(chunks):
    pieces, calls, stop, usage = [], defaultdict(lambda: ["", "", ""]), None, None
    for chunk in chunks:
        usage = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens] if chunk.usage else usage
        for choice in chunk.choices:
            stop = choice.finish_reason or stop
            pieces += [choice.delta.content] if choice.delta.content else []
            for call in choice.delta.tool_calls or ():
                parts = (call.id, call.function.name, call.function.arguments)
                calls[call.index] = [old + (new or "") for old, new in zip(calls[call.index], parts, strict=True)]
    said = {"text": "".join(pieces), "pieces": pieces}
    return {**said, "calls": [calls[index] for index in sorted(calls)], "stop": stop, "usage": usage}


def second_turn(stream):
    first = create([{"role": "user", "content": "tools"}], False).choices[0].message
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": telling.RESULTS["call"]} for call in first.tool_calls
    ]
    return ask("", stream, [{"role": "user", "content": "tools"}, first.model_dump(exclude_none=True), *results])


def fail(said, stream):
    try:
        ask(said, stream)
    except openai.APIStatusError as raised:
        message = raised.body["message"]
        return telling.error(raised, raised.status_code, message, raised.response.headers.get("retry-after"))


def models():
    return [model.id for model in client.models.list()]


def streamed_by_the_helper():
    messages = [{"role": "user", "content": "tools"}]
    with client.chat.completions.stream(model=telling.MODEL, messages=messages, tools=TOOLS) as stream:
        for _ in stream:
            pass
        message = stream.get_final_completion().choices[0].message
    return {
        "text": message.content,
        "calls": [[c.id, c.function.name, c.function.arguments] for c in message.tool_calls],
    }


def embeddings():
    found = client.embeddings.create(model=telling.MODEL, input=["a", "b"])
    return [len(found.data), len(found.data[0].embedding) > 0, found.data[0].embedding != found.data[1].embedding]


telling.tell(sys.modules[__name__])
