"""What an agent says of its own tokens and dollars is near to what the provider billed."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.turn import ToldUsage
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder


def _turn(tell: HistoryBuilder, usage: ToldUsage | None) -> None:
    """A tool round, a reply that broke off, its retry, a title: 3,000 tokens of input certainly, 5,000 at most."""
    tell.message()
    tell.reply(tell.ask(background="title"), tokens=10)
    tokens = tell.reply(tell.ask(1), tools=[True], tokens=100)
    results = [tell.runs(token) for token in tokens]
    tell.cut(tell.ask(2, results=results))
    tell.reply(tell.ask(2, results=results), "Done", tokens=200)
    tell.reply(tell.ask(1, side="subagent 1"), "Found", tokens=300)
    tell.end(usage=usage)


def _told(usage: ToldUsage | None) -> History:
    tell = HistoryBuilder()
    _turn(tell, usage)
    return tell.seal()


@pytest.mark.parametrize(
    ("usage", "status"),
    [
        (ToldUsage(input_tokens=3000, output_tokens=600), "pass"),
        (ToldUsage(input_tokens=5000), "pass"),
        (ToldUsage(input_tokens=2750), "pass"),
        (ToldUsage(input_tokens=1000), "fail"),
        (ToldUsage(input_tokens=0), "fail"),
        (ToldUsage(input_tokens=9000), "fail"),
        (ToldUsage(output_tokens=200), "fail"),
        (ToldUsage(), "nothing"),
        (None, "nothing"),
    ],
)
def test_a_count_lies_between_the_whole_replies_and_all_that_was_billed(usage: ToldUsage | None, status: str):
    """A broken reply and a title may be left out; a round of tools or a subagent may not."""
    assert check("usage_told", _told(usage)).status == status


def test_the_verdict_says_both_numbers():
    """What the agent says, and what the bill says."""
    says = check("usage_told", _told(ToldUsage(input_tokens=1000))).says
    assert says == "turn 1: the agent says 1,000 input tokens, and its 5 paid calls took 3,000"


@pytest.mark.parametrize(("tokens", "status"), [(6000, "pass"), (3000, "fail")])
def test_a_count_of_the_session_includes_its_earlier_turns(tokens: float, status: str):
    """A running total is compared with the sum over the turns so far."""
    tell = HistoryBuilder()
    _turn(tell, ToldUsage(input_tokens=3000, of_session=True))
    _turn(tell, ToldUsage(input_tokens=tokens, of_session=True))
    assert check("usage_told", tell.seal()).status == status


@pytest.mark.parametrize(
    ("model", "usd", "status"),
    [
        ("claude-sonnet-4-5", 0.018, "pass"),
        ("claude-sonnet-4-5", 0.006, "fail"),
        ("claude-sonnet-4-5", 0.09, "fail"),
        ("m", 0.5, "nothing"),
    ],
)
def test_dollars_count_where_the_price_of_the_model_is_known(model: str, usd: float, status: str):
    """3,000 tokens of input and 600 of output are 1.8 cents; price tables differ by less than a third."""
    tell = HistoryBuilder(model=model)
    _turn(tell, ToldUsage(usd=usd))
    assert check("usage_told", tell.seal()).status == status


@pytest.mark.parametrize(("tokens", "status"), [(1000, "pass"), (0, "fail")])
def test_what_came_before_an_error_is_billed_too(tokens: float, status: str):
    """The first round of tools arrived whole; the provider refused the second."""
    tell = HistoryBuilder()
    tell.message()
    results = [tell.runs(token) for token in tell.reply(tell.ask(1), tools=[True], tokens=200)]
    tell.refuse(tell.ask(2, results=results), 529)
    tell.end("", error="Error: overloaded", usage=ToldUsage(input_tokens=tokens))
    assert check("usage_told", tell.seal()).status == status


def test_a_turn_that_its_user_stopped_is_not_judged():
    """Its agent may not have had the time to count."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True], tokens=200)
    tell.abort().end("", ended="aborted", exit_code=130, usage=ToldUsage(input_tokens=0))
    assert check("usage_told", tell.seal()).status == "nothing"
