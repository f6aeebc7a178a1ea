"""Why a scenario does not apply to an agent's model: to its wire, or to the forms in which it writes."""

from collections.abc import Mapping

from wedgehog.fake_llm.other_form import FORMS
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.scenario.model import Scenario

HAVE_CHOICES = ("openai-chat", "gemini")
"""Wires whose replies are a list of choices, or of candidates."""
SYSTEM_IS_A_MESSAGE = ("openai-chat", "ollama")
"""Wires on which the system text is one of the messages."""
NO_REASONING = ("openai-chat", "ollama", "openai-realtime")
"""Wires whose providers do not sign what the model thought, so they refuse none of it for its signature."""
Reasons = Mapping[str, bool]
"""Reasons to skip a scenario, and whether each applies."""


def of_wire(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> Reasons:
    """What no provider of the agent's wire does."""
    needs, wire = scenario.needs, spec.wire
    return {
        f"{wire} has only one form of streams": "stream_form" in needs and wire not in FORMS["lines"],
        f"{wire} has no chunks of chat completions": "chat_chunks" in needs and wire not in FORMS["index"],
        f"replies of {wire} have no list of choices": "choices" in needs and wire not in HAVE_CHOICES,
        f"no provider of {wire} says that it could not read a tool call": "broken_calls" in needs and wire != "gemini",
        f"no provider of {wire} says that a filter cut a reply": "filters" in needs and wire == "ollama",
        f"streams of {wire} give items no id": "item_ids" in needs and wire not in FORMS["ids"],
        f"no provider of {wire} is known to give two calls one id": "call_ids" in needs and wire not in FORMS["again"],
        f"no provider of {wire} signs what its model thought": "thinking" in needs and wire in NO_REASONING,
        f"no provider of {wire} asks for `reasoning_content`": "shown_thoughts" in needs and wire != "openai-chat",
        f"the system text of {wire} is no message": "system_messages" in needs and wire not in SYSTEM_IS_A_MESSAGE,
    }


def of_forms(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> Reasons:
    """The forms in which the agent's model ends a turn and calls tools, if it has such forms."""
    needs, finish = scenario.needs, spec.finish
    return {
        "the agent's model ends its turns with plain text (finish)": (
            "finish" in needs and (finish is None or not finish.wraps_words)
        ),
        "the agent's model does not write its tool calls in its text (calls_in_text)": (
            "text_calls" in needs and not spec.calls_in_text
        ),
    }
