"""Words in the JSON that a request asks for: where they stand, that it is legal, and how it is cut."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from tests.fake_llm.test_limit import limited, said_in
from wedgehog.fake_llm.continuation import continued
from wedgehog.fake_llm.conversation import Conversation, Message
from wedgehog.fake_llm.reply import Reply, Text, Thinking, ToolCall
from wedgehog.fake_llm.script.pattern_text import matching
from wedgehog.fake_llm.script.schema_values import fill
from wedgehog.fake_llm.script.structured import structured

WORDS = 'It is "warm",\nabout 21 °C. NONCE'
TEXT = {"type": "string"}
SURE = {"type": "number", "minimum": 0, "maximum": 0.5}
NODE = {"type": "object", "properties": {"text": TEXT, "next": {"$ref": "#/$defs/Node"}}, "required": ["text"]}
SAY = Reply((Text(WORDS, pace_ms=5),))


def of(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {}), **more}


def asked(schema: Any, *messages: Message) -> Conversation:
    return Conversation("openai-chat", "m", False, messages, schema=schema)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        (of({"reasoning": TEXT, "sure": SURE, "answer": TEXT}, "reasoning", "sure", "answer"), ["answer"]),
        (of({"day": {**TEXT, "format": "date"}, "mood": {"enum": ["good"]}, "note": TEXT}), ["note"]),
        (of({"code": {**TEXT, "pattern": "^[A-Z]{3}$"}, "lang": {**TEXT, "maxLength": 2}, "b": TEXT}), ["b"]),
        (of({"subject": TEXT, "more": TEXT}, "more"), ["more"]),
        (of({"pageTitle": TEXT, "more": TEXT}), ["more"]),
        (of({"title": TEXT, "body": of({"content": TEXT})}), ["body", "content"]),
        (of({"lines": {"type": "array", "items": TEXT, "minItems": 2}, "ok": {"type": "boolean"}}), ["lines", 0]),
        (of({"a": {"anyOf": [{"type": "null"}, TEXT]}}, "a"), ["a"]),
        (of({"a": {"allOf": [{"$ref": "#/$defs/T"}]}}, **{"$defs": {"T": TEXT}}), ["a"]),
        ({"$ref": "#/$defs/Node", "$defs": {"Node": NODE}}, ["text"]),
        ({"type": "array", "items": of({"said": TEXT, "n": {"type": "integer", "minimum": 3}})}, [0, "said"]),
        (of({"answer": {**TEXT, "format": "markdown"}, "day": {**TEXT, "format": "date"}}), ["answer"]),
        ({"type": "object"}, ["answer"]),
        (TEXT, []),
    ],
)
def test_words_stand_in_the_string_that_an_agent_most_probably_shows(schema: dict[str, Any], place: list[Any]):
    """What is for the agent (reasoning, a title) comes last; the value satisfies the schema."""
    (text,) = structured(SAY, asked(schema)).items
    assert isinstance(text, Text) and (text.words, text.pace_ms) == (WORDS, 5)
    value = json.loads(text.text)
    jsonschema.validate(value, schema)
    for key in place:
        value = value[key]
    assert value == WORDS


def test_a_spec_names_the_property_that_the_agent_shows():
    """An unknown one leaves the choice to us."""
    schema = of({"answer": TEXT, "body": TEXT})
    found = [json.loads(structured(SAY, asked(schema), name).items[0].text) for name in ("body", "other")]
    assert [it["body"] == WORDS for it in found] == [True, False] and found[1]["answer"] == WORDS


def test_a_short_string_keeps_the_end_by_which_words_are_known():
    """A longer text would not be legal."""
    schema = of({"answer": {**TEXT, "maxLength": 50}})
    (text,) = structured(Reply((Text("x" * 80 + " NONCE"),)), asked(schema)).items
    assert len(text.words) == 50 and text.words.endswith(" NONCE")


@pytest.mark.parametrize(
    "schema",
    [of({"ok": {"type": "boolean"}}), of({"a": {**TEXT, "maxLength": 3}}), of({}, additionalProperties=False)],
)
def test_a_schema_without_room_for_words_gets_a_legal_value(schema: dict[str, Any]):
    """A classification says nothing."""
    (text,) = structured(SAY, asked(schema)).items
    jsonschema.validate(json.loads(text.text), schema)
    assert text.span is None and "NONCE" not in text.text


@pytest.mark.parametrize(
    "reply",
    [
        Reply((Text('{"answer": "mine"}'),)),
        Reply((Text("I will not."),), stop="refusal"),
        Reply((Text(" \n"),)),
        Reply((ToolCall("ls"),)),
        Reply(),
    ],
)
def test_json_of_the_script_white_space_refusals_and_calls_stay(reply: Reply):
    """A provider's own refusal is no JSON either."""
    assert structured(reply, asked(of({"answer": TEXT}))) == reply
    assert structured(SAY, asked(None)) == SAY


def test_beside_a_tool_call_there_is_no_text():
    """A model that must send JSON says nothing before a call; its thoughts stay."""
    reply = Reply((Thinking("Hm."), Text("I look."), ToolCall("ls")))
    assert structured(reply, asked(of({"answer": TEXT}))).items == (Thinking("Hm."), ToolCall("ls"))


def test_a_reply_that_the_script_stops_at_its_token_limit_is_broken_json():
    """It ends with its words."""
    (text,) = structured(replace(SAY, stop="max_tokens"), asked(of({"answer": TEXT, "z": TEXT}))).items
    assert text.text.endswith("NONCE") and text.words == WORDS


@pytest.mark.parametrize(
    ("told", "value"),
    [
        ('Reply with {"title": "…", "score": 3, "reply": {"text": "…"}}.', {"title": "a short phrase", "score": 3}),
        ('As {"properties": {"a": {}}}:\n```{"properties": {"text": {"type": "string"}}, "required": ["text"]}```', {}),
        ("Reply with JSON {title, text}", {}),
    ],
)
def test_where_a_request_only_asks_for_json_the_instructions_show_its_shape(told: str, value: dict[str, Any]):
    """A schema in them, its last one; else an example; errors that are quoted later are none."""
    again = (Message("assistant", "{}"), Message("user", 'It is wrong: [{"type": "missing", "loc": ["text"]}]'))
    (text,) = structured(SAY, asked({"type": "object"}, Message("system", told), *again)).items
    found = json.loads(text.text)
    assert text.words == WORDS and found.items() >= value.items() and "loc" not in found


def test_an_escape_that_was_cut_is_no_word():
    """The words that came, wherever the JSON ends; and what is left behind a beginning."""
    schema = of({"answer": TEXT})
    (text,) = structured(SAY, asked(schema)).items
    came = {replace(text, text=text.text[:chars]).words for chars in range(len(text.text) + 1)}
    assert came == {WORDS[:chars] for chars in range(len(WORDS) + 1)}
    for chars in (5, 20, len(text.text) - 4):
        rest = continued(Reply((text,)), asked(schema, Message("assistant", text.text[:chars]))).items[0]
        assert isinstance(rest, Text) and rest.text == text.text[chars:]
        assert replace(text, text=text.text[:chars]).words + rest.words == WORDS


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.1},
        {"type": "integer", "exclusiveMinimum": 1, "multipleOf": 5},
        {"type": "integer", "maximum": -2},
        {"type": "string", "pattern": r"^\d{3}-[A-F]+$", "minLength": 7},
        {"type": "string", "minLength": 30},
        {"type": "array", "prefixItems": [{"type": "boolean"}], "items": {"type": "integer"}, "minItems": 2},
        {"$ref": "#/$defs/T", "$defs": {"T": {"anyOf": [of({"t": {"$ref": "#/$defs/T"}}, "t"), {"type": "null"}]}}},
        {"allOf": [of({"a": TEXT}, "a"), of({"b": {"type": "integer"}}, "b")]},
        True,
    ],
)
def test_a_filled_schema_is_legal(schema: Any):
    """Bounds, patterns, lengths, tuples, references to itself."""
    jsonschema.validate(fill(schema), schema)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "maxLength": None, "minLength": "3"}, "a short phrase"),
        ({"type": "object", "properties": None, "required": None}, {}),
        ({"type": "object", "properties": {"a": {"type": "integer"}}, "required": "a"}, {"a": 1}),
        ({"type": "number", "multipleOf": "2", "minimum": None, "maximum": True}, 1),
        ({"type": "array", "items": {}, "minItems": "1"}, []),
        (
            {"properties": {"a": {"anyOf": [{"type": "boolean"}]}, "b/c": {"$ref": "#/properties/a/anyOf/0"}}},
            {"a": False, "b/c": False},
        ),
        ({"$defs": {"x/y z": {"type": "boolean"}}, "$ref": "#/$defs/x~1y%20z"}, False),
        ({"$ref": "#/properties/a/anyOf/7"}, "a short phrase"),
    ],
)
def test_a_key_of_a_wrong_type_says_nothing_and_a_reference_goes_anywhere(schema: dict[str, Any], value: object):
    """Libraries write `null` for what is not set, and references into unions."""
    assert fill(schema) == value


def test_a_pattern_is_met_or_given_up():
    """An expression of another language, or one that needs to look ahead."""
    assert [matching(it) for it in (r"^(low|high)[^a]$", r"^\S+@\S+\.\w{2}$", r"\p{L}", "^(?=b)c$")] == [
        "lowb",
        "a@a.aa",
        None,
        None,
    ]


class _Structured:
    """A script that says one thing, as the request asks for it."""

    def answer(self, call: int, conversation: Conversation) -> Reply:
        return structured(Reply((Text(LONG),)), conversation)


LONG = 3 * WORDS
SCHEMA = of({"sure": SURE, "answer": TEXT}, "sure", "answer")
ASKS = {
    "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    "openai-chat": {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}},
    "openai-responses": {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
    "gemini": {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}},
    "ollama": {"format": SCHEMA},
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_the_words_come_in_json_on_every_wire(open_llm: Any, ask: Any, provider: Any, stream: bool) -> None:
    """With the schema's other properties, in its order."""
    document = provider.request(stream=stream) | ASKS[provider.wire]
    received = await ask(await open_llm(_Structured()), provider, document)
    assert json.loads(said_in(provider, received)) == {"sure": 0.5, "answer": LONG}


async def test_json_that_is_cut_by_the_clients_limit_is_broken(open_llm: Any, ask: Any, provider: Any) -> None:
    """As with each provider."""
    body, limit = ASKS[provider.wire], limited(provider, 16)
    both = {key: {**body[key], **limit[key]} for key in body.keys() & limit.keys()}
    document = provider.request() | body | limit | both
    said = said_in(provider, await ask(await open_llm(_Structured()), provider, document))
    assert said == json.dumps({"sure": 0.5, "answer": LONG}, ensure_ascii=False)[:64]


ROUTE = of({"action": {"enum": ["search", "final_answer"]}, "answer": TEXT}, "action", "answer")
CHECK = of({"safe": {"type": "boolean"}, "by": of({"level": {"enum": [1, 2, 3]}}, "level")}, "safe")


@pytest.mark.parametrize(
    ("schema", "chosen", "value"),
    [
        (ROUTE, {}, {"action": "search", "answer": WORDS}),
        (ROUTE, {"action": "final_answer"}, {"action": "final_answer", "answer": WORDS}),
        (ROUTE, {"action": "dance", "safe": True}, {"action": "search", "answer": WORDS}),
        (CHECK, {"safe": True}, {"safe": True}),
        (CHECK, {"safe": 1}, {"safe": False}),
        (of({"by": CHECK}, "by"), {"level": 2, "by": "x"}, {"by": {"safe": False}}),
        (of({"by": of({"level": {"enum": [1, 2]}}, "level")}, "by"), {"level": 2}, {"by": {"level": 2}}),
        (of({"grade": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, "grade"), {"grade": 5}, {"grade": 5}),
        (of({"grade": {"type": ["integer", "null"]}}, "grade"), {"grade": None}, {"grade": None}),
        (of({"title": TEXT, "note": TEXT}, "title", "note"), {"title": "T"}, {"title": "T", "note": WORDS}),
        (
            {"type": "array", "minItems": 1, "items": ROUTE},
            {"action": "final_answer"},
            [{"action": "final_answer", "answer": WORDS}],
        ),
    ],
)
def test_a_spec_chooses_the_values_of_properties_by_name(schema: Any, chosen: dict[str, Any], value: Any):
    """Where the schema admits them, at any depth; also an optional one. The words stand in another property."""
    (text,) = structured(SAY, asked(schema), chosen=chosen).items
    found = json.loads(text.text)
    jsonschema.validate(found, schema)
    assert found == value
