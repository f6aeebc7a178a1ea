"""Which requests OpenAI's chat completions refuse, in its words; tool messages directly follow their call."""

from collections.abc import Iterator
from typing import Any, Final

from wedgehog.fake_llm.dialects import openai_offered as offered
from wedgehog.fake_llm.dialects.base import Models, Refusal, nameless
from wedgehog.fake_llm.dialects.openai_common import (
    bad,
    empty,
    empty_string,
    missing,
    not_among,
    out_of_range,
    unpaired,
    unreadable,
)
from wedgehog.fake_llm.request import Request, listed, mapped

MOST_COPIES: Final = 128

_ROLES: Final = ("system", "assistant", "user", "function", "tool", "developer")


def no_model(name: str) -> Refusal:
    """Refuse an unknown model."""
    unknown = f"The model `{name}` does not exist or you do not have access to it."
    return Refusal(404, unknown, "invalid_request_error", code="model_not_found")


def refusals(request: Request, models: Models) -> Iterator[Refusal]:
    """Yield what the provider refuses, in the order in which it looks."""
    yield from unreadable(request)
    document = request.document or {}
    yield from _fields(document)
    model = document.get("model")
    if models is not None and model not in models:
        yield no_model(str(model))
    messages = [mapped(message) for message in listed(document.get("messages"))]
    for index, message in enumerate(messages):
        if not _only_says(message):
            yield from _shape(index, message)
    yield from _pairs(messages)


def _fields(document: dict[str, Any]) -> Iterator[Refusal]:
    if not document.get("model"):
        yield bad("you must provide a model parameter")
    if "messages" not in document:
        yield missing("messages")
    if not isinstance(document["messages"], list):
        yield bad("Invalid type for 'messages': expected an array of objects.", "messages", "invalid_type")
    for name in ("messages", "tools"):
        if document.get(name) == []:
            yield empty(name)
    yield from out_of_range(document.get("n"), "n", 1, MOST_COPIES)
    yield from offered.too_many(document.get("tools"))
    for index, tool in enumerate(listed(document.get("tools"))):
        yield from offered.function(f"tools[{index}].function", mapped(mapped(tool).get("function")))


def _only_says(message: dict[str, Any]) -> bool:
    """Return True if a message is only a known role and a text, as most are: its shape needs no check."""
    return isinstance(message.get("content"), str) and "tool_calls" not in message and message.get("role") in _ROLES


def _shape(index: int, message: dict[str, Any]) -> Iterator[Refusal]:
    role, place = message.get("role"), f"messages[{index}]"
    if role is None:
        yield missing(f"{place}.role")
    if role not in _ROLES:
        yield not_among(role, _ROLES, f"{place}.role")
    if message.get("tool_calls") == []:
        yield empty(f"{place}.tool_calls")
    for number, part in enumerate(map(mapped, listed(message.get("content")))):
        url, where = mapped(part.get("image_url")).get("url"), f"{place}.content[{number}].image_url.url"
        yield from offered.image(where, url, quoted="Invalid image URL:")
    for number, call in enumerate(listed(message.get("tool_calls"))):
        yield from _call(f"{place}.tool_calls[{number}]", mapped(call))
    speechless = role == "assistant" and (message.get("tool_calls") or message.get("function_call"))
    if message.get("content") is None and not speechless and not message.get("refusal"):
        text = "Invalid value for 'content': expected a string, got null."
        yield bad(text, f"messages.[{index}].content")


def _call(place: str, call: dict[str, Any]) -> Iterator[Refusal]:
    for name in ("id", "type"):
        if name not in call:
            yield missing(f"{place}.{name}")
    function = mapped(call.get("function"))
    for name in ("name", "arguments"):
        if call.get("type") == "function" and not isinstance(function.get(name), str):
            yield missing(f"{place}.function.{name}")
    if function.get("name") == "":
        yield nameless(empty_string(f"{place}.function.name"))


def _pairs(messages: list[dict[str, Any]]) -> Iterator[Refusal]:
    """Compare the calls of each message with the tool messages after it."""
    waiting: list[str] = []
    called: list[str] = []
    answered: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            yield from _result(index, message, called, answered)
            waiting = [id_ for id_ in waiting if id_ != message.get("tool_call_id")]
            answered[str(message.get("tool_call_id"))] = index
            continue
        if waiting:
            yield _unanswered(waiting, index)
        called = [str(mapped(call).get("id")) for call in listed(message.get("tool_calls"))]
        waiting, answered = called, {}
        yield from _twice(index, called)
    if waiting:
        yield _unanswered(waiting, len(messages))


def _result(index: int, message: dict[str, Any], called: list[str], answered: dict[str, int]) -> Iterator[Refusal]:
    id_, place = message.get("tool_call_id"), f"messages.[{index}].tool_call_id"
    if not called:
        text = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        yield unpaired(f"Invalid parameter: {text}", f"messages.[{index}].role")
    if id_ is None:
        text = "messages with role 'tool' must have a 'tool_call_id'."
        yield unpaired(f"Missing parameter 'tool_call_id': {text}", place)
    if id_ not in called:
        yield unpaired(
            f"Invalid parameter: 'tool_call_id' of '{id_}' not found in 'tool_calls' of previous message.", place
        )
    if str(id_) in answered:
        text = f"'tool_call_id' of '{id_}', in messages[{answered[str(id_)]}] and messages[{index}]."
        yield unpaired(f"Invalid parameter: Duplicate value for {text}", place, gateway_accepts=True)


def _twice(index: int, called: list[str]) -> Iterator[Refusal]:
    for number, id_ in enumerate(called):
        if id_ in called[:number]:
            text = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{id_}' in 'tool_calls'."
            yield unpaired(text, f"messages.[{index}].tool_calls", gateway_accepts=True)


def _unanswered(waiting: list[str], index: int) -> Refusal:
    return unpaired(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(waiting)}",
        f"messages.[{index}].role",
    )
