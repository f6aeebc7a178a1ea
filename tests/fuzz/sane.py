"""Valid requests: a history in each provider's form."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.asked import Asked, arguments


@dataclass(frozen=True)
class Turn:
    """A history for any provider; calls are (id, name, arguments, result)."""

    said: str
    calls: list[tuple[str, str, dict[str, str], str]]
    answer: str


words = st.sampled_from(["Hi", "go on", "naïve 👩‍🚀", "x" * 300]) | st.text("ab 🦔é", min_size=1).filter(str.strip)
made_calls = st.lists(st.tuples(st.sampled_from(["shell", "read_file"]), arguments, words), max_size=2)


@st.composite
def histories(draw: st.DrawFn) -> list[Turn]:
    """Values that any provider accepts."""
    told = draw(st.lists(st.tuples(words, made_calls, words), max_size=3))
    return [
        Turn(said, [(f"call_{number}_{index}", *call) for index, call in enumerate(calls)], answer)
        for number, (said, calls, answer) in enumerate(told)
    ]


def sane_chat(turns: list[Turn], said: str) -> Asked:
    messages: list[Any] = [{"role": "system", "content": "Be brief."}]
    for turn in turns:
        messages.append({"role": "user", "content": turn.said})
        calls = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for id_, name, given, _ in turn.calls
        ]
        messages += [{"role": "assistant", "content": None, "tool_calls": calls}] if calls else []
        messages += [{"role": "tool", "tool_call_id": id_, "content": result} for id_, _, _, result in turn.calls]
        messages.append({"role": "assistant", "content": turn.answer})
    messages.append({"role": "user", "content": said})
    return Asked("/v1/chat/completions", {"Authorization": "Bearer k"}, {"model": "m", "messages": messages})


def sane_responses(turns: list[Turn], said: str) -> Asked:
    given: list[Any] = []
    for turn in turns:
        given.append({"role": "user", "content": turn.said})
        for id_, name, arguments_, _ in turn.calls:
            call = {"call_id": id_, "name": name, "arguments": json.dumps(arguments_)}
            given.append({"type": "function_call", **call})
        given += [{"type": "function_call_output", "call_id": id_, "output": told} for id_, _, _, told in turn.calls]
        given.append({"role": "assistant", "content": [{"type": "output_text", "text": turn.answer}]})
    given.append({"role": "user", "content": said})
    return Asked("/v1/responses", {"Authorization": "Bearer k"}, {"model": "m", "input": given})


def sane_anthropic(turns: list[Turn], said: str) -> Asked:
    messages: list[Any] = []
    for turn in turns:
        messages.append({"role": "user", "content": turn.said})
        if turn.calls:
            uses = [{"type": "tool_use", "id": id_, "name": name, "input": given} for id_, name, given, _ in turn.calls]
            told = [{"type": "tool_result", "tool_use_id": id_, "content": told} for id_, _, _, told in turn.calls]
            messages += [{"role": "assistant", "content": uses}, {"role": "user", "content": told}]
        messages.append({"role": "assistant", "content": turn.answer})
    messages.append({"role": "user", "content": said})
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    return Asked("/v1/messages", headers, {"model": "m", "max_tokens": 64, "messages": messages})


def sane_gemini(turns: list[Turn], said: str) -> Asked:
    contents: list[Any] = []
    for turn in turns:
        contents.append({"role": "user", "parts": [{"text": turn.said}]})
        if turn.calls:
            calls = [{"functionCall": {"name": name, "args": given}} for _, name, given, _ in turn.calls]
            told = [{"functionResponse": {"name": it[1], "response": {"result": it[3]}}} for it in turn.calls]
            contents += [{"role": "model", "parts": calls}, {"role": "user", "parts": told}]
        contents.append({"role": "model", "parts": [{"text": turn.answer}]})
    contents.append({"role": "user", "parts": [{"text": said}]})
    verb = "streamGenerateContent?alt=sse" if len(said) % 2 else "generateContent"
    return Asked(f"/v1beta/models/m:{verb}", {"x-goog-api-key": "k"}, {"contents": contents})


def sane_ollama(turns: list[Turn], said: str) -> Asked:
    messages: list[Any] = []
    for turn in turns:
        calls = [{"function": {"name": name, "arguments": given}} for _, name, given, _ in turn.calls]
        messages += [{"role": "user", "content": turn.said}, {"role": "assistant", "content": "", "tool_calls": calls}]
        messages += [{"role": "tool", "tool_name": name, "content": told} for _, name, _, told in turn.calls]
        messages.append({"role": "assistant", "content": turn.answer})
    messages.append({"role": "user", "content": said})
    return Asked("/api/chat", {}, {"model": "m", "messages": messages})


def sane(asked: Callable[[list[Turn], str], Asked], streams: bool) -> st.SearchStrategy[Asked]:
    """A valid request, streamed or not."""

    def whether(ask: Asked, stream: bool) -> Asked:
        return Asked(ask.path, ask.headers, {**ask.document, "stream": True} if stream else ask.document)

    return st.builds(whether, st.builds(asked, histories(), words), st.booleans() if streams else st.just(value=False))
