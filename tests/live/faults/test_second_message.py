"""A second message while one runs: given at its moment, played at the same time, and judged by itself."""

from typing import Any

import pytest

from wedgehog.harness.record.events.turn import AgentKilled, StimulusGiven, TurnEnded


def story(*, faults: Any = (), tool_s: float = 0.6, pace_ms: int = 0, **during: Any) -> dict[str, Any]:
    """A tool round, a message in its middle whose answer takes longer than the rest of the round, and one more."""
    work = [
        {"tool": "shell", "args": {"command": f"sleep {tool_s}"}},
        {"text": "It went well. {nonce}", "pace_ms": pace_ms},
    ]
    answer = [{"text": "That too. {nonce}"}, {"delay_s": 2}]
    second = {"user": "And this?", "during": during, "model": [answer]}
    last = {"user": "Thanks.", "model": [{"text": "Welcome. {nonce}"}]}
    return {"turns": [{"user": "Run it.", "model": work}, second, last], "faults": list(faults)}


@pytest.mark.parametrize("way", ["command", "http"])
def test_a_message_is_given_in_the_middle_of_another_turn(sound: Any, way: str):
    """At a beacon, or at a wire event; each turn has an end and an answer of its own."""
    runs = sound(
        way,
        "--network=embedded",
        in_mid_tool=story(tool=1, when="started"),
        in_mid_reply=story(step=2, event=1, pace_ms=300),  # else the turn ends before the second message is read
    )
    for name, it in runs.items():
        assert (it.verdict, set(it.kinds)) == ("pass", {"answered"}), (name, it.says)
        first, second = list(it.history.of(StimulusGiven))[:2]
        ended = {end.turn: end for end in it.history.of(TurnEnded)}
        assert (first.turn, second.turn) == (1, 2)
        assert second.id < ended[1].id < ended[2].id, name
        assert [other.number for other in it.history.beside(it.history.turns[0])] == [2]


def test_a_moment_that_never_comes_is_no_pass(sound: Any):
    """The scenario was not played: inconclusive, and the sentence says why."""
    played = sound("command", "--network=embedded", never=story(event=99))["never"]
    assert played.verdict == "inconclusive"
    assert "message 2 was never given" in played.says
    assert [turn.number for turn in played.history.turns] == [1, 3, 4]


def test_a_callable_takes_one_message_at_a_time(sound: Any):
    """Its scenario is skipped, and says so."""
    played = sound("callable", "--network=embedded", two=story(tool=1))["two"]
    assert (played.verdict, played.says) == ("skipped", "skipped: the agent takes one call at a time (callable)")


@pytest.mark.parametrize("way", ["command", "http"])
def test_a_kill_ends_both_turns(sound: Any, way: str):
    """Whoever is at work is hit, and the next message goes on with the same session."""
    kill = {"link": "agent", "at": {"tool": 1, "after_s": 0.3}, "do": "kill"}
    # The kill ends this tool: it is at work when the kill comes, also on a busy machine.
    played = sound(way, "--network=embedded", both=story(tool=1, faults=[kill], tool_s=30))["both"]
    assert played.kinds == ["killed", "killed", "answered", "answered"], played.says
    assert played.verdict == "pass", played.says
    (killed,) = played.history.of(AgentKilled)
    assert len(killed.pids) >= 3 - (way == "http")
