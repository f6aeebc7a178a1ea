"""What a request still has of what its agent was told."""

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolSpec
from wedgehog.harness.run.recording.instructions import Instructions

RULES = "Never rename a table of the database without asking."
SYSTEM = "You are a careful agent. You read files and answer.\nToday is Monday, 30 November."


def _talk(system: str, *said: str, tools: tuple[str, ...] = ("bash",), model: str = "m") -> Conversation:
    messages = (Message("system", system), *(Message("user", text) for text in said))
    return Conversation("anthropic", model, False, messages, tuple(ToolSpec(name) for name in tools))


@pytest.mark.parametrize(
    ("system", "said", "seen"),
    [
        (f"You help.\n\n# Rules\n{RULES}", "Hello", True),
        ("You help.", "<rules>\nNever rename a table of the\n  database without asking.\n</rules>", True),
        ("You help.", "Never rename a table.", False),
    ],
)
def test_rules_may_stand_in_the_system_text_or_in_a_message(system: str, said: str, seen: bool):
    """An agent may wrap their lines."""
    assert Instructions(RULES).has_rules(_talk(system, said)) is seen


def test_without_rules_there_is_nothing_to_see():
    """Most scenarios have none."""
    assert Instructions().has_rules(_talk("You help.", RULES)) is None


def test_a_system_text_is_compared_with_the_first_one_to_its_model_with_its_tools():
    """A date that changes is one sentence of three; another model may be told something else."""
    told = Instructions()
    assert told.share_of_system(_talk(SYSTEM)) == 1.0
    assert told.share_of_system(_talk(SYSTEM.replace("Monday", "Tuesday"))) == pytest.approx(0.667)
    assert told.share_of_system(_talk("You are a general helper, and do what is asked.")) == 0.0
    assert told.share_of_system(_talk("You are small, and you hurry up.", model="small")) == 1.0
    assert told.share_of_system(_talk("You search the web for its user.", tools=("web",))) == 1.0


def test_a_short_system_text_says_nothing():
    """Its few words may stand in any other one."""
    assert Instructions().share_of_system(_talk("You help.")) is None
