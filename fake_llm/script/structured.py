"""Words inside the JSON that a request asks for: `response_format`, `text.format`, `output_config`, `responseSchema`.

The words stand in one string of a value that satisfies the schema, the one that an agent most probably shows.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, takewhile
from typing import Any, Final

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import CUT_STOPS, Reply, Text, ToolCall
from wedgehog.fake_llm.script.schema_values import (
    FORMATS,
    NONE_CHOSEN,
    JsonSchema,
    branches,
    fill,
    given,
    in_order,
    items,
    kind_of,
    listed,
    needed,
    resolved,
)

_HERE: Final = "\ue000words\ue000"
"""Stands for the words until the value is written."""
_BARE: Final = "answer"
"""The property of an object whose schema names none."""
_LEAST_CHARS: Final = 40
"""A shorter string has no room for words that are recognized."""
_DEEPEST: Final = 6
_MOST_SPOTS: Final = 500
_SHOWN: Final = re.compile("answer|content|final|message|output|reply|response|result|text")
"""Words in the names of properties that an agent shows its user."""
_KEPT: Final = re.compile(
    "action|analysis|author|category|code|date|error|explanation|id|key|kind|label|lang|language|model|name|path|plan|"
    "rationale|reason|reasoning|scratchpad|source|status|step|thinking|thoughts?|title|tool|topic|type|url"
)
"""Words in the names of properties that are for the agent, or about the answer."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """A string of a schema; `build` makes a whole value with given words there."""

    name: str
    build: Callable[[str], Any]
    most: int
    optional: bool = False
    in_list: bool = False
    depth: int = 0

    def rank(self) -> tuple[bool, bool, bool, bool, int]:
        """The best spot has the least rank; of equal ones the first in the schema."""
        words = re.findall("[a-z]+", re.sub("([A-Z])", r"_\1", self.name).lower())
        kept, shown = any(map(_KEPT.fullmatch, words)), any(map(_SHOWN.fullmatch, words))
        return kept, self.optional, self.in_list, not shown, self.depth


@dataclass(frozen=True, slots=True)
class _Asked:
    """The schema of a request, and the values that are chosen for properties of some names."""

    root: JsonSchema
    chosen: Mapping[str, Any]

    def fill(self, schema: Any, depth: int) -> Any:
        """A small value of a part of the schema."""
        return fill(schema, self.root, depth, self.chosen)


def structured(
    reply: Reply, conversation: Conversation, field: str = "", chosen: Mapping[str, Any] = NONE_CHOSEN
) -> Reply:
    """The reply as a model gives it whose request asks for JSON: its text inside a value of the schema.

    `field` names the property for the text, and `chosen` has the values of other properties by name. A text that is
    JSON already stays as it is, and so do white space and a refusal. Beside a tool call there is no text. A reply that
    the script stops at its token limit ends with its words.
    """
    texts = [item for item in reply.items if isinstance(item, Text)]
    if conversation.schema is None or not texts or reply.stop == "refusal":
        return reply
    others = tuple(item for item in reply.items if not isinstance(item, Text))
    words = "".join([item.text for item in texts])
    if any(isinstance(item, ToolCall) for item in others):
        return replace(reply, items=others)
    if not words.strip() or _is_json(words):
        return reply
    text = replace(_written(_Asked(_schema(conversation), chosen), words, field), pace_ms=texts[0].pace_ms)
    if reply.stop in CUT_STOPS and text.span is not None:
        text = replace(text, text=text.text[: text.span[1]])
    return replace(reply, items=(*others, text))


def value_with(schema: JsonSchema, words: str, field: str) -> dict[str, Any]:
    """Arguments of a tool with these words: in the property of this name, or in the string that is best for them."""
    found = json.loads(_written(_Asked({**schema, "type": "object"}, NONE_CHOSEN), words, field).text)
    return found if isinstance(found, dict) else {}


def _written(asked: _Asked, words: str, field: str) -> Text:
    """The JSON text of a value with these words; a schema without room for them gets a value without them."""
    spots = [spot for spot in islice(_spots(asked.root, asked, "", 0), _MOST_SPOTS) if spot.most >= _LEAST_CHARS]
    named = [spot for spot in spots if field and spot.name == field]
    best = min(named or spots, key=_Spot.rank, default=None)
    if best is None:
        return Text(_dumped(asked.fill(asked.root, 0)))
    quoted = _dumped(words[-best.most :])[1:-1]  # what it is known by comes last
    before, _, after = _dumped(best.build(_HERE)).partition(_HERE)
    return Text(before + quoted + after, span=(len(before), len(before) + len(quoted)))


def _spots(schema: Any, asked: _Asked, name: str, depth: int) -> Iterator[_Spot]:
    """The strings of a schema that may be any text."""
    schema = resolved(schema, asked.root)
    if depth > _DEEPEST or "const" in schema or "enum" in schema:
        return
    if unions := branches(schema):
        for one in unions:
            yield from _spots(one, asked, name, depth + 1)
        return
    kind = kind_of(schema)
    if kind == "string" and "pattern" not in schema and schema.get("format") not in FORMATS:
        least, most = schema.get("minLength", 0), schema.get("maxLength", 2**20)
        yield _Spot(name, lambda words: words, most if least <= _LEAST_CHARS else 0, depth=depth)
    elif kind == "object":
        yield from _of_object(schema, asked, depth)
    elif kind == "array" and schema.get("maxItems") != 0:
        rest = [asked.fill(one, depth + 1) for one in items(schema)[1:]]
        first = next(iter(listed(schema.get("prefixItems"))), schema.get("items", {}))
        for spot in _spots(first, asked, name, depth + 1):
            yield replace(spot, in_list=True, build=_within(spot, lambda value: [value, *rest]))


def _of_object(schema: JsonSchema, asked: _Asked, depth: int) -> Iterator[_Spot]:
    properties = schema.get("properties", {})
    if not properties and depth == 0 and schema.get("additionalProperties") is not False:
        yield _Spot(_BARE, lambda words: {_BARE: words}, 2**20)
    values = given(properties, asked.root, asked.chosen)
    must = {name: one for name, one in needed(schema) if name not in values}

    def around(name: str, value: Any) -> dict[str, Any]:
        """An object with this property, the chosen ones and the required ones, in the schema's order."""
        others = {other: asked.fill(one, depth + 1) for other, one in must.items() if other != name}
        return in_order({**others, **values, name: value}, schema)

    for name, one in properties.items():
        if name in values:
            continue
        for spot in _spots(one, asked, name, depth + 1):
            yield replace(spot, build=_within(spot, partial(around, name)), optional=spot.optional or name not in must)


def _within(spot: _Spot, around: Callable[[Any], Any]) -> Callable[[str], Any]:
    return lambda words: around(spot.build(words))


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


def _schema(conversation: Conversation) -> JsonSchema:
    """The schema of the request. Where it asks only for JSON, what the instructions show: a schema, or an example."""
    schema = conversation.schema or {}
    if schema.keys() - {"type"} or schema.get("type", "object") != "object":
        return schema
    opening = takewhile(lambda message: message.role != "assistant", conversation.messages)
    shown = [found for message in opening if (found := list(_objects_in(message.text)))]
    schemas = ([one for one in found if isinstance(one.get("properties"), dict)] for found in shown)
    if described := next(filter(None, schemas), None):
        return described[-1]  # instructions may begin with an example of a schema
    return _like(shown[0][0]) if shown else schema


def _like(value: Any) -> JsonSchema:
    """The schema of a value such as this example."""
    if isinstance(value, dict):
        return {"type": "object", "properties": {name: _like(one) for name, one in value.items()}}
    return {"type": "string"} if isinstance(value, str) else {"default": value}


def _objects_in(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, outermost ones only."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            found, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            if found:
                yield found
        at = text.find("{", at)
