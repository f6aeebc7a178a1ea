"""Half a command never runs."""

from wedgehog.harness.invariants import check
from wedgehog.harness.testing import HistoryBuilder


def test_a_cut_call_that_runs_fails():
    """Half a command is another command."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.cut(tell.ask(1), tools=[False])
    tell.starts(token)
    verdict = check("no_half_calls", tell.fails().seal())
    assert (verdict.status, verdict.says) == (
        "fail",
        "tool call 1.1.1 (shell) ran, though only a part of it had arrived",
    )


def test_a_call_cut_at_max_tokens_that_runs_fails_alike():
    """The stream was whole, its arguments were not."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[False], stop="max_tokens")
    tell.starts(token)
    assert check("no_half_calls", tell.fails().seal()).status == "fail"


def test_a_cut_call_that_is_asked_for_again_and_then_runs_passes():
    """Both bear the same token; the second was whole."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), tools=[False])
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.answer_step(2, [tell.runs(token)])
    assert check("no_half_calls", tell.end().seal()).status == "pass"


def test_a_cut_call_that_runs_before_it_is_asked_for_again_fails():
    """The whole one came too late to excuse it."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.cut(tell.ask(1), tools=[False])
    tell.starts(token)
    tell.reply(tell.ask(1), tools=[True])
    tell.answer_step(2, [tell.runs(token)])
    assert check("no_half_calls", tell.end().seal()).status == "fail"


def test_the_whole_sibling_of_a_cut_call_may_run():
    """Only what was cut must not."""
    tell = HistoryBuilder()
    tell.message()
    whole, _ = tell.cut(tell.ask(1), tools=[True, False])
    tell.starts(whole)
    assert check("no_half_calls", tell.fails().seal()).status == "pass"


def test_without_a_cut_call_there_is_nothing_to_judge():
    """All arguments came whole."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.answer_step(2, [tell.runs(token)])
    assert check("no_half_calls", tell.end().seal()).status == "nothing"
