"""ollama, chat."""

import json
import sys

import ollama
import telling

client = ollama.Client(host=telling.url())
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "", "parameters": telling.CITY}}]
MORE = ("generated", "shown")


def ask(said, stream, messages=None):
    messages = messages or [{"role": "user", "content": said}]
    answer = client.chat(model=telling.MODEL, messages=messages, tools=TOOLS, stream=stream)
    return gathered(answer) if stream else told(answer)


def gathered(parts):
    pieces, calls = [], []
    for part in parts:
        said = told(part)
        pieces += [said["text"]] if said["text"] else []
        calls += part.message.tool_calls or []
        last = said
    return {**last, "text": "".join(pieces), "calls": listed(calls), "pieces": pieces}


def told(answer):
    calls = listed(answer.message.tool_calls or [])
    usage = [answer.prompt_eval_count, answer.eval_count]
    return {"text": answer.message.content or "", "calls": calls, "stop": answer.done_reason, "usage": usage}


def listed(calls):
    """The calls; they have no ids in this SDK."""
    return [
        [str(number), call.function.name, json.dumps(dict(call.function.arguments))]
        for number, call in enumerate(calls)
    ]


def second_turn(stream):
    asked = {"role": "user", "content": "tools"}
    first = client.chat(model=telling.MODEL, messages=[asked], tools=TOOLS).message
    results = [
        {"role": "tool", "tool_name": call.function.name, "content": telling.RESULTS["call"]}
        for call in first.tool_calls
    ]
    return ask("", stream, [asked, first, *results])


def fail(said, stream):
    try:
        ask(said, stream)
    except ollama.ResponseError as raised:
        return telling.error(raised, raised.status_code, raised.error)


def models():
    return [model.model for model in client.list().models]


def generated():
    return "".join(part.response for part in client.generate(model=telling.MODEL, prompt="text", stream=True))


def shown():
    return client.show(telling.MODEL).details is not None


telling.tell(sys.modules[__name__])
