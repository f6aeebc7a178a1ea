"""A provider with rules of its own: two designs of agents keep them, and each bug is red at level strict only."""

from pathlib import Path
from typing import Any

import pytest

from tests.live.together import entry

AGENTS = Path(__file__).with_name("strict_provider_agents.py")
SOUND = ("mends", "takes_back")
PLANTED = {
    "abort-before-the-first-word": "an_empty_message_at_a_stop",
    "broken-arguments-are-refused": "broken_arguments",
    "empty-message-is-refused": "an_empty_message",
    "one-system-text-only": "a_second_system_text",
    "roles-must-alternate": "two_messages_in_a_row",
    "thoughts-must-come-back": "thoughts_are_dropped",
    "tool-call-with-marks-in-its-name": "marks_in_a_name",
    "tool-call-without-a-name": "a_call_without_a_name",
}
GOES_ON, GROWING = "next-message-goes-on", "tools_of_each_turn"
PAIRS = {
    *((scenario, agent) for scenario in (*PLANTED, GOES_ON) for agent in SOUND),
    *PLANTED.items(),
    (GOES_ON, GROWING),
}
Result = tuple[str, tuple[str, ...], tuple[str, ...]]


@pytest.fixture(scope="module")
def found(simulate: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Result]:
    """The verdict, and what is violated at each level, by scenario and agent; all played once."""
    out = tmp_path_factory.mktemp("strict-provider")
    for name in {agent for _, agent in PAIRS}:
        spec = f"name: {name}\nwire: openai-chat\ncallable: '{AGENTS}:{name}'\nrecover_s: 0\n"
        (out / f"{name}.yaml").write_text(spec)
    judged = simulate([entry(scenario, out / f"{agent}.yaml") for scenario, agent in sorted(PAIRS)], out / "runs")
    return {pair: (it.verdict, it.violated, it.strict) for pair, it in judged.items()}


@pytest.mark.parametrize("agent", SOUND)
@pytest.mark.parametrize("scenario", sorted(PLANTED))
def test_an_agent_that_keeps_the_rule_passes(found: dict[tuple[str, str], Result], scenario: str, agent: str):
    """The provider never refuses it, and the run is judged all the same."""
    assert found[scenario, agent] == ("pass", (), ())


@pytest.mark.parametrize("scenario", sorted(PLANTED))
def test_an_agent_that_breaks_the_rule_for_ever_is_red_at_level_strict(
    found: dict[tuple[str, str], Result], scenario: str
):
    """Other providers of its wire accept what it sends."""
    assert found[scenario, PLANTED[scenario]] == ("pass", (), ("session_goes_on",))


def test_tools_that_are_added_again_with_each_turn_are_red_at_level_strict(found: dict[tuple[str, str], Result]):
    """OpenAI takes them; Anthropic and Gemini would refuse the second message."""
    assert {found[GOES_ON, agent] for agent in SOUND} == {("pass", (), ())}
    assert found[GOES_ON, GROWING] == ("pass", (), ("tools_once",))
