"""Calls that quote the user's message beside the answer: only with the first message, or with each."""

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

SHELL, READ = ToolSpec("bash", "", {"properties": {"command": {"type": "string"}}}), ToolSpec("read")


def asks(marker: str, text: str = "{}", *, tools: tuple[ToolSpec, ...] = (SHELL, READ)) -> Conversation:
    system = Message("system", "You are an agent." if tools else "You write titles.")
    return Conversation("openai-chat", "m", False, (system, Message("user", text.format(f"{marker} Go on."))), tools)


def facts_of(first: Conversation, *later: Conversation) -> ControlFacts:
    """What a control run tells whose first turn made this call before the answer, and whose second turn made these."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1, background="title"), "A title")
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    nonce = tell.nonce
    tell.end(f"Done {nonce}")
    seen = {1: first, 2: asks("marker1")}
    tell.message()
    for number, call in enumerate(later, start=3):
        tell.reply(tell.ask(1), f"Done {tell.nonce}")
        seen[number] = call
    history = tell.end(f"Done {tell.nonce}").seal()
    script = SimpleNamespace(
        nonce_of=lambda call: nonce if call == 2 else "another",
        tools=lambda asked: asked.tools,
        positions=Positions("wbcdf"),
    )
    shapes = {call: MainShape.of(asked) for call, asked in seen.items()}
    said: Any = SimpleNamespace(tools_seen=seen, shapes=shapes, script=script, read=script.positions.read)
    return control_facts(history, cast(ScriptedReplies, said), "")


TITLE = asks("marker1", "Generate a title for: {}", tools=())
PLANNER = asks("marker1", "Make a plan for: {}")


@pytest.mark.parametrize(
    ("first", "later", "comes"),
    [
        (TITLE, (asks("marker2"),), False),
        (TITLE, (asks("marker2"), asks("marker2", "Is {} done?", tools=())), True),
        (PLANNER, (asks("marker2"),), True),
    ],
    ids=["a title", "a title, and a check in each turn", "a planner with the main call's tools"],
)
def test_a_call_that_looks_unlike_the_main_one_shows_if_it_comes_with_each_message(
    first: Conversation, later: tuple[Conversation, ...], comes: bool
):
    """A planner that looks like the main call may come with each message: its calls of a later turn are not told."""
    facts = facts_of(first, *later)
    assert facts.shape is not None and facts.shape.asides
    assert (facts.background, facts.background_first, facts.background_later) == (True, True, comes)
