"""A provider with a rule of its own refuses what breaks it, for as long as it is sent, and nothing else."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen
from wedgehog.fake_llm.reply import Failure, Reply, Text, Thinking, ToolCall
from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault

ANSWER = Reply((Text("Done"),))
SYSTEM, USER, MODEL = Message("system", "Be kind."), Message("user", "Go on."), Message("assistant", "I do.")


def called(arguments: str, name: str = "bash") -> tuple[Message, Message]:
    """A tool call with these arguments, and its result."""
    call = ToolCallSeen("c1", name, arguments)
    return Message("assistant", tool_calls=(call,)), Message("tool", tool_results=(ToolResultSeen("c1", "ok"),))


@pytest.mark.parametrize(
    ("rule", "broken", "kept"),
    [
        ("roles", (SYSTEM, USER, USER), (SYSTEM, SYSTEM, USER, MODEL, USER)),
        ("roles", (USER, MODEL, MODEL, USER), (USER, *called("{}"), *called("{}"), USER)),
        ("system", (SYSTEM, USER, MODEL, SYSTEM, USER), (SYSTEM, USER, MODEL, USER)),
        ("system", (SYSTEM, SYSTEM, USER), (USER, MODEL, USER)),
        ("system", (USER, SYSTEM), (SYSTEM, USER, *called("{}"))),
        ("arguments", (USER, *called('{"command": "ec')), (USER, *called('{"command": "echo"}'))),
        ("arguments", (USER, *called("[1]")), (USER, MODEL, USER)),
        ("names", (USER, *called("{}", "")), (USER, *called("{}", "read_file-2"))),
        ("names", (USER, *called("{}", "bash<|channel|>commentary")), (USER, MODEL, USER)),
        ("thoughts", (USER, *called("{}")), (USER, replace(called("{}")[0], thoughts=("Hm.",)), called("{}")[1])),
        ("thoughts", (USER, *called("{}")), (USER, replace(called("{}")[0], thoughts=("",)), called("{}")[1])),
        ("content", (USER, Message("assistant", " "), USER), (USER, *called("{}"), USER)),
        ("content", (USER, Message("assistant"), USER), (USER, MODEL, USER)),
    ],
)
def test_what_breaks_the_rule_is_refused_and_what_keeps_it_is_answered(
    rule: str, broken: tuple[Message, ...], kept: tuple[Message, ...]
):
    """With 400, as such providers do; results of tools may follow one another."""
    fault = parse_fault({"demands": rule})
    assert isinstance(fault, ReplyFault) and fault.may_not_fire
    context = Context(event=None, request_bytes=0, now=datetime(2026, 1, 1, tzinfo=UTC))

    def answered(messages: tuple[Message, ...]) -> object:
        asked = Conversation("openai-chat", "m", False, messages)
        return fault.on_answer(ANSWER, replace(context, conversation=asked))

    refused = answered(broken)
    assert isinstance(refused, Failure) and refused.status == 400
    assert answered(kept) is ANSWER


PIECES = (Message("assistant", "I "), Message("assistant", "do."), Message("assistant"))
"""A streamed reply in the history of Google's SDK: each of its events is a content of the model, also the last."""


@pytest.mark.parametrize("rule", ["roles", "content"])
@pytest.mark.parametrize(("wire", "refuses"), [("gemini", False), ("openai-chat", True)])
def test_on_gemini_the_pieces_of_a_reply_are_one_message(rule: str, wire: str, refuses: bool):
    """Contents of one role that follow one another are one turn there; elsewhere each message stands alone."""
    fault = parse_fault({"demands": rule})
    assert isinstance(fault, ReplyFault)
    asked = Conversation(wire, "m", True, (USER, *PIECES, USER))
    context = Context(event=None, request_bytes=0, now=datetime(2026, 1, 1, tzinfo=UTC), conversation=asked)
    assert isinstance(fault.on_answer(ANSWER, context), Failure) is refuses


@pytest.mark.parametrize(("rule", "broken"), [("roles", (USER, USER)), ("content", (USER, PIECES[-1], USER))])
def test_on_gemini_an_empty_reply_and_a_second_message_of_the_user_are_refused_too(
    rule: str, broken: tuple[Message, ...]
):
    """No piece of the reply says anything."""
    fault = parse_fault({"demands": rule})
    assert isinstance(fault, ReplyFault)
    asked = Conversation("gemini", "m", True, broken)
    context = Context(event=None, request_bytes=0, now=datetime(2026, 1, 1, tzinfo=UTC), conversation=asked)
    assert isinstance(fault.on_answer(ANSWER, context), Failure)


def test_where_thoughts_are_demanded_each_tool_call_comes_with_some_and_words_alone_without():
    """Else no agent could send them back."""
    fault = parse_fault({"demands": "thoughts"})
    assert isinstance(fault, ReplyFault) and fault.needs == ("shown_thoughts", "calls")
    context = Context(event=None, request_bytes=0, now=datetime(2026, 1, 1, tzinfo=UTC))
    call, thought = ToolCall("bash", {"command": "ls"}), Thinking("I should look.")
    for items, first in (((call,), Thinking("I think about it.")), ((thought, call), thought)):
        answer = fault.on_answer(Reply(items), context)
        assert isinstance(answer, Reply) and answer.shows_thoughts
        assert (answer.items[0], answer.items[-1], len(answer.items)) == (first, call, 2)
    assert fault.on_answer(ANSWER, context) is ANSWER
