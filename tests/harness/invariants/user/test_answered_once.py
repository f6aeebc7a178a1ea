"""Where each message adds to what was said, an answer is said once."""

from typing import Any

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.turn import DeliveredAgain
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder

WORDS = "A small animal with spines. "


def _status(shown: str, *, appends: bool = True, tries: int = 1) -> str:
    """A turn whose answer shows the model's words as this template says."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(tries - 1):
        tell.cut(tell.ask(1))
        tell.wait(2)
    tell.reply(tell.ask(1), f"{WORDS}{tell.nonce}")
    tell.end(shown.format(f"{WORDS}{tell.nonce}"), appends=appends)
    return check("answered_once", tell.seal()).status


def test_the_whole_answer_is_sent_once():
    """Behind its pieces, or in a second message."""
    assert (_status("{0}{0}"), _status("{0}\n{0}"), _status("{0}")) == ("fail", "fail", "pass")


def test_a_draft_that_grows_is_no_second_answer():
    """Only the last of these messages has the whole text."""
    assert _status(f"A small\n{WORDS}\n{{0}}") == "pass"


def test_where_a_final_text_may_repeat_a_log_it_is_for_the_strict_level():
    """A command prints what the model says, and then its answer."""
    assert _status("{0}\n{0}", appends=False) == "nothing"


def test_after_a_failure_an_agent_cannot_know_what_has_arrived():
    """It may send its message again."""
    assert _status("{0}\n{0}", tries=2) == "nothing"


def test_an_answer_with_its_thoughts_and_one_without_them_are_two():
    """The model writes its thoughts in tags."""
    for shown, status in (("{0}\n{1}", "fail"), ("{0}", "pass"), ("{1}", "pass")):
        tell = HistoryBuilder()
        tell.message()
        words = f"{WORDS}{tell.nonce}"
        tell.reply(tell.ask(1), f"<think>\nIt is one.</think>{words}")
        tell.end(shown.format(f"<think>\nIt is one.</think>{words}", words), appends=True)
        assert check("answered_once", tell.seal()).status == status


def _asked_again(shown: str, *, beside: bool = False, again: bool = False, **second: Any) -> Verdict:
    """The model gives its answer to two requests, of which the second one is as `second` says."""
    tell = HistoryBuilder()
    if beside:
        tell.message()
        tell.reply(tell.ask(1), "First.")
    turn = tell.message()
    if again:
        tell.add(DeliveredAgain(turn=turn))
    for more in ({}, second):
        tell.reply(tell.ask(1, **more), f"{WORDS}{tell.nonce}")
    tell.end(shown.format(f"{WORDS}{tell.nonce}"), appends=True)
    return check("answered_once", tell.seal())


def test_a_message_for_which_the_model_is_asked_twice_is_answered_once():
    """The second request has it behind the first answer, or is the same; the user reads both answers."""
    verdict = _asked_again("{0}\n{0}", body="b", doubled=[1])
    assert verdict.status == "fail"
    assert verdict.says == "turn 1: its user got the whole answer 2 times, and request 2 asks for it again"
    assert _asked_again("{0}\n{0}").status == "fail", "the same request"


def test_an_agent_may_ask_on_or_again_if_its_user_reads_one_answer():
    """It tells its model to go on, chooses one of two replies, or got the message twice, as `handled_once` judges."""
    assert _asked_again("{0}\n{0}", body="b").status == "nothing"
    assert _asked_again("{0}").status == "pass"
    assert _asked_again("{0}", body="b", doubled=[1]).status == "pass"
    assert _asked_again("{0}\n{0}", again=True).status == "nothing"
    assert _asked_again("{0}\n{0}", beside=True, body="b", doubled=[2]).status == "nothing", "it waited, likewise"


def test_after_a_failure_a_message_may_be_asked_for_again():
    """An agent cannot know what has arrived."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1))
    for _ in range(2):
        tell.reply(tell.ask(1), f"{WORDS}{tell.nonce}")
    tell.end(f"{WORDS}{tell.nonce}" * 2, appends=True)
    assert check("answered_once", tell.seal()).status == "nothing"
