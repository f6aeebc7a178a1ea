"""Half a reply is no answer."""

from wedgehog.harness.invariants import check
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import CUT_TEXT


def test_a_cut_text_as_answer_fails():
    """Exit code 0 and half a sentence look like success."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), CUT_TEXT)
    assert check("truncation_noticed", tell.end(f"{CUT_TEXT}").seal()).status == "fail"


def test_a_text_stopped_at_max_tokens_fails_alike():
    """The provider said that there was more."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), CUT_TEXT, stop="max_tokens")
    assert check("truncation_noticed", tell.end(CUT_TEXT).seal()).status == "fail"


def test_a_client_that_raises_on_a_truncated_stream_passes_whatever_it_had_shown():
    """The user saw half a text, and the error."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), CUT_TEXT)
    history = tell.end(CUT_TEXT, exit_code=1, stderr="RemoteProtocolError: peer closed connection").seal()
    assert check("truncation_noticed", history).status == "pass"
    assert check("error_surfaced", history).status == "pass"


def test_a_log_line_at_the_level_of_an_error_is_an_error_that_the_user_sees():
    """The half answer on stdout, the line on stderr, exit code 0: a person sees it, a script doesn't."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), CUT_TEXT)
    history = tell.end(CUT_TEXT, error="[ERROR] Model stream ended without a finish reason.").seal()
    assert check("truncation_noticed", history).status == "pass"
    assert check("error_surfaced", history).says == "turn 1: a script cannot see this error: the exit code is 0"


def test_a_second_attempt_that_was_whole_passes():
    """The answer holds the nonce."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), CUT_TEXT)
    tell.answer_step(1)
    assert check("truncation_noticed", tell.end().seal()).status == "pass"


def test_without_a_cut_reply_there_is_nothing_to_judge():
    """A refusal cuts nothing."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1))
    assert check("truncation_noticed", tell.fails().seal()).status == "nothing"
