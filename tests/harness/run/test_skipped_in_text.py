"""Scenarios in which a model shows an example of a tool call, for agents whose calls are text."""

import pytest

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.skip_reasons import why_skipped
from wedgehog.harness.scenario.model import Scenario

TAGS = '<tool_call>\n{"name": "shell", "arguments": {args}}\n</tool_call>'


@pytest.mark.parametrize(
    ("form", "skipped"),
    [
        (TAGS, True),
        ("```json\n{args}\n```", True),
        ("```bash\n{command}\n```", False),
        ("Thought: {words}\nAction: shell\nAction Input: {command}", False),
        ("Like: {words}\n{args}", False),
        (None, False),
    ],
)
def test_an_example_in_the_agents_own_form_is_a_call_for_it(form: str | None, skipped: bool):
    """It can not know that the model only explains; in another form it is text like any other."""
    spec = AgentSpec.model_validate(
        {"name": "a", "wire": "ollama", "command": ["a", "{message}"]}
        | ({"calls_in_text": {"shell": form}} if form else {})
    )
    said = 'Like: ```json\n{"name": "bash"}\n``` or <tool_call>{"name": "bash"}</tool_call>. {nonce}'
    scenario = Scenario.model_validate(
        {"name": "s", "why": "x", "turns": [{"user": "How does a call look?", "model": [{"text": said}]}]}
    )
    reason = why_skipped(scenario, spec, ControlFacts(True))
    assert ("shows an example" in reason) is skipped and bool(reason) is skipped


def test_only_a_webhook_gets_a_message_of_a_chat_again():
    """An agent that polls is told so: a spec of a chat has no `{message_id}`."""
    chat = {"name": "a", "wire": "ollama", "chat": {"start": ["a", "{chat_url}"]}}
    scenario = Scenario.model_validate(
        {"name": "s", "why": "x", "turns": [{"user": "x", "again_s": 2, "model": [{"text": "y {nonce}"}]}]}
    )
    assert "webhook" in why_skipped(scenario, AgentSpec.model_validate(chat), ControlFacts(True))


def test_an_agent_without_a_chat_is_told_only_that():
    """What only one of the chats does says nothing to it."""
    command = {"name": "a", "wire": "ollama", "command": ["a", "{message}"], "env": {"HOST": "{llm_url}"}}
    turn = {"user": "x", "again_s": 1, "again_as": "other_event", "model": [{"text": "y {nonce}"}]}
    scenario = Scenario.model_validate({"name": "s", "why": "x", "turns": [turn]})
    reason = "the agent does not get its messages from a chat service (chat)"
    assert why_skipped(scenario, AgentSpec.model_validate(command), ControlFacts(True)) == reason
