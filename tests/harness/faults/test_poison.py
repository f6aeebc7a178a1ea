"""A provider that refuses every request which still carries one item."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.fake_llm.reply import Failure, Reply, Text
from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault

SHELL = ToolSpec("bash", schema={"properties": {"command": {"type": "string"}}})
ANSWER = Reply((Text("Done"),))


def asked(*messages: Message) -> Conversation:
    return Conversation("anthropic", "m", False, messages, (SHELL,))


def a_round(number: int, said: str, tool: str = "bash", **more: Any) -> tuple[Message, Message]:
    """A tool round, and what its tool said."""
    id_ = f"c{number}"
    call = Message("assistant", tool_calls=(ToolCallSeen(id_, tool, f'{{"n": {number}}}'),), **more)
    return call, Message("tool", tool_results=(ToolResultSeen(id_, said),))


USER = Message("user", "Go on.")


class Provider:
    """One fault, and what it wrote down."""

    def __init__(self, do: object) -> None:
        self.fault = parse_fault(do)
        self.context = Context(event=None, request_bytes=0, now=datetime(2026, 1, 1, tzinfo=UTC), kept={})

    def refuses(self, *messages: Message) -> bool:
        """Whether a request with these messages is refused, with 400."""
        assert isinstance(self.fault, ReplyFault)
        answer = self.fault.on_answer(ANSWER, replace(self.context, conversation=asked(*messages)))
        assert answer in (ANSWER, Failure(400, item=getattr(self.fault, "kind", "thinking")))
        return answer != ANSWER


def test_the_latest_tool_result_is_refused_as_long_as_it_is_sent():
    """The first request says which one it is; later results pass, and so does a changed one."""
    provider = Provider("poison")
    first, second = a_round(1, "one"), a_round(2, "two")
    assert not provider.refuses(USER), "there is nothing to refuse yet"
    assert provider.refuses(USER, *first, *second)
    assert provider.refuses(USER, *first, *second, *a_round(3, "three"), USER)
    assert not provider.refuses(USER, *first, *a_round(2, "[removed]"), *a_round(3, "three"))


@pytest.mark.parametrize(
    ("do", "carried"),
    [
        ({"kind": "image"}, Message("user", "See.", images=("a",))),
        ({"kind": "thinking"}, Message("assistant", "Hm.", thoughts=("signed",))),
        ({"kind": "tool_call"}, a_round(1, "x")[0]),
        ({"kind": "text", "role": "assistant"}, Message("assistant", "Words.")),
        ({"kind": "tool_result", "tool": "shell"}, a_round(1, "x")),
        ({"kind": "tool_result", "tool": "weather"}, a_round(1, "x", "mcp__host__weather")),
    ],
)
def test_an_item_is_chosen_by_its_kind_its_role_and_its_tool(do: dict[str, Any], carried: Any):
    """A request without it passes."""
    provider = Provider({"poison": do})
    messages = carried if isinstance(carried, tuple) else (carried,)
    assert not provider.refuses(USER)
    assert provider.refuses(USER, *messages) and not provider.refuses(USER, USER)


def test_the_result_of_another_tool_is_not_meant():
    """Neither is an item of another role."""
    assert not Provider({"poison": {"tool": "weather"}}).refuses(USER, *a_round(1, "x"))
    assert not Provider({"poison": {"kind": "text", "role": "system"}}).refuses(USER)


def test_a_text_marks_each_item_that_holds_it():
    """Also those that come later."""
    provider = Provider({"poison": {"text": "venom"}})
    assert not provider.refuses(USER, *a_round(1, "tea"))
    assert provider.refuses(USER, *a_round(1, "tea with venom"))
    assert provider.refuses(USER, *a_round(2, "more venom"))


def test_another_models_thoughts_are_refused_and_never_the_models_own():
    """Those of the first request are another one's; without any there, nothing is ever refused."""
    foreign, own = (Message("assistant", "Hm.", thoughts=(it,)) for it in ("signed by one", "signed by two"))
    provider = Provider("foreign_thoughts")
    assert provider.refuses(USER, foreign, USER) and provider.refuses(USER, foreign, USER, own, USER)
    assert not provider.refuses(USER, USER, own, USER)
    elsewhere = replace(provider.context, conversation=replace(asked(USER, foreign, USER), wire="openai-responses"))
    assert provider.fault.on_answer(ANSWER, elsewhere) is ANSWER, "others may read them"
    sound = Provider("foreign_thoughts")
    assert not sound.refuses(USER, USER) and not sound.refuses(USER, USER, own, USER)
