"""Requests for every dialect: in order, or what its schema allows."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.asked import Asked, arguments, texts
from tests.fuzz.sane import sane, sane_anthropic, sane_chat, sane_gemini, sane_ollama, sane_responses

names = st.sampled_from(["shell", "read_file", "", "a b", "default_api:x"])
ids = st.sampled_from(["call_a", "call_b", "call_c", "", "toolu_a", "a b"])
schemas = st.sampled_from(
    [
        {},
        {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
        {"type": ["object"]},
    ]
)
bounds = st.sampled_from([1, 64, 0, -1, 2**40])


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A document that may have each of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def functions(key: str) -> st.SearchStrategy[list[Any]]:
    tool = st.fixed_dictionaries({"name": names}, optional={"description": texts, key: schemas})
    return st.lists(tool, max_size=2)


def wrapped(tools: st.SearchStrategy[list[Any]]) -> st.SearchStrategy[list[Any]]:
    return tools.map(lambda found: [{"type": "function", "function": tool} for tool in found])


def chat_messages() -> st.SearchStrategy[list[Any]]:
    call = st.builds(
        lambda id_, name, given: {
            "id": id_,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(given)},
        },
        ids,
        names,
        arguments,
    )
    parts = st.lists(st.builds(lambda text: {"type": "text", "text": text}, texts), max_size=2)
    spoken = st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user", "assistant"]), "content": texts | parts}
    )
    called = st.builds(
        lambda calls, text: {"role": "assistant", "content": text, "tool_calls": calls},
        st.lists(call, min_size=1, max_size=2),
        texts | st.none(),
    )
    result = st.builds(lambda id_, text: {"role": "tool", "tool_call_id": id_, "content": text}, ids, texts)
    return st.lists(spoken | called | result, max_size=5)


def openai_chat() -> st.SearchStrategy[Asked]:
    document = st.fixed_dictionaries(
        {"model": st.sampled_from(["m", "z", ""]), "messages": chat_messages()},
        optional={
            "stream": st.booleans(),
            "stream_options": some(include_usage=st.booleans()),
            "n": st.sampled_from([1, 2, 0, 3]),
            "max_tokens": bounds,
            "tools": wrapped(functions("parameters")),
            "response_format": st.sampled_from(
                [{"type": "json_object"}, {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}]
            ),
        },
    )
    paths = st.sampled_from(["/v1/chat/completions"] * 6 + ["/v1/models", "/v1/models/m", "/v1/embeddings"])
    return st.builds(Asked, paths, st.just({"Authorization": "Bearer k"}), document)


def openai_responses() -> st.SearchStrategy[Asked]:
    message = st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system", "developer"])},
        optional={
            "type": st.just("message"),
            "content": texts
            | st.lists(
                st.builds(
                    lambda type_, text: {"type": type_, "text": text},
                    st.sampled_from(["input_text", "output_text", "text"]),
                    texts,
                ),
                max_size=2,
            ),
        },
    )
    call = st.builds(
        lambda id_, name, given: {
            "type": "function_call",
            "call_id": id_,
            "name": name,
            "arguments": json.dumps(given),
        },
        ids,
        names,
        arguments,
    )
    output = st.builds(lambda id_, text: {"type": "function_call_output", "call_id": id_, "output": text}, ids, texts)
    reasoning = st.just({"type": "reasoning", "id": "rs_1", "summary": []})
    document = st.fixed_dictionaries(
        {
            "model": st.sampled_from(["m", "z", ""]),
            "input": texts | st.lists(message | call | output | reasoning, max_size=5),
        },
        optional={
            "stream": st.booleans(),
            "instructions": texts,
            "max_output_tokens": bounds,
            "store": st.booleans(),
            "previous_response_id": st.sampled_from(["resp_x", ""]),
            "tools": functions("parameters").map(lambda found: [{"type": "function", **tool} for tool in found]),
            "text": st.sampled_from([{"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}}]),
        },
    )
    paths = st.sampled_from(["/v1/responses"] * 6 + ["/v1/responses/resp_x", "/v1/responses/resp_x/cancel"])
    return st.builds(Asked, paths, st.just({"Authorization": "Bearer k"}), document)


def anthropic() -> st.SearchStrategy[Asked]:
    text = st.builds(lambda said: {"type": "text", "text": said}, texts)
    use = st.builds(
        lambda id_, name, given: {"type": "tool_use", "id": id_, "name": name, "input": given}, ids, names, arguments
    )
    result = st.builds(
        lambda id_, said: {"type": "tool_result", "tool_use_id": id_, "content": said},
        ids,
        texts | st.lists(text, max_size=2),
    )
    thinking = st.just({"type": "thinking", "thinking": "hm", "signature": "x"})
    message = st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "system"]),
            "content": texts | st.lists(text | use | result | thinking, max_size=3),
        }
    )
    document = st.fixed_dictionaries(
        {"model": st.sampled_from(["m", "z", ""]), "max_tokens": bounds, "messages": st.lists(message, max_size=5)},
        optional={
            "stream": st.booleans(),
            "system": texts | st.lists(text, max_size=2),
            "tools": functions("input_schema"),
            "output_config": st.just({"format": {"type": "json_schema", "schema": {"type": "object"}}}),
        },
    )
    paths = st.sampled_from(
        ["/v1/messages"] * 6 + ["/v1/messages?beta=true", "/v1/messages/count_tokens", "/v1/models"]
    )
    return st.builds(Asked, paths, st.just({"x-api-key": "k", "anthropic-version": "2023-06-01"}), document)


def gemini() -> st.SearchStrategy[Asked]:
    call = st.builds(lambda name, given: {"functionCall": {"name": name, "args": given}}, names, arguments)
    signed = st.builds(lambda part: {**part, "thoughtSignature": "YQ=="}, call)
    answer = st.builds(
        lambda name, text: {"functionResponse": {"name": name, "response": {"result": text}}}, names, texts
    )
    text = st.builds(lambda said: {"text": said}, texts)
    parts = st.lists(text | call | signed | answer | st.just({"text": "hm", "thought": True}), max_size=3)
    content = st.fixed_dictionaries({"parts": parts | text}, optional={"role": st.sampled_from(["user", "model", "x"])})
    config = some(
        maxOutputTokens=bounds,
        candidateCount=st.sampled_from([1, 2]),
        responseMimeType=st.just("application/json"),
        responseSchema=st.just({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}),
        thinkingConfig=some(includeThoughts=st.booleans()),
    )
    document = st.fixed_dictionaries(
        {"contents": st.lists(content, max_size=5)},
        optional={
            "systemInstruction": content,
            "tools": st.builds(lambda found: [{"functionDeclarations": found}], functions("parameters")),
            "generationConfig": config,
            "generation_config": config,
        },
    )
    models = st.sampled_from(["m", "gemini-3-pro", "z"])
    verbs = st.sampled_from(
        ["generateContent", "streamGenerateContent?alt=sse", "streamGenerateContent", "countTokens", "embedContent"]
    )
    path = st.builds("/{}/models/{}:{}".format, st.sampled_from(["v1", "v1beta"]), models, verbs)
    headers = st.sampled_from([{"x-goog-api-key": "k"}, {}])
    return st.builds(
        Asked, path | st.sampled_from(["/v1beta/models", "/v1beta/", "/v1beta/models/m"]), headers, document
    )


def ollama() -> st.SearchStrategy[Asked]:
    call = st.builds(lambda name, given: {"function": {"name": name, "arguments": given}}, names, arguments)
    message = st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
        optional={"content": texts, "tool_calls": st.lists(call, max_size=2), "tool_name": names, "tool_call_id": ids},
    )
    document = st.fixed_dictionaries(
        {"model": st.sampled_from(["m", "z", ""])},
        optional={
            "messages": st.lists(message, max_size=5),
            "prompt": texts,
            "system": texts,
            "stream": st.booleans(),
            "format": st.sampled_from(["json", "", {"type": "object"}]),
            "options": some(num_predict=bounds),
            "keep_alive": st.sampled_from([0, "5m"]),
            "tools": wrapped(functions("parameters")),
        },
    )
    paths = st.sampled_from(
        ["/api/chat"] * 4 + ["/api/generate"] * 3 + ["/api/show", "/api/tags", "/api/version", "/api/x"]
    )
    return st.builds(Asked, paths, st.just({}), document)


DIALECTS: dict[str, st.SearchStrategy[Asked]] = {
    "anthropic": anthropic() | sane(sane_anthropic, streams=True),
    "gemini": gemini() | sane(sane_gemini, streams=False),
    "ollama": ollama() | sane(sane_ollama, streams=True),
    "openai-chat": openai_chat() | sane(sane_chat, streams=True),
    "openai-responses": openai_responses() | sane(sane_responses, streams=True),
}
