"""Resolves the input of a request to OpenAI's Responses API, and says what is refused, in its words."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Self

from wedgehog.fake_llm.dialects import openai_offered as offered
from wedgehog.fake_llm.dialects.base import Models, Refusal, nameless
from wedgehog.fake_llm.dialects.openai_common import (
    bad,
    empty_string,
    missing,
    not_among,
    out_of_range,
    unpaired,
    unreadable,
)
from wedgehog.fake_llm.request import Request, listed, mapped

CALLS: Final = {"function_call": "function", "custom_tool_call": "custom tool"}
RESULTS: Final = {f"{call}_output": words for call, words in CALLS.items()}

_ROLES: Final = ("assistant", "system", "developer", "user")
_GIVEN_PARTS: Final = ("input_text", "input_image", "output_text", "refusal", "input_file", "summary_text")
_SAID_PARTS: Final = ("output_text", "refusal")
_NEEDED: Final = {
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id", "output"),
    "reasoning": ("summary",),
    "item_reference": ("id",),
}
_PREFIXES: Final = {"function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs", "message": "msg"}
_LONGEST_ID: Final = 64
_FEWEST_TOKENS: Final = 16


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored response, with its request's own input and the id of the `previous` response."""

    body: dict[str, Any]
    given: list[dict[str, Any]]
    previous: str = ""

    @classmethod
    def of(cls, body: dict[str, Any], document: dict[str, Any]) -> Self:
        """Return the response `body` to the request `document`."""
        return cls(body, given(document), str(document.get("previous_response_id") or ""))


@dataclass(frozen=True, slots=True)
class StoredItem:
    """A stored output item; it must come back together with the reasoning item before it, whose id is `after`."""

    data: dict[str, Any]
    after: str = ""


@dataclass(slots=True)
class ResolvedInput:
    """A request's items in order, those of earlier responses first.

    `lost` is the id of a named response that is not stored; `unknown` are the ids of such items.
    """

    items: list[dict[str, Any]] = field(default_factory=list)
    lost: str = ""
    unknown: list[str] = field(default_factory=list)


def history(request: Request) -> ResolvedInput:
    """Return all items that the model reads."""
    document, found = request.document or {}, ResolvedInput()
    previous = str(document.get("previous_response_id") or "")
    while previous and not found.lost:
        stored = request.memory.get(previous)
        if isinstance(stored, Stored):
            found.items[:0] = [*stored.given, *listed(stored.body["output"])]
            previous = stored.previous
        else:
            found.lost = previous
    found.items += [_resolved(item, request, found) for item in given(document)]
    return found


def given(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the items of a request's own input; a text is a message."""
    input_ = document.get("input")
    if isinstance(input_, str):
        return [{"type": "message", "role": "user", "content": input_}]
    return [mapped(item) for item in listed(input_)]


def type_of(item: dict[str, Any]) -> str:
    """Return an item's type; it is optional for a message."""
    return str(item.get("type") or ("message" if "role" in item else ""))


def _resolved(item: dict[str, Any], request: Request, found: ResolvedInput) -> dict[str, Any]:
    """Replace a reference by its item."""
    id_ = str(item.get("id") or "")
    hollow = item.get("type") == "reasoning" and not item.get("encrypted_content")
    if not id_ or (item.get("type") != "item_reference" and not hollow):
        return item
    stored = request.memory.get(id_)
    if isinstance(stored, StoredItem):
        return stored.data
    found.unknown.append(id_)
    return item


def refusals(request: Request, models: Models) -> Iterator[Refusal]:
    """Yield what the provider refuses, in the order in which it looks."""
    yield from unreadable(request)
    document = request.document or {}
    yield from _fields(document)
    if models is not None and document["model"] not in models:
        text = f"The requested model '{document['model']}' does not exist."
        yield bad(text, "model", "model_not_found")
    for index, item in enumerate(given(document)):
        yield from _shape(f"input[{index}]", item)
    found = history(request)
    if found.lost:
        text = f"Previous response with id '{found.lost}' not found."
        yield bad(text, "previous_response_id", "previous_response_not_found")
    for id_ in found.unknown:
        text = (
            f"Item with id '{id_}' not found. Items are not persisted when `store` is set to false. Try again with "
            "`store` set to true, or remove this item from your input."
        )
        yield Refusal(404, text, "invalid_request_error", "input")
    yield from _twice(found)
    yield from _pairs(found.items)
    yield from _reasoned(found, request)


def _fields(document: dict[str, Any]) -> Iterator[Refusal]:
    if not document.get("model"):
        yield missing("model")
    if not isinstance(document["model"], str):
        yield bad("Invalid type for 'model': expected a string.", "model", "invalid_type")
    if document.get("input") is None and not document.get("previous_response_id") and not document.get("prompt"):
        text = "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."
        yield bad(text, None, "missing_required_parameter")
    if not isinstance(document.get("input"), str | list | None):
        yield bad("Invalid type for 'input': expected one of a string or an array of items.", "input", "invalid_type")
    yield from out_of_range(document.get("max_output_tokens"), "max_output_tokens", _FEWEST_TOKENS)
    yield from offered.too_many(document.get("tools"))
    for index, tool in enumerate(map(mapped, listed(document.get("tools")))):
        yield from _tool(f"tools[{index}]", tool, takes_unions=not offered.older(document["model"]))


def _tool(place: str, tool: dict[str, Any], *, takes_unions: bool) -> Iterator[Refusal]:
    if not tool.get("type"):
        yield missing(f"{place}.type")
    if tool["type"] in ("function", "namespace") and not isinstance(tool.get("name"), str):
        yield missing(f"{place}.name")
    if tool["type"] == "function":
        longest = offered.LONGEST_IN_RESPONSES
        yield from offered.function(place, tool, longest=longest, takes_unions=takes_unions)
    if tool["type"] == "namespace":
        for index, inner in enumerate(map(mapped, listed(tool.get("tools")))):
            yield from _tool(f"{place}.tools[{index}]", inner, takes_unions=takes_unions)


def _shape(place: str, item: dict[str, Any]) -> Iterator[Refusal]:
    kind = type_of(item)
    if not kind:
        yield missing(f"{place}.type")
    if kind == "message":
        yield from _message(place, item)
    hollow = kind == "reasoning" and not item.get("encrypted_content")
    for name in (*(("id",) if hollow else ()), *_NEEDED.get(kind, ())):
        if item.get(name) is None:
            yield missing(f"{place}.{name}")
    prefix, id_ = _PREFIXES.get(kind), item.get("id")
    if prefix and id_ is not None and not str(id_).startswith(prefix):
        text = f"Invalid '{place}.id': '{id_}'. Expected an ID that begins with '{prefix}'."
        yield bad(text, f"{place}.id", "invalid_value")
    if kind in CALLS or kind in RESULTS:
        yield from _call_id(f"{place}.call_id", str(item["call_id"]))
    if kind == "function_call" and item.get("name") == "":
        yield nameless(empty_string(f"{place}.name"))
    if kind == "function_call" and not isinstance(item["arguments"], str):
        text = f"Invalid type for '{place}.arguments': expected a string, but got an object instead."
        yield bad(text, f"{place}.arguments", "invalid_type")


def _call_id(place: str, id_: str) -> Iterator[Refusal]:
    if not id_:
        yield empty_string(place)
    if len(id_) > _LONGEST_ID:
        text = f"Expected a string with maximum length {_LONGEST_ID}, but got a string with length {len(id_)} instead."
        yield bad(f"Invalid '{place}': string too long. {text}", place, "string_above_max_length")


def _message(place: str, item: dict[str, Any]) -> Iterator[Refusal]:
    role, content = item.get("role"), item.get("content")
    if role is None:
        yield missing(f"{place}.role")
    if role not in _ROLES:
        yield not_among(role, _ROLES, place)
    if content is None:
        yield missing(f"{place}.content")
    supported = _SAID_PARTS if role == "assistant" else _GIVEN_PARTS
    for index, part in enumerate(map(mapped, listed(content))):
        if part.get("type") not in supported:
            yield not_among(part.get("type"), supported, f"{place}.content[{index}]")
        yield from offered.image(f"{place}.content[{index}].image_url", part.get("image_url"), quoted="Invalid")


def _twice(found: ResolvedInput) -> Iterator[Refusal]:
    """Refuse duplicates in the history.

    For an item's id and for a repeated call these are the provider's words. No public report has its words for a second
    result without an id; these are other providers' words, which clients that repair their history look for.
    """
    seen: set[str] = set()
    for item in found.items:
        kind, id_, call_id = type_of(item), str(item.get("id") or ""), str(item.get("call_id"))
        if id_ and id_ in seen:
            yield _again(id_, kind in CALLS or kind in RESULTS)
        if kind in CALLS and f"{kind} {call_id}" in seen:
            yield _again(call_id, pairing=True)
        if kind in RESULTS and f"{kind} {call_id}" in seen:
            call = kind.removesuffix("_output")
            text = f"Duplicate {kind} for call_id '{call_id}'. Each {call} must have exactly one matching {kind}"
            yield unpaired(text, "input", gateway_accepts=True)
        seen |= {id_, f"{kind} {call_id}"}


def _again(id_: str, pairing: bool) -> Refusal:
    text = f"Duplicate item found with id {id_}. Remove duplicate items from your input and try again."
    return unpaired(text, "input", gateway_accepts=True) if pairing else bad(text, "input")


def _pairs(items: list[dict[str, Any]]) -> Iterator[Refusal]:
    waiting: dict[str, str] = {}
    known: set[str] = set()
    for item in items:
        kind, id_ = type_of(item), str(item.get("call_id"))
        if kind in CALLS:
            waiting[id_] = CALLS[kind]
            known.add(id_)
        elif kind in RESULTS:
            if id_ not in known:
                yield unpaired(f"No tool call found for {RESULTS[kind]} call output with call_id {id_}.", "input")
            waiting.pop(id_, None)
    for id_, words in waiting.items():
        yield unpaired(f"No tool output found for {words} call {id_}.", "input")


def _reasoned(found: ResolvedInput, request: Request) -> Iterator[Refusal]:
    """Require that reasoning and the item that it led to come together."""
    before = ""
    for index, item in enumerate(found.items):
        kind, id_ = type_of(item), str(item.get("id") or "")
        if kind == "reasoning" and not _follows(found.items[index + 1 :]):
            yield bad(f"Item '{id_}' of type 'reasoning' was provided without its required following item.", "input")
        stored = request.memory.get(id_) if id_ else None
        if isinstance(stored, StoredItem) and stored.after not in ("", before):
            text = f"was provided without its required 'reasoning' item: '{stored.after}'."
            yield bad(f"Item '{id_}' of type '{kind}' {text}", "input")
        before = id_ if kind == "reasoning" else ""


def _follows(rest: list[dict[str, Any]]) -> bool:
    """Return True if the next item is one of the model's."""
    return bool(rest) and (type_of(rest[0]) in {*CALLS, "reasoning"} or rest[0].get("role") == "assistant")
