"""The counts at which a turn is stopped: in every run those of an endless turn, in a search those of a certain one."""

from typing import Any

import pytest

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.invariants import check
from wedgehog.harness.run.count_bounds import CountBounds, count_bounds
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.testing import HistoryBuilder

STATED = {"at_most": 80, "why": "its README says so"}


def _counts(given: dict[str, Any], limits: dict[str, Any], *, until_certain: bool = True) -> CountBounds:
    turns = [{"user": "Go on.", "model": [{"text": "Done {nonce}"}]}]
    story = Scenario.model_validate({"name": "told", "why": "Because.", "turns": turns, "invariants": given})
    agent = {"name": "a", "wire": "anthropic", "command": ["agent", "{message}"], "limits": limits}
    return count_bounds(story, AgentSpec.model_validate(agent), until_certain=until_certain)


@pytest.mark.parametrize(
    ("given", "limit", "rounds"), [({}, 20, 250), ({}, STATED, 400), ({"tool_rounds": 60}, 9, 300)]
)
def test_an_ordinary_run_stops_only_endless_rounds(given: dict[str, Any], limit: Any, rounds: int):
    """Its counts are the report; five times the greatest bound is endless, and so are 2,000 paid calls of one step."""
    limits = {"tool_rounds": limit, "calls_per_turn": 4}
    assert _counts({"tool_round_bound": given}, limits, until_certain=False) == CountBounds(rounds, 2_000, None)


@pytest.mark.parametrize(
    ("given", "limits", "counts"),
    [
        ({}, {}, CountBounds(100, 26, None)),
        ({}, {"calls_per_turn": 4, "tool_rounds": 20}, CountBounds(40, 26, 8)),
        ({}, {"tool_rounds": STATED}, CountBounds(160, 26, None)),
        ({"paid_call_bound": {"per_step": 4, "calls_per_turn": 7}}, {}, CountBounds(100, 10, 14)),
        (
            {"paid_call_bound": "off: x", "tool_round_bound": "off: x"},
            {"calls_per_turn": 4},
            CountBounds(250, 2_000, None),
        ),
    ],
)
def test_a_search_stops_at_twice_what_the_judge_allows(given: dict[str, Any], limits: dict[str, Any], counts: Any):
    """What is not judged stops nothing."""
    assert _counts(given, limits) == counts


def test_a_turn_that_is_stopped_for_its_paid_calls_violates_the_bound():
    """The calls before the stop are enough."""
    tell, counts = HistoryBuilder(), _counts({}, {})
    tell.message()
    for _ in range(26):
        tell.stall(tell.ask(), waits_s=1)
    assert counts.exceeded(tell._history, 1, 0) == ""
    tell.stall(tell.ask(), waits_s=1)
    too_many = counts.exceeded(tell._history, 1, 0)
    assert too_many == "27 paid calls of one step"
    verdict = check("paid_call_bound", tell.deadline(27, too_many=too_many).end("", ended="deadline").seal())
    assert (verdict.status, verdict.says) == ("fail", "step 1 of turn 1 was paid 27 times, 13 allowed")


@pytest.mark.parametrize(("limits", "allowed"), [({}, 100), ({"tool_rounds": 20}, 100), ({"tool_rounds": STATED}, 160)])
def test_a_turn_whose_subagent_calls_tools_for_ever_is_stopped(limits: dict[str, Any], allowed: int):
    """Its rounds are counted, not its requests; a limit that a spec states for its turns does not bound it."""
    tell, counts = HistoryBuilder(), _counts({}, limits)
    tell.message()
    tell.reply(tell.ask(1), tools=[True], name="task")
    for step in range(1, allowed + 2):
        tell.reply(tell.ask(step, side="subagent 1"), "I look.")
    assert counts.exceeded(tell._history, 1, 0) == ""
    tell.reply(tell.ask(allowed + 2, side="subagent 1"), "I look.")
    too_many = f"{allowed + 1} rounds of tool calls of a subagent"
    assert counts.exceeded(tell._history, 1, 0) == too_many


@pytest.mark.parametrize("about", [{"background": "title"}, {"side": "subagent 1"}])
def test_a_turn_that_only_asks_beside_its_conversation_is_stopped(about: dict[str, str]):
    """In virtual time a loop without a pause has no end; a subagent's requests have bounds of their own."""
    tell, counts = HistoryBuilder(), _counts({}, {}, until_certain=False)
    tell.message()
    tell.reply(tell.ask(1), "I go on.")
    for _ in range(150):
        tell.reply(tell.ask(1, **about), "They spoke of owls.")
    assert counts.exceeded(tell._history, 1, 0) == ""
    tell.reply(tell.ask(1, **about), "They spoke of owls.")
    endless = "151 requests beside the conversation in a row"
    assert counts.exceeded(tell._history, 1, 0) == (endless if "background" in about else "")
    tell.reply(tell.ask(1), "I go on.")
    assert counts.exceeded(tell._history, 1, 0) == ""


def test_a_turn_that_goes_on_after_each_summary_is_stopped():
    """Its conversation asks between them, and no summary makes room."""
    tell, counts = HistoryBuilder(), _counts({}, {}, until_certain=False)
    tell.message()
    for _ in range(150):
        tell.reply(tell.ask(1), "I go on.")
        tell.reply(tell.ask(1, background="summary"), "They spoke of owls.")
    assert counts.exceeded(tell._history, 1, 0) == ""
    tell.reply(tell.ask(1, background="summary"), "They spoke of owls.")
    assert counts.exceeded(tell._history, 1, 0) == "151 requests for a summary"
