"""A subagent whose messages are summed up goes on: it is neither the main conversation nor another subagent."""

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.fake_llm.reply import Reply, Text, ToolCall
from wedgehog.fake_llm.script.call_tokens import note
from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.fake_llm.script.position import CallPosition, Positions
from wedgehog.fake_llm.script.turns import ScriptedTurn, TurnScript

SALT, MARKER, WORDS = "wbcdf", "mkqrst1q", "Read the file, please."
TEXT = {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}
TOOLS = (ToolSpec("bash"), ToolSpec("task", schema=TEXT))
SYSTEM = Message("system", "You are an agent.")
SUMMARIZER = Message("system", "You are a context summarization agent. Only output the structured summary.")
SIDE_CALL = f"{SALT}1001x1x1"
"""The first call of the first subagent's shell."""


def user(text: str) -> Message:
    return Message("user", text)


def talk(*messages: Message, system: Message = SYSTEM, tools: tuple[ToolSpec, ...] = TOOLS) -> Conversation:
    return Conversation("openai-chat", "m", True, (system, *messages), tools)


MAIN = user(f"{MARKER} {WORDS}")
TASK = user(f"{SALT}1x1x1a0 Read the first file, and say what is in it.")


def shell_round(token: str) -> tuple[Message, Message]:
    call = ToolCallSeen(f"{token}a1", "bash", "{}")
    return Message("assistant", tool_calls=(call,)), Message("tool", tool_results=(ToolResultSeen(f"{token}a1", "ok"),))


def summed_up(text: str) -> Conversation:
    return talk(user(f"Here is the conversation so far:\n{text}"), system=SUMMARIZER, tools=())


def after_summary(call: int, *messages: Message) -> Conversation:
    """As opencode sends it: the summary is a reply of the model, and a message of its own tells it to go on."""
    summary = Message("assistant", f"A short note {note(SALT, call)}")
    return talk(user("What did we do so far?"), summary, user("Continue if you have next steps."), *messages)


@pytest.fixture
def script() -> TurnScript:
    """The main conversation has delegated a task, and its subagent has asked once."""
    shape = MainShape(frozenset({"bash", "task"}), MainShape.of(talk(MAIN)).system, marked=True)
    positions = Positions(SALT, shape)
    positions.begin(1, MARKER, WORDS)
    delegates = Reply((ToolCall("subagent", {"prompt": "Read the first file."}),))
    turn = ScriptedTurn((delegates, Reply((Text("Done."),))), "NONCE")
    found = TurnScript(positions, {1: turn})
    found.answer(1, talk(MAIN))
    positions.sides.offered(f"{SALT}1x1x1", 1, {"prompt": TASK.text})
    found.answer(2, talk(TASK))
    return found


def where(place: CallPosition) -> tuple[str, int, int]:
    return str(place.side), place.step, place.attempt


def test_what_follows_the_summary_of_a_subagent_asks_for_the_same_step_again(script: TurnScript):
    script.aside(3, summed_up(f"[User]: {TASK.text}"))
    assert where(script.place(4, after_summary(3))) == ("subagent 1", 1, 2)
    assert where(script.place(5, after_summary(3))) == ("subagent 1", 1, 3)


def test_a_summary_of_the_summary_is_of_the_same_subagent(script: TurnScript):
    script.aside(3, summed_up(f"[User]: {TASK.text}"))
    script.aside(4, summed_up(f"The summary so far: A short note {note(SALT, 3)}"))
    assert where(script.place(5, after_summary(4))) == ("subagent 1", 1, 2)


def test_a_summary_does_not_take_a_subagent_back(script: TurnScript):
    """Its tool rounds are in the place of the summary; those that follow count from there."""
    script.place(3, talk(TASK, *shell_round(SIDE_CALL)))
    script.aside(4, summed_up(f"[User]: {TASK.text}\n[Tool result]: ok"))
    assert where(script.place(5, after_summary(4))) == ("subagent 1", 2, 2)
    assert where(script.place(6, after_summary(4, *shell_round(f"{SALT}1001x2x1")))) == ("subagent 1", 3, 1)


def test_a_result_that_only_the_request_for_the_summary_shows_counts(script: TurnScript):
    script.aside(3, summed_up(f"[User]: {TASK.text}\n[Tool result]: {SIDE_CALL}\n"))
    assert where(script.place(4, after_summary(3))) == ("subagent 1", 2, 1)


@pytest.mark.parametrize("said", [f"[User]: {MARKER} {WORDS} {TASK.text}", "[User]: Go on."], ids=["both", "neither"])
def test_the_summary_of_the_main_conversation_is_none_of_a_subagent(script: TurnScript, said: str):
    script.aside(3, summed_up(said))
    assert script.place(4, after_summary(3)).side is None


def test_a_message_of_the_user_beside_the_words_of_a_subagents_summary_is_the_main_conversation(script: TurnScript):
    script.aside(3, summed_up(f"[User]: {TASK.text}"))
    told = talk(MAIN, user(f"Your subagent says: A short note {note(SALT, 3)}"))
    assert script.place(4, told).side is None
