"""What a turn may cost."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.testing import HistoryBuilder


def _a_turn_of(input_tokens: int, model: str = "claude-sonnet-4-6") -> HistoryBuilder:
    tell = HistoryBuilder(model=model)
    tell.message()
    tell.reply(tell.ask(1), "Done", input_tokens=input_tokens, tokens=0, delivered=1)
    return tell.end()


@pytest.mark.parametrize(("bound", "status"), [(0.31, "pass"), (0.30, "pass"), (0.29, "fail")])
def test_a_turn_may_cost_its_bound_and_no_more(bound: float, status: str):
    """100,000 input tokens at $3 per million."""
    assert check("spend_bound", _a_turn_of(100_000).seal(), usd_per_turn=bound).status == status


def test_without_a_bound_the_dearest_turn_is_reported():
    """There is no stock number."""
    tell = _a_turn_of(100_000)
    tell.message()
    tell.reply(tell.ask(1), "Done", input_tokens=10, tokens=0, delivered=1)
    verdict = check("spend_bound", tell.end().seal())
    assert verdict.status == "pass"
    assert verdict.says == "the most expensive turn, turn 1, had a simulated cost of $0.3000"


def test_a_small_cost_is_not_rounded_to_nothing():
    """A thousandth of a cent, and a bound that it exceeds."""
    history = _a_turn_of(10).seal()
    assert check("spend_bound", history).says.endswith("had a simulated cost of $0.000030")
    assert "$0.000030 in 1 paid calls, $0.000010 allowed" in check("spend_bound", history, usd_per_turn=0.00001).says


def test_the_cost_of_a_turn_that_asked_for_more_when_the_run_ended_is_a_lower_bound():
    """It was stopped at its deadline, and still made calls."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True], input_tokens=100_000, tokens=0, delivered=1)
    tell.deadline().end("", ended="deadline", exit_code=None)
    says = check("spend_bound", tell.seal()).says
    assert says == "the most expensive turn, turn 1, had a simulated cost of at least $0.3000"


def test_an_unknown_price_is_inconclusive_and_never_nothing():
    """The table knows this model, but no price of it."""
    history = _a_turn_of(100_000, model="devstral-small:free").seal()
    assert check("spend_bound", history, usd_per_turn=1).status == "inconclusive"
    assert check("spend_bound", history).status == "pass"


def test_refused_calls_cost_nothing():
    """Nothing was accepted, so there is nothing to judge."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1))
    assert check("spend_bound", tell.fails().seal(), usd_per_turn=0).status == "nothing"


def test_calls_after_a_give_up_are_told_elsewhere():
    """They are `no_spend_after_abort`'s."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    tell.give_up(after_s=30)
    tell.reply(tell.ask(2), "Done", input_tokens=1_000_000)
    history = tell.end("", ended="gave up", exit_code=None).seal()
    assert check("spend_bound", history, usd_per_turn=0.1).status == "pass"


@pytest.mark.parametrize(("most", "status"), [(90_000, "fail"), (91_000, "pass"), (201_000, "pass")])
def test_after_so_many_tokens_no_request_is_sent(most: int, status: str):
    """The last reply may take more than is left; what an agent estimates may be a tenth off."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], input_tokens=100_000, tokens=0, delivered=1)
    tell.reply(tell.ask(2, results=[tell.runs(token)]), "Done", input_tokens=100_000, tokens=0, delivered=1)
    verdict = check("spend_bound", tell.end().seal(), tokens_per_turn=most)
    assert verdict.status == status
    if status == "fail":
        assert verdict.says == "turn 1: request 2 was sent after 100000 tokens, 90000 allowed"


def test_tokens_that_no_reply_has_told_are_not_counted():
    """The first reply broke off, and its number of tokens never came."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), "Half")
    tell.reply(tell.ask(1), "Done", input_tokens=100, tokens=0, delivered=1)
    assert check("spend_bound", tell.end().seal(), tokens_per_turn=1).status == "pass"
