"""Says which requests Gemini refuses, in its words.

Consecutive contents of one role are one turn. A model's turn with calls needs as many responses in the user's next
turn, in any order, with or without text; only the numbers are compared, not the ids.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Models, Refusal, bad, nameless, unpaired
from wedgehog.fake_llm.dialects.gemini import offered
from wedgehog.fake_llm.dialects.gemini.read import ADDRESS, field, several
from wedgehog.fake_llm.request import Request, counted, mapped

COUNT: Final = "countTokens"

_ROLES: Final = ("user", "model", "function")
_NAME: Final = re.compile(r"[a-zA-Z_][\w.:-]{0,127}", re.ASCII)
_SIGNS_CALLS: Final = re.compile(r"gemini-([3-9]|\d\d)")
_CONTENT: Final = "type.googleapis.com/google.ai.generativelanguage.v1beta.Content"
_STRUCT: Final = "type.googleapis.com/google.protobuf.Struct"
NO_KEY: Final = Refusal(
    403,
    "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other "
    "form of API consumer identity to call this API.",
)
_BAD_NAME: Final = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
)
_CALL_PLACE: Final = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
_RESPONSE_PLACE: Final = "Please ensure that function response turn comes immediately after a function call turn."
_COUNT: Final = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)


@dataclass(frozen=True, slots=True)
class _GeminiTurn:
    """Consecutive contents of one role."""

    by_model: bool
    parts: list[dict[str, Any]]

    def having(self, name: str) -> int:
        """Count the parts of a kind."""
        return sum(1 for part in self.parts if field(part, name) is not None)


def no_model(name: str, version: str, method: str = "generateContent") -> Refusal:
    """Refuse an unknown model."""
    text = f"models/{name} is not found for API version {version}, or is not supported for {method}."
    return Refusal(404, f"{text} Call ListModels to see the list of available models and their supported methods.")


def refusals(request: Request, models: Models) -> Iterator[Refusal]:
    """Yield what the provider refuses, in the order in which it looks."""
    if not request.key:
        yield NO_KEY
    if request.document is None:
        yield bad(_unreadable(request.body))
        return
    found = ADDRESS.fullmatch(request.path)
    version, model, method = found.groups() if found else ("v1beta", "", "")
    if models is not None and model not in models:
        yield no_model(model, version, method)
    document = request.document
    contents = document.get("contents")
    if contents is not None and not isinstance(contents, list | dict):
        yield bad(f"Invalid value at 'contents' ({_CONTENT}), {json.dumps(contents)}")
    if not contents:
        yield _named("contents", "contents is not specified")
    for index, content in enumerate(several(contents)):
        yield from _shape(f"contents[{index}]", content)
    yield from _tools(document)
    if (counted(field(field(document, "generationConfig"), "candidateCount")) or 1) > 1:
        yield bad("Multiple candidates is not enabled for this model")
    if method == COUNT:
        return  # a part of a conversation may be counted, such as a result alone
    turns = _turns(several(contents))
    yield from _pairs(turns)
    if _SIGNS_CALLS.match(model):
        yield from _signatures(turns)


def _unreadable(body: bytes) -> str:
    shown = body[:80].decode(errors="replace")
    return f"Invalid JSON payload received. Unexpected token.\n{shown}\n^" if body.strip() else "Request is empty."


def _shape(place: str, content: object) -> Iterator[Refusal]:
    if not isinstance(content, dict):
        yield bad(f"Invalid value at '{place}' ({_CONTENT}), {json.dumps(content)}")
    role = field(content, "role")
    if role and role not in _ROLES:
        yield bad("Please use a valid role: user, model.")
    parts = several(field(content, "parts"))
    if not parts:
        yield _named(f"{place}.parts", "contents.parts must not be empty.")
    for index, part in enumerate(parts):
        yield from _part(f"{place}.parts[{index}]", part)


def _part(place: str, part: object) -> Iterator[Refusal]:
    if not part or not isinstance(part, dict):
        yield _named(f"{place}.data", "required oneof field 'data' must have one initialized field")
    text = field(part, "text")
    if text is not None and not isinstance(text, str):
        yield bad(f"Invalid value at '{place}.text' (TYPE_STRING), {json.dumps(text)}")
    inline = field(part, "inlineData")
    yield from offered.image(place, field(inline, "mimeType"), field(inline, "data"))
    for kind, name, filling in (
        ("functionCall", "function_call", "args"),
        ("functionResponse", "function_response", "response"),
    ):
        called = field(part, kind)
        if called is None:
            continue
        if not mapped(called).get("name"):
            yield nameless(_named(f"{place}.{name}.name", "Name cannot be empty."))
        given = mapped(called).get(filling)
        if given is not None and not isinstance(given, dict):
            yield bad(f"Invalid value at '{place}.{name}.{filling}' ({_STRUCT}), {json.dumps(given)}")


def _tools(document: dict[str, Any]) -> Iterator[Refusal]:
    seen: set[str] = set()
    for index, tool in enumerate(several(document.get("tools"))):
        for number, declared in enumerate(several(field(tool, "functionDeclarations"))):
            name = mapped(declared).get("name")
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                yield _named(f"tools[{index}].function_declarations[{number}].name", _BAD_NAME)
            if name in seen:
                yield bad(f"Duplicate function declaration found: {name}")
            seen.add(str(name))
            place = f"tools[{index}].function_declarations[{number}].parameters"
            yield from offered.schema(place, mapped(declared).get("parameters"))


def _turns(contents: list[Any]) -> list[_GeminiTurn]:
    turns: list[_GeminiTurn] = []
    for content in contents:
        by_model = field(content, "role") == "model"
        if not turns or turns[-1].by_model != by_model:
            turns.append(_GeminiTurn(by_model, []))
        turns[-1].parts.extend(map(mapped, several(field(content, "parts"))))
    return turns


def _pairs(turns: list[_GeminiTurn]) -> Iterator[Refusal]:
    """Compare each turn with the turn before it: calls need a user's turn, responses need as many calls."""
    called = 0
    for index, turn in enumerate(turns):
        answered = turn.having("functionResponse")
        if answered and (turn.by_model or not called):
            yield unpaired(_RESPONSE_PLACE)
        if called != answered:
            yield unpaired(_COUNT)
        called = turn.having("functionCall")
        if called and (index == 0 or not turn.by_model):
            yield unpaired(_CALL_PLACE)
    if called:
        yield unpaired(_COUNT)


def _signatures(turns: list[_GeminiTurn]) -> Iterator[Refusal]:
    """Require a signature on the first call in each of the model's turns since the user's last text."""
    users = [(n, turn) for n, turn in enumerate(turns) if not turn.by_model]
    said = [n for n, turn in users if turn.having("functionResponse") < len(turn.parts)]
    for index in range(max(said, default=0), len(turns)):
        call = next((part for part in turns[index].parts if field(part, "functionCall") is not None), None)
        if call is not None and not field(call, "thoughtSignature"):
            name = mapped(field(call, "functionCall")).get("name")
            yield bad(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
                f"data, function call `default_api:{name}` , position {index + 1}. Please refer to "
                "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
            )


def _named(place: str, message: str) -> Refusal:
    return bad(f"* GenerateContentRequest.{place}: {message}\n")
