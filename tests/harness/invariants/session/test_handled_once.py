"""A message that comes again with its id, or that has waited, is not worked on again."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.turn import DeliveredAgain
from wedgehog.harness.testing import HistoryBuilder


def _delivered(*, tries: int = 1, fails: bool = False) -> HistoryBuilder:
    """A message is delivered again while its first step is under way."""
    tell = HistoryBuilder()
    turn = tell.message()
    for _ in range(tries - 1):
        tell.reply(tell.ask(1), "Wait.")
    first = tell.ask(1)
    tell.add(DeliveredAgain(turn=turn))
    if fails:
        tell.refuse(first, status=500)
    else:
        tell.reply(first, f"Done {tell.nonce}")
    return tell


def _status(tell: HistoryBuilder) -> str:
    return check("handled_once", tell.end().seal()).status


def test_a_step_that_is_asked_for_again_is_red():
    """The model is paid again, and its calls run again."""
    tell = _delivered()
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    assert _status(tell) == "fail"


def test_further_steps_of_the_same_work_are_no_second_work():
    """The turn goes on as it would have without the second delivery."""
    assert _status(_delivered()) == "pass"
    tell = _delivered()
    tell.reply(tell.ask(2), f"Done {tell.nonce}")
    assert _status(tell) == "pass"


def test_a_step_that_failed_may_be_tried_again():
    """Which of the two deliveries caused the second try is not known."""
    tell = _delivered(fails=True)
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    assert _status(tell) == "nothing"


def test_an_agent_that_asks_for_each_step_twice_is_not_judged():
    """It does so in a turn that was delivered once."""
    tell = _delivered()
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    tell.end().message()
    for _ in range(2):
        tell.reply(tell.ask(1), f"Done {tell.nonce}")
    assert _status(tell) == "nothing"


def test_a_message_that_was_delivered_once_is_not_judged():
    """Two tries of a step are for other invariants."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(2):
        tell.reply(tell.ask(1), f"Done {tell.nonce}")
    assert _status(tell) == "nothing"


def test_a_mention_that_came_as_two_events_is_red_in_each_turn_where_both_are_worked_on():
    """Other turns that came twice do not say that the agent asks for each step twice."""
    tell = HistoryBuilder()
    for _ in range(2):
        turn = tell.message()
        tell.reply(tell.ask(1), f"Done {tell.nonce}")
        tell.add(DeliveredAgain(turn=turn, other_event=True))
        tell.reply(tell.ask(1), f"Done {tell.nonce}")
        tell.end()
    verdict = check("handled_once", tell.seal())
    assert verdict.status == "fail" and "came as two events" in verdict.says


@pytest.mark.parametrize(
    ("doubled", "struck", "usual", "status"),
    [
        ((2,), False, False, "fail"),
        ((), False, False, "pass"),
        ((2,), True, False, "nothing"),
        ((2,), False, True, "nothing"),
    ],
)
def test_a_message_that_waited_in_two_queues_is_red(doubled: tuple[int, ...], struck: bool, usual: bool, status: str):
    """It is asked once more behind its answer; not after a failure, and not where the agent asks for all twice."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.message()
    tell.goes_on(1)
    if struck:
        tell.refuse(tell.ask(2, results=[tell.runs(token)]), status=500)
    for _ in range(2 if usual else 1):
        tell.reply(tell.ask(2, results=[tell.runs(token)]), f"Done {tell.nonce}")
    tell.end().goes_on(2)
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    tell.reply(tell.ask(1, doubled=doubled), f"Done {tell.nonce}")
    assert _status(tell) == status
