"""Replies that miss the agent's form: which replies these faults change, and for which agents."""

import pytest

from tests.harness.faults.test_reply_faults import CONTEXT
from wedgehog.fake_llm.reply import Reply, Text, ToolCall
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.skip_reasons import why_skipped
from wedgehog.harness.scenario.model import Scenario

SAID, CALLS = Reply((Text("Hi"),)), Reply((Text("I look."), ToolCall("shell", {"command": "ls"})))
REACT = {"text": "Thought: I know.\nFinal Answer: {answer}"}
IN_TEXT = {"shell": "Action: shell\nAction Input: {command}"}


def on(words: object, reply: Reply) -> Reply:
    fault = parse_fault(words)
    assert isinstance(fault, ReplyFault)
    altered = fault.on_answer(reply, CONTEXT)
    assert isinstance(altered, Reply)
    return altered


def test_only_last_words_miss_the_form_of_an_answer():
    """A call, and a reply that was cut, are no end of a turn."""
    assert on("plain_answer", SAID).plain
    cut = Reply((Text("Hi"),), stop="max_tokens")
    assert [on("plain_answer", it) for it in (CALLS, cut, Reply())] == [CALLS, cut, Reply()]


def test_only_a_call_misses_the_form_of_a_call():
    """Without its input it is no whole one."""
    assert on({"text_call": "made_up_result"}, CALLS).call_form == "made_up_result"
    made_up, without_input = parse_fault({"text_call": "made_up_result"}), parse_fault({"text_call": "no_input"})
    assert made_up.invents and not without_input.invents
    halved = on({"text_call": "no_input"}, CALLS)
    assert [item.raw_args for item in halved.items if isinstance(item, ToolCall)] == [""]
    assert on({"text_call": "no_input"}, SAID) == SAID


@pytest.mark.parametrize(
    ("words", "spec", "reason"),
    [
        ("plain_answer", {}, "ends its turns with plain text"),
        ("plain_answer", {"finish": {"arg": "body"}}, "ends its turns with plain text"),
        ("plain_answer", {"finish": {"tool": "final_answer", "arg": "answer"}}, ""),
        ("plain_answer", {"finish": REACT}, ""),
        ({"text_call": "made_up_result"}, {}, "does not write its tool calls in its text"),
        ({"text_call": "made_up_result"}, {"calls_in_text": IN_TEXT}, ""),
        ({"text_call": "no_input"}, {"calls_in_text": IN_TEXT}, "ends its turns with plain text"),
        ({"text_call": "no_input"}, {"calls_in_text": IN_TEXT, "finish": REACT}, ""),
    ],
)
def test_an_agent_without_that_form_skips_the_scenario(words: object, spec: dict[str, object], reason: str):
    """It has nothing to miss; the reason names the key of the spec."""
    turn = {"user": "Look.", "model": [[{"text": "Hi. {nonce}"}]]}
    plan = [{"at": {"turn": 1, "step": 1}, "do": words}]
    scenario = Scenario.model_validate({"name": "s", "why": "x", "turns": [turn], "faults": plan})
    agent = AgentSpec.model_validate({"name": "a", "wire": "ollama", "command": ["a", "{message}"], **spec})
    found = why_skipped(scenario, agent, ControlFacts(True))
    assert (reason in found) if reason else not found
