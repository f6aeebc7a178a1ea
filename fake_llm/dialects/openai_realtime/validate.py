"""What a message of the Realtime API must be, and what is refused, in the provider's words where they are public.

Sources: the SDK's types; https://github.com/livekit/agents/issues/3344 (the result of an unknown call),
https://github.com/openai/openai-agents-python/issues/1466 (two replies at once).
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Models, Refusal
from wedgehog.fake_llm.dialects.openai_common import bad, missing, not_among
from wedgehog.fake_llm.dialects.openai_realtime.names import CREATE, ITEM, Names
from wedgehog.fake_llm.request import listed, mapped

Items = list[dict[str, Any]]
_AUDIO: Final = (
    "input_audio_buffer.append",
    "input_audio_buffer.commit",
    "input_audio_buffer.clear",
    "output_audio_buffer.clear",
    "conversation.item.truncate",
)
_OF_ITEM: Final = ("conversation.item.delete", "conversation.item.retrieve")
EVENTS: Final = ("session.update", ITEM, *_OF_ITEM, CREATE, "response.cancel", *_AUDIO)
_TEXT_ONLY: Final = "This server neither hears nor speaks: it knows text and tool calls only."
_NEEDED: Final = {
    "message": ("role", "content"),
    "function_call": ("name", "arguments"),
    "function_call_output": ("call_id", "output"),
}
_GIVEN: Final = {"system": ("input_text",), "user": ("input_text", "input_audio", "input_image")}


def event(document: dict[str, Any], items: Items, config: dict[str, Any], names: Names) -> Iterator[Refusal]:
    """Yield what is refused of a client's message; a request for a reply is read later, with its conversation."""
    kind = document.get("type")
    if kind not in EVENTS:
        yield not_among(kind, EVENTS, "type")
    if kind in _AUDIO:
        yield bad(f"{_TEXT_ONLY} Send the words of the user with '{ITEM}'.", "type")
    if kind == "response.cancel":
        yield bad("Cancellation failed: no active response found", None, "response_cancel_not_active")
    if kind == "session.update":
        yield from _session(document, names)
    if kind == ITEM:
        yield from _added(document, items, names)
    if kind in _OF_ITEM and document.get("item_id") not in _ids(items):
        verb = str(kind).rpartition(".")[2]
        text = f"The item with id '{document.get('item_id')}' does not exist."
        yield bad(f"Error in item {verb}: {text}", "item_id", f"item_{verb}_invalid_item_id")


def active(response: str) -> Refusal:
    """Refuse a second reply while one is being sent."""
    text = f"Conversation already has an active response in progress: {response}."
    rest = "Wait until the response is finished before creating a new one."
    return bad(f"{text} {rest}", None, "conversation_already_has_active_response")


def asked(document: dict[str, Any], models: Models, names: Names) -> Iterator[Refusal]:
    """Yield what is refused of a request for a reply, which holds its whole conversation."""
    model = document.get("model")
    if not model:
        yield missing("model")
    if models is not None and model not in models:
        yield bad(f"The requested model '{model}' does not exist.", "model", "model_not_found")
    if document.get(names.modalities) != ["text"]:
        yield bad(f'{_TEXT_ONLY} Set `{names.modalities}` to ["text"].', f"session.{names.modalities}")
    yield from _tools("session.tools", document.get("tools"))
    for index, item in enumerate(map(mapped, listed(document.get("input")))):
        yield from _item(f"input[{index}]", item, names)
    known: set[str] = set()
    for item in map(mapped, listed(document.get("input"))):
        yield from _answered(item, known)
        known |= {str(item.get("call_id"))} if item.get("type") == "function_call" else set()


def resolved(given: object, items: Items) -> Items:
    """Return a request's own items, each reference replaced by its item."""
    known = {item["id"]: item for item in items}
    found = map(mapped, listed(given))
    return [known.get(str(it.get("id")), it) if it.get("type") == "item_reference" else it for it in found]


def _session(document: dict[str, Any], names: Names) -> Iterator[Refusal]:
    session = document.get("session")
    if not isinstance(session, dict):
        yield missing("session")
    if names.settings is None:
        yield from _tools("session.tools", mapped(session).get("tools"))
        return
    kind = mapped(session).get("type")
    if kind is None:
        yield missing("session.type")
    if kind != "realtime":
        yield not_among(kind, ("realtime",), "session.type")
    for name in mapped(session):
        if name not in names.settings:
            yield bad(f"Unknown parameter: 'session.{name}'.", f"session.{name}", "unknown_parameter")
    yield from _tools("session.tools", mapped(session).get("tools"))


def _tools(place: str, tools: object) -> Iterator[Refusal]:
    for index, tool in enumerate(map(mapped, listed(tools))):
        if tool.get("type") == "function" and not isinstance(tool.get("name"), str):
            yield missing(f"{place}[{index}].name")


def _added(document: dict[str, Any], items: Items, names: Names) -> Iterator[Refusal]:
    item, previous = mapped(document.get("item")), document.get("previous_item_id")
    if not item:
        yield missing("item")
    yield from _item("item", item, names)
    if item.get("id") in _ids(items):
        yield bad(f"Error adding item: an item with id '{item['id']}' exists already.", "item.id")
    if previous not in (None, "root", *_ids(items)):
        yield bad(f"Error adding item: the previous item with id '{previous}' does not exist.", "previous_item_id")
    yield from _answered(item, {str(it.get("call_id")) for it in items if it.get("type") == "function_call"})


def _answered(item: dict[str, Any], calls: Iterable[str]) -> Iterator[Refusal]:
    id_ = str(item.get("call_id"))
    if item.get("type") == "function_call_output" and id_ not in calls:
        text = f"Tool call ID '{id_}' not found in conversation."
        yield Refusal(400, text, "invalid_request_error", None, "invalid_tool_call_id", pairing=True)


def _item(place: str, item: dict[str, Any], names: Names) -> Iterator[Refusal]:
    kind = item.get("type")
    if kind not in _NEEDED:
        yield not_among(kind, _NEEDED, f"{place}.type")
    for name in _NEEDED[str(kind)]:
        if item.get(name) is None:
            yield missing(f"{place}.{name}")
    if kind == "message":
        yield from _message(place, item, names)


def _message(place: str, item: dict[str, Any], names: Names) -> Iterator[Refusal]:
    roles = {**_GIVEN, "assistant": (names.text,)}
    if item["role"] not in roles:
        yield not_among(item["role"], roles, f"{place}.role")
    for index, part in enumerate(map(mapped, listed(item["content"]))):
        kind, at = part.get("type"), f"{place}.content[{index}]"
        if kind not in roles[item["role"]]:
            yield not_among(kind, roles[item["role"]], f"{at}.type")
        if kind == "input_audio" and not part.get("transcript"):
            yield bad(f"{_TEXT_ONLY} Give the audio its `transcript`.", f"{at}.transcript")
        if kind in ("input_text", names.text) and not isinstance(part.get("text"), str):
            yield missing(f"{at}.text")


def _ids(items: Items) -> list[str]:
    return [item["id"] for item in items]
