"""What the model is asked decides where a turn is: results as text, and a turn that is played again."""

from typing import Any

import pytest

AS_TEXT = {
    'session.add("user", [run(call) for call in calls])': (
        'session.add("user", "".join(f"Observation: {run(call)[\'content\']}" for call in calls))'
    ),
    'session.add("assistant", content)\n': (
        'session.add("assistant", content if not calls_of({"content": content}) else f"Action: {content}")\n'
    ),
}
STEPS = [{"tool": "shell", "args": {"command": f"echo {word}"}} for word in ("one", "two")]
STORY = {
    "turns": [{"user": "Go on.", "model": [*STEPS, {"text": "Done {nonce}"}]}],
    "invariants": {"tool_deadline": {}},
}


@pytest.mark.parametrize("marked", [True, False])
def test_results_in_text_are_steps_or_the_scenario_is_skipped(sound: Any, unsound: dict[str, str], marked: bool):
    """Each tool runs once. Where the text lacks the command's last line, its result cannot be known."""
    unsound |= AS_TEXT
    if not marked:
        unsound["while True:"] = "for _ in range(3):"
        unsound["result(call, ran.stdout + ran.stderr, error"] = "result(call, 'it went well', error"
    played = sound("command", "--network=embedded", two=STORY)["two"]
    if not marked:
        assert played.verdict == "skipped" and "no request carried its result" in played.says
        return
    assert (played.verdict, played.kinds) == ("pass", ["answered", "answered"]), played.says
    assert [call.arrived.step for call in played.history.turns[0].calls] == [1, 2, 3]


AGAIN = "content = ask(url, session.messages)"
PATIENT = """try:
            content = ask(url, session.messages)
        except OSError:
            %s
            content = ask(url, session.messages)"""
DROPS = "session.messages[:] = session.messages[:1]"
CUT = {"link": "llm", "at": {"step": 2, "event": 3}, "do": "cut"}


@pytest.mark.parametrize(
    ("before_again", "violated"),
    [
        ("pass", ""),
        (DROPS, "at_most_once_tools"),
        ("session.messages[:] = session.messages[:1] + [{'role': 'user', 'content': 'The file is read.'}]", ""),
    ],
)
def test_an_agent_that_plays_its_turn_again_runs_its_tools_again(
    sound: Any, unsound: dict[str, str], before_again: str, violated: str
):
    """After a cut it asks the same again, or all from the start, or with a summary in place of the finished round."""
    unsound |= {AGAIN: PATIENT % before_again}
    played = sound("command", "--network=embedded", cut={**STORY, "faults": [CUT]})["cut"]
    assert (played.row["violated"], played.kinds) == (violated, ["answered", "answered"]), played.says
    steps = [call.arrived.step for call in played.history.turns[0].calls]
    assert steps == ([1, 2, 1, 2, 3] if violated else [1, 2, 2, 3])


def test_an_agent_at_its_limit_gets_last_words_without_tools(sound: Any, unsound: dict[str, str]):
    """It asks once more and offers no tools: a main call, whose words its user reads, and no error of the script."""
    unsound |= {
        "def ask(url, messages):": "def ask(url, messages, tools=(SHELL,)):",
        '"tools": [SHELL], ': '**({"tools": list(tools)} if tools else {}), ',
        AGAIN: """last = isinstance(session.messages[-1]["content"], list)
        if last:
            session.add("user", "You are at your limit. Answer now.")
        content = ask(url, session.messages, () if last else (SHELL,))""",
    }
    played = sound("command", "--network=embedded", two=STORY)["two"]
    assert (played.verdict, played.kinds) == ("pass", ["answered", "answered"]), played.says
    calls = played.history.turns[0].calls
    assert [(call.arrived.step, call.main) for call in calls] == [(1, True), (2, True)]
