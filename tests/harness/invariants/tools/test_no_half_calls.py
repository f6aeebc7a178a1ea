"""Half a command never runs."""

from dataclasses import replace

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import ReplyEnded, ReplyStarted, ToolCallOffered
from wedgehog.harness.run.recording.result_signs import shells_words
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


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


@pytest.mark.parametrize(("wrapped", "status"), [(True, "nothing"), (False, "fail")])
def test_a_call_in_a_fence_that_runs_is_no_half_call(wrapped: bool, status: str):
    """All of it arrived; to take the fence off is an agent's own choice."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    offered = (ToolCallOffered("1.1.1", "shell", whole=False, wrapped=wrapped),)
    tell.add(ReplyStarted(call=call, input_tokens=10))
    tell.add(
        ReplyEnded(
            call=call,
            how="complete",
            stop="tool",
            output_tokens=5,
            tokens_delivered=5,
            body_bytes=50,
            bytes_delivered=50,
            blocks_delivered=1,
            tool_calls=offered,
        )
    )
    tell.starts("1.1.1")
    assert check("no_half_calls", tell.fails().seal()).status == status


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


@pytest.mark.parametrize(
    ("slowed", "left", "status"), [(True, False, "pass"), (True, True, "fail"), (False, False, "fail")]
)
def test_a_call_whose_rest_was_only_late_may_run_when_that_has_come(slowed: bool, left: bool, status: str):
    """The fault was healed after the turn, and the agent still waited; one that had hung up never got the rest."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.fires("drip", call)
    (token,) = tell.reply(call, tools=[False], how="stalled", delivered=2, slowed=slowed)
    if left:
        tell.hangs_up(call)
    tell.fails()
    tell.message()
    tell.answer_step(2, [tell.runs(token)])
    assert check("no_half_calls", tell.end().seal()).status == status


def test_a_call_that_runs_before_its_rest_has_come_is_half_a_call():
    """The reply is still on its way."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.fires("drip", call)
    tell.starts("1.1.1")
    tell.reply(call, tools=[False], how="stalled", delivered=2, slowed=True)
    assert check("no_half_calls", tell.fails().seal()).status == "fail"


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


@pytest.mark.parametrize("retried", [False, True])
def test_a_shell_that_could_not_read_its_command_to_the_end_had_run_half_a_call(retried: bool):
    """It left no beacon, but its words are in the result; after a whole call they are that one's."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.cut(tell.ask(1), tools=[False])
    if retried:
        tell.reply(tell.ask(1), tools=[True])
    said = replace(result(token, printed=False), broken_off="unexpected EOF while looking for matching")
    tell.answer_step(2, [said])
    verdict = check("no_half_calls", tell.end().seal())
    assert verdict.status == ("pass" if retried else "fail")
    assert retried or verdict.says.endswith("its shell said 'unexpected EOF while looking for matching'")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sh: 1: Syntax error: Unterminated quoted string", True),
        ("/bin/sh: -c: line 1: unexpected EOF while looking for matching `''", True),
        ("bash: -c: line 2: syntax error: unexpected end of file", True),
        ("zsh:1: unmatched '", True),
        ("Error: the arguments are no JSON: Unterminated string starting at: line 1 column 13", False),
        ("SyntaxError: Unexpected end of JSON input", False),
    ],
)
def test_the_words_of_a_shell_are_known_and_those_of_a_json_parser_are_others(text: str, found: bool):
    """An agent that refuses half a call says so in words of its own."""
    assert bool(shells_words(text)) is found
