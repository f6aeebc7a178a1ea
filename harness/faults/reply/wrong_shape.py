"""A structured reply that does not have the shape that the request asks for."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeGuard

from wedgehog.fake_llm.reply import Answer, Item, Reply, Text
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault

_AROUND = ("reply", "value", "data")
"""A property of this name is not in the schema."""
_FENCE = "Here is the JSON:\n```json\n"


@fault("wrong_shape", family="reply")
class WrongShape(ReplyFault):
    """A reply by a schema is not what the schema asks for, as of a model that is only told to send JSON.

    So is a reply whose JSON the spec's `finish: {text: …}` writes, without a schema.
    `nested`: the whole value is one property of another object. `list`: it is in an array. `types`: an array where the
    words should be. `fenced`: the JSON is in a Markdown fence, after a sentence. `prose`: only the words, and no JSON.
    """

    kind: Literal["nested", "list", "types", "fenced", "prose"] = "nested"
    needs = ("schema",)
    searched: ClassVar[bool] = False

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same words in another shape."""
        schema = context.conversation.schema
        if not isinstance(answer, Reply) or answer.stop == "refusal":
            return answer
        items = (_SHAPES[self.kind](item, schema or {}) if _is_json(item, schema) else item for item in answer.items)
        return replace(answer, items=tuple(items))


def _is_json(item: Item, schema: object) -> TypeGuard[Text]:
    """Whether it is a text by a schema, or one in which the words are a string of JSON."""
    return isinstance(item, Text) and (schema is not None or item.span is not None)


def _between(before: str, item: Text, after: str) -> Text:
    """The text with something before and after it."""
    span = item.span and (item.span[0] + len(before), item.span[1] + len(before))
    return replace(item, text=before + item.text + after, span=span)


def _nested(item: Text, schema: Mapping[str, Any]) -> Text:
    name = next((name for name in _AROUND if name not in schema.get("properties", {})), "_".join(_AROUND))
    return _between(f'{{"{name}": ', item, "}")


def _of_other_type(item: Text, schema: Mapping[str, Any]) -> Text:
    if item.span is None:
        return item
    start, end = item.span[0] - 1, item.span[1] + 1  # with the quotes
    text = f"{item.text[:start]}[{item.text[start:end]}]{item.text[end:]}"
    return replace(item, text=text, span=(start + 2, end))


_SHAPES: dict[str, Callable[[Text, Mapping[str, Any]], Text]] = {
    "nested": _nested,
    "list": lambda item, schema: _between("[", item, "]"),
    "types": _of_other_type,
    "fenced": lambda item, schema: item if "```" in item.text else _between(_FENCE, item, "\n```"),
    "prose": lambda item, schema: Text(item.words, item.pace_ms) if item.span else item,
}
