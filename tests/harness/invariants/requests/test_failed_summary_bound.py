"""A summary that fails each time is not paid for with each message."""

from collections.abc import Sequence

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder

FAILS, WORKS, NONE = "fails", "works", "none"


def _messages(summaries: Sequence[str], *, tries: int = 1, shorter: bool = False) -> Verdict:
    """What became of the summary of each message; `shorter`: each is of the latest message only."""
    tell = HistoryBuilder()
    for summary in summaries:
        turn = tell.message()
        for _ in range(tries if summary != NONE else 0):
            asked = tell.ask(1, background="compact", sees=[turn] if shorter else None)
            if summary == WORKS:
                tell.reply(asked, "Of owls.")
            else:
                tell.refuse(asked, 500)
        tell.reply(tell.ask(1), f"Done {tell.nonce}")
        tell.end()
    return check("failed_summary_bound", tell.seal())


def test_a_summary_that_fails_with_each_message_is_red():
    """Each one is as long as the conversation."""
    found = _messages([FAILS] * 8)
    assert found.status == "fail"
    assert found.says == "turn 6: a summary was asked for in 6 messages in a row, and failed each time; 5 allowed"


def test_an_agent_that_gives_up_passes():
    assert _messages([FAILS] * 3 + [NONE] * 5).status == "pass"


def test_the_tries_of_one_message_count_once():
    assert _messages([FAILS] * 3, tries=4).status == "pass"


@pytest.mark.parametrize("between", [NONE, WORKS])
def test_a_message_with_none_and_a_summary_that_works_end_the_row(between: str):
    """After a while an agent may try again."""
    assert _messages([*[FAILS] * 5, between, *[FAILS] * 5]).status == "pass"


def test_an_agent_that_leaves_out_what_it_could_not_sum_up_asks_for_something_else():
    assert _messages([FAILS] * 8, shorter=True).status == "pass"


def test_without_a_summary_nothing_is_judged():
    assert _messages([NONE] * 8).status == "nothing"
