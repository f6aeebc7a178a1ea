"""Where each message adds to what was said, an answer is said once."""

from wedgehog.harness.invariants import check
from wedgehog.harness.testing import HistoryBuilder

WORDS = "A small animal with spines. "


def _status(shown: str, *, appends: bool = True, tries: int = 1, replies: int = 1) -> str:
    """A turn whose answer shows the model's words as this template says."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(tries - 1):
        tell.cut(tell.ask(1))
        tell.wait(2)
    for _ in range(replies):
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


def test_an_answer_that_the_model_gave_twice_may_be_shown_twice():
    """It was asked twice, which `asked_once` judges."""
    assert _status("{0}\n{0}", replies=2) == "nothing"
