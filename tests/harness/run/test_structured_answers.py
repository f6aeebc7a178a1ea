"""The control run of an agent that works with tools, and asks for its last words once more, as JSON by a schema."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolSpec
from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.fake_llm.script.position import Positions
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.scripted_replies import ScriptedReplies
from wedgehog.harness.run.turns import control_facts
from wedgehog.harness.testing import HistoryBuilder

SHELL = ToolSpec("bash", "", {"properties": {"command": {"type": "string"}}})
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}
ASKED = Message("user", "marker1 Go on.")
WORK = Conversation("openai-chat", "m", False, (ASKED,), (SHELL,))
SHOW = replace(WORK, messages=(ASKED, Message("assistant", "Done.")), tools=(), schema=SCHEMA)


def facts_of(*calls: Conversation) -> ControlFacts:
    """What the control run tells whose last call's words are the answer."""
    tell = HistoryBuilder()
    tell.message()
    for _ in calls:
        tell.reply(tell.ask(1), f"Done {tell.nonce}")
    history = tell.end(f"Done {tell.nonce}").seal()
    seen = dict(enumerate(calls, start=1))
    script = SimpleNamespace(
        nonce_of=lambda call: tell.nonce if call == len(calls) else "another",
        tools=lambda asked: asked.tools,
        positions=Positions("wbcdf"),
    )
    shapes = {call: MainShape.of(asked) for call, asked in seen.items()}
    said: Any = SimpleNamespace(tools_seen=seen, shapes=shapes, script=script, read=script.positions.read)
    return control_facts(history, cast(ScriptedReplies, said), "")


@pytest.mark.parametrize("asks", [Message("assistant", "Done."), Message("user", "Now give the answer as JSON.")])
def test_both_calls_are_of_the_conversation(asks: Message):
    """Its tools are known, so scenarios with tools apply; the call by the schema is none beside the conversation."""
    facts = facts_of(WORK, replace(SHOW, messages=(ASKED, asks)))
    assert facts.shape is not None and (facts.shape.marked, facts.shape.asides) == (True, frozenset())
    assert facts.passed and (facts.shell, facts.tools, facts.background) == (True, {"bash"}, False)
    assert facts.shape.fits(WORK) and facts.shape.fits(SHOW)
    other = replace(SHOW, schema={"type": "object", "properties": {"title": {"type": "string"}}})
    assert not facts.shape.fits(other) and not facts.shape.structured


@pytest.mark.parametrize(
    "shown",
    [
        replace(SHOW, messages=(Message("user", "Another text."),)),
        replace(SHOW, schema=None),
    ],
    ids=["another opening", "plain text"],
)
def test_another_call_without_tools_is_the_main_one_alone(shown: Conversation):
    """As of an agent with a planner that has tools."""
    facts = facts_of(WORK, shown)
    assert facts.passed and not facts.shell and facts.background
