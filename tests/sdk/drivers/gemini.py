"""google-genai, the Gemini API."""

import json
import sys

import telling
from google import genai
from google.genai import errors, types

# A version of the API that is not named is each generation's own.
client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=telling.url()))
DECLARED = {"name": "get_weather", "parameters_json_schema": telling.CITY}
CONFIG = types.GenerateContentConfig(
    tools=[types.Tool(function_declarations=[types.FunctionDeclaration(**DECLARED)])],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)
MORE = ("tokens counted",)


def ask(said, stream, contents=None):
    asked = {"model": telling.MODEL, "contents": contents or said, "config": CONFIG}
    if stream:
        return gathered(client.models.generate_content_stream(**asked))
    return told(client.models.generate_content(**asked))


def gathered(chunks):
    pieces, calls = [], []
    for chunk in chunks:
        said = told(chunk)
        pieces += [said["text"]] if said["text"] else []
        calls += said["calls"]
        last = said
    return {**last, "text": "".join(pieces), "calls": calls, "pieces": pieces}


def told(response):
    (candidate,) = response.candidates
    parts = (candidate.content.parts if candidate.content else None) or []
    calls = [part.function_call for part in parts if part.function_call]
    usage = response.usage_metadata
    return {
        "text": "".join(part.text for part in parts if part.text),
        "calls": [[call.id or str(number), call.name, json.dumps(call.args)] for number, call in enumerate(calls)],
        "stop": candidate.finish_reason and candidate.finish_reason.value,
        "usage": usage and [usage.prompt_token_count, usage.candidates_token_count],
    }


def second_turn(stream):
    asked = types.Content(role="user", parts=[types.Part(text="tools")])
    first = client.models.generate_content(model=telling.MODEL, contents=[asked], config=CONFIG)
    results = [
        types.Part(
            function_response=types.FunctionResponse(
                id=call.id, name=call.name, response={"result": telling.RESULTS["call"]}
            )
        )
        for call in first.function_calls
    ]
    return ask("", stream, [asked, first.candidates[0].content, types.Content(role="user", parts=results)])


def fail(said, stream):
    try:
        ask(said, stream)
    except errors.APIError as raised:
        retry_after = raised.response.headers.get("retry-after") if raised.response is not None else None
        return telling.error(raised, raised.code, raised.message, retry_after)


def models():
    return [model.name.removeprefix("models/") for model in client.models.list()]


def tokens_counted():
    return client.models.count_tokens(model=telling.MODEL, contents="text").total_tokens > 0


telling.tell(sys.modules[__name__])
