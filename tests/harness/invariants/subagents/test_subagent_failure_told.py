"""A subagent that brought no word is no empty success for its parent."""

from collections.abc import Sequence

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def _judged(words: str | None, name: str = "task", *, chars: int = 0, is_error: bool = False) -> tuple[str, str]:
    """At level safe and at level strict; `words` are what the model said to the subagent, None: it was refused."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name=name)
    call = tell.ask(1, side="subagent 1", background="subagent")
    tell.refuse(call, 529) if words is None else tell.reply(call, words)
    told = result(token, chars=chars, is_error=is_error, printed=False, signs=())
    tell.reply(tell.ask(2, results=[told]), f"Done {tell.nonce}")
    history = tell.end().seal()
    return check("subagent_failure_told", history).status, check("failure_told", history).status


def test_an_empty_result_of_a_failed_subagent_is_red():
    """Its parent believes that the work is done."""
    assert _judged(None) == ("fail", "fail")


def test_any_word_and_the_mark_of_an_error_are_enough():
    """At level strict the words must tell of a failure."""
    assert _judged(None, chars=9) == ("pass", "fail")
    assert _judged(None, is_error=True) == ("pass", "pass")


@pytest.mark.parametrize(
    ("signs", "status"),
    [
        (("hollow",), "fail"),
        (("failed", "hollow"), "pass"),
        (("elsewhere",), "pass"),
        (("failed", "success"), "fail"),
        (("success", "foreign"), "pass"),
    ],
)
def test_an_empty_frame_is_no_word_and_a_success_is_a_lie(signs: Sequence[str], status: str):
    """As in `<task_result></task_result>`; an error beside it tells of the failure. `status` is a word of both."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="task")
    tell.refuse(tell.ask(1, side="subagent 1", background="subagent"), 529)
    told = result(token, chars=40, printed=False, signs=signs)
    tell.reply(tell.ask(2, results=[told]), f"Done {tell.nonce}")
    assert check("subagent_failure_told", tell.end().seal()).status == status


def test_a_model_that_says_nothing_to_a_subagent_is_judged_at_level_strict():
    """An agent may pass on that nothing was said; a word of its own is better."""
    assert _judged("") == ("nothing", "fail")
    assert _judged("", chars=9) == ("nothing", "pass")


@pytest.mark.parametrize(("words", "name"), [("It is empty.", "task"), (None, "shell")])
def test_words_and_other_tools_are_not_judged(words: str | None, name: str):
    """Words of a subagent are judged elsewhere, and a judge beside a tool is no result of it."""
    assert _judged(words, name) == ("nothing", "nothing")


def test_a_subagent_that_still_waits_when_its_parent_goes_on_has_not_failed():
    """It works in the background, and is given up later."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="spawn_agent")
    call = tell.ask(1, side="subagent 1", background="subagent")
    tell.reply(tell.ask(2, results=[result(token, chars=70, printed=False, signs=())]), f"Done {tell.nonce}")
    tell.stall(call)
    history = tell.end().seal()
    assert {check(name, history).status for name in ("subagent_failure_told", "failure_told")} == {"nothing"}


def test_a_success_that_the_subagent_may_have_told_of_is_not_the_agents():
    """Its words from before a tool may be what its parent gets."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="task")
    tell.reply(tell.ask(1, side="subagent 1", background="subagent"), "The first part is completed.", tools=[True])
    tell.refuse(tell.ask(2, side="subagent 1", background="subagent"), 529)
    told = result(token, chars=40, printed=False, signs=("success",))
    tell.reply(tell.ask(2, results=[told]), f"Done {tell.nonce}")
    assert check("subagent_failure_told", tell.end().seal()).status == "pass"


@pytest.mark.parametrize(("rounds", "chars", "status"), [(5, 0, "fail"), (5, 20, "pass"), (4, 0, "nothing")])
def test_an_empty_result_of_a_subagent_that_reached_its_limit_is_red(rounds: int, chars: int, status: str):
    """Its model had asked for one more tool."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="task")
    for step in range(1, rounds + 1):
        tell.reply(tell.ask(step, side="subagent 1", background="subagent"), tools=[True])
    told = result(token, chars=chars, printed=False, signs=())
    tell.reply(tell.ask(2, results=[told]), f"Done {tell.nonce}")
    verdict = check("subagent_failure_told", tell.end().seal())
    assert verdict.status == status
    if status == "fail":
        assert "subagent 1 was ended before its tool had run" in verdict.says


@pytest.mark.parametrize(
    ("words", "chars", "signs", "status"),
    [
        ("", 51, ("success",), "fail"),
        ("", 12, (), "fail"),
        ("", 40, ("failed", "part"), "pass"),
        ("I look at it.", 12, (), "nothing"),
        ("I look at it.", 40, ("success",), "fail"),
        ("The first part is done.", 40, ("success",), "nothing"),
        ("", 0, (), "nothing"),
    ],
)
def test_what_a_subagent_at_its_limit_is_worth_is_told_at_level_strict(
    words: str, chars: int, signs: Sequence[str], status: str
):
    """Its own words may be what its parent reads; an empty result is red at level safe."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="task")
    for step in range(1, 6):
        tell.reply(tell.ask(step, side="subagent 1", background="subagent"), words, tools=[True])
    told = result(token, chars=chars, printed=False, signs=signs)
    tell.reply(tell.ask(2, results=[told]), f"Done {tell.nonce}")
    assert check("failure_told", tell.end().seal()).status == status
