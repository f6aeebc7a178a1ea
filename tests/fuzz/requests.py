"""Requests for every dialect: what its schema allows, then broken in small ways, as JSON and as bytes."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

texts = st.sampled_from(["", " ", "Hi", "go on", "naïve 👩‍🚀", "\ud800", "\x00", "x" * 300]) | st.text(max_size=8)
names = st.sampled_from(["shell", "read_file", "", "a b", "default_api:x"])
ids = st.sampled_from(["call_a", "call_b", "call_c", "", "toolu_a", "a b"])
odd = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "id", "x"]), inner),
    max_leaves=4,
)
arguments = st.dictionaries(st.sampled_from(["command", "path"]), texts, max_size=2)
schemas = st.sampled_from(
    [
        {},
        {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
        {"type": ["object"]},
    ]
)
bounds = st.sampled_from([1, 64, 0, -1, 2**40])


@dataclass(frozen=True)
class Asked:
    """A request before it is bytes."""

    path: str
    headers: dict[str, str]
    document: Any


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


DIALECTS: dict[str, Callable[[], st.SearchStrategy[Asked]]] = {
    "anthropic": anthropic,
    "gemini": gemini,
    "ollama": ollama,
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += places(inner, (*path, index))
    return found


def broken(document: Any, place: tuple[Any, ...], how: str, value: Any) -> Any:
    """A copy with one place taken away, doubled, wrapped or replaced."""
    if not place:
        return value
    document = copy.deepcopy(document)
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    at = place[-1]
    if how == "gone":
        del holder[at]
    elif how == "twice" and isinstance(holder, list):
        holder.insert(at, copy.deepcopy(holder[at]))
    elif how == "wrapped":
        holder[at] = [holder[at]]
    else:
        holder[at] = value
    return document


@st.composite
def wire_bytes(draw: st.DrawFn, dialect: str) -> bytes:
    """The bytes of one request: most are well-formed HTTP around a document that is broken in up to two places."""
    asked = draw(DIALECTS[dialect]())
    document = asked.document
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        place = draw(st.sampled_from(places(document)))
        document = broken(document, place, draw(st.sampled_from(["gone", "twice", "wrapped", "other"])), draw(odd))
    body = json.dumps(document).encode()
    method = draw(st.sampled_from(["POST"] * 9 + ["GET"]))
    headers = dict(asked.headers)
    how = draw(st.sampled_from(["whole"] * 8 + ["cut", "noise", "gzip", "chunks", "no key", "old", "head", "deep"]))
    version = "1.1"
    if how == "cut":
        body = body[: draw(st.integers(0, len(body)))]
    elif how == "noise":
        at = draw(st.integers(0, len(body)))
        body = body[:at] + draw(st.binary(max_size=4)) + body[at:]
    elif how == "gzip":
        body, headers["Content-Encoding"] = draw(st.sampled_from([gzip.compress(body), body])), "gzip"
    elif how == "no key":
        headers = {}
    elif how == "old":
        version = "1.0"
    elif how == "deep":
        body = b'{"messages":' + b"[" * 5000 + b"]" * 5000 + b"}"
    lines = {"Host": "x", **headers, "Content-Length": str(len(body))}
    if how == "chunks":
        del lines["Content-Length"]
        lines["Transfer-Encoding"] = "chunked"
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    head = f"{method} {asked.path} HTTP/{version}\r\n" + "".join(f"{n}: {v}\r\n" for n, v in lines.items()) + "\r\n"
    sent = head.encode()
    if how == "head":
        at = draw(st.integers(0, len(sent)))
        sent = sent[:at] + draw(st.binary(max_size=4)) + sent[at:]
    return sent + body
