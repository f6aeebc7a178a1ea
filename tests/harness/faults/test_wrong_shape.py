"""A structured reply of another shape: the words stay, and the schema is not met."""

import json
from dataclasses import replace

import jsonschema
import pytest

from tests.harness.faults.test_reply_faults import CONTEXT
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Reply, Text, ToolCall
from wedgehog.fake_llm.script.structured import structured
from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.faults.reply.wrong_shape import WrongShape
from wedgehog.harness.faults.reply_fault import ReplyFault

SCHEMA = {"type": "object", "properties": {"reply": {"type": "string"}}, "required": ["reply"]}
ASKED = Conversation("openai-chat", "m", False, (), schema=SCHEMA)
SAID = structured(Reply((Text('It is "warm".'),)), ASKED)


def harmed(kind: str, said: Reply = SAID, conversation: Conversation = ASKED) -> Reply:
    fault = parse_fault({"wrong_shape": kind})
    assert isinstance(fault, ReplyFault)
    altered = fault.on_answer(said, replace(CONTEXT, conversation=conversation))
    assert isinstance(altered, Reply)
    return altered


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("nested", '{"value": {"reply": "It is \\"warm\\"."}}'),
        ("list", '[{"reply": "It is \\"warm\\"."}]'),
        ("types", '{"reply": ["It is \\"warm\\"."]}'),
        ("fenced", 'Here is the JSON:\n```json\n{"reply": "It is \\"warm\\"."}\n```'),
        ("prose", 'It is "warm".'),
    ],
)
def test_the_words_stay_and_the_schema_is_not_met(kind: str, text: str):
    """What no strict client accepts; the recorder still knows the words."""
    (item,) = harmed(kind).items
    assert isinstance(item, Text) and (item.text, item.words) == (text, 'It is "warm".')
    with pytest.raises((jsonschema.ValidationError, ValueError)):
        jsonschema.validate(json.loads(item.text), SCHEMA)


@pytest.mark.parametrize("kind", ["nested", "list", "types", "fenced", "prose"])
def test_what_is_no_structured_reply_stays(kind: str):
    """A call of a tool, a refusal, and a request for plain text."""
    calls, refusal = Reply((ToolCall("ls"),)), Reply((Text("No."),), stop="refusal")
    assert harmed(kind, calls) == calls and harmed(kind, refusal) == refusal
    assert harmed(kind, Reply((Text("Hi"),)), replace(ASKED, schema=None)) == Reply((Text("Hi"),))


def test_json_that_is_asked_for_in_words_can_have_another_shape_too():
    """The spec writes it; JSON that stands in a fence already is what the agent asked for."""
    in_words = replace(ASKED, schema=None)
    said = Reply((Text('{"reply": "Warm."}', span=(11, 16)),))
    assert [item.text for item in harmed("nested", said, in_words).items] == ['{"reply": {"reply": "Warm."}}']
    assert [item.text for item in harmed("types", said, in_words).items] == ['{"reply": ["Warm."]}']
    fenced = Reply((Text('```json\n{"reply": "Warm."}\n```', span=(19, 24)),))
    assert harmed("fenced", fenced, in_words) == fenced


def test_only_agents_that_ask_by_a_schema_can_meet_it():
    """A search does not draw it."""
    assert WrongShape().needs == ("schema",) and not WrongShape.searched
