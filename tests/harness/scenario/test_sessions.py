"""Scenarios with several sessions: names, what fits together, and the messages of a run."""

from typing import Any

import pytest
from pydantic import ValidationError

from wedgehog.harness.run.messages import RunMessages, RunTokens
from wedgehog.harness.scenario.model import Scenario

REPLY = [{"text": "Yes. {nonce}"}]


def told(*turns: dict[str, Any], **words: Any) -> Scenario:
    """A scenario with these turns."""
    given = [{"user": "Go on.", "model": REPLY, **turn} for turn in turns]
    return Scenario.model_validate({"name": "two", "why": "It is a test.", "turns": given, **words})


A, B, DURING = {"session": "A"}, {"session": "B"}, {"during": {"turn": 1, "step": 1}}


def test_a_scenario_has_the_sessions_that_its_turns_name():
    """Without a name it has one; a second message of one session is no second session."""
    alone, two = told({}, DURING), told(A, {**B, **DURING}, A, B)
    assert (alone.sessions, alone.needs, alone.sessions_at_once) == (("main",), {"second_message"}, False)
    assert (two.sessions, two.needs, two.sessions_at_once) == (("A", "B"), {"sessions"}, True)
    assert [two.session_of(number) for number in range(1, 6)] == ["A", "B", "A", "B", "A"]
    assert [two.opens(number) for number in range(1, 5)] == [True, True, False, False]
    planted = told(A, B, session="planted/x.jsonl")
    assert [planted.opens(number) for number in (1, 2)] == [False, True]


@pytest.mark.parametrize(
    ("turns", "says"),
    [
        ((A, {**B, **DURING}, {**B, **DURING}), "session B has a message during turn 1"),
        ((A, {**B, **DURING}, {**A, "during": {"turn": 2, "step": 1}}), "name the turn that surrounds both"),
        ((A, {**B, "append": "planted/x.jsonl"}), "only the first session, A, is appended to"),
        (({"session": "two words"},), "String should match pattern"),
    ],
)
def test_what_several_sessions_cannot_have_is_a_mistake(turns: tuple[dict[str, Any], ...], says: str):
    """Two messages at once to one of two sessions, or a file that is appended to a further one."""
    with pytest.raises(ValidationError, match=says):
        told(*turns)


def test_one_user_with_one_conversation_goes_nowhere():
    """Two sessions of one user are two conversations in one window."""
    assert {"sessions", "page", "new_chat"} <= told(A, B, one_user=True).needs
    with pytest.raises(ValidationError, match="only one conversation"):
        told(A, one_user=True)


def test_each_session_has_its_recovery():
    """Two messages for each, after the scenario's own."""
    messages = RunMessages(told(A, {**B, **DURING}), RunTokens(1), 1.0)
    assert sorted(messages.replies()) == [1, 2, 3, 4, 5, 6]
    assert {number: it.opens for number, it in messages.during(1).items()} == {2: True}
    last = messages.recovery(5, "B")
    assert (last.kind, last.session, last.opens) == ("recovery", "B", False)
