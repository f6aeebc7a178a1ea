"""The cost of a run: calls, tokens, bytes, money, rates."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from freezegun import freeze_time
from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import get_snapshot

from wedgehog.harness.record.history import History
from wedgehog.harness.record.ledger import Tally, ledger_of, played_ledger, price, price_table_date, priced_as
from wedgehog.harness.testing import HistoryBuilder

SONNET = "claude-sonnet-4-6"


def _one_of_each() -> History:
    """Turn 1: a refusal, a cut reply, a background title, the answer; then a call without an open turn."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 429)
    tell.reply(tell.ask(1), how="cut", input_tokens=1000, tokens=100, delivered=30)
    tell.reply(tell.ask(1, background="title"), "A title", input_tokens=10, tokens=5)
    tell.reply(tell.ask(1), f"Done {tell.nonce}", input_tokens=1000, tokens=20)
    tell.end()
    tell.reply(tell.ask(1, turn=0), "Noted", input_tokens=7, tokens=3)
    return tell.seal()


def test_a_refused_call_is_counted_and_costs_nothing():
    """4xx and 5xx are not paid."""
    ledger = ledger_of(_one_of_each())
    assert (ledger.paid_calls, ledger.total.refused) == (4, 1)
    assert ledger.call(1) == Tally(refused=1)


def test_a_cut_reply_is_billed_whole_and_delivered_in_part():
    """Input tokens on acceptance, generated output tokens, and delivered tokens."""
    cut = ledger_of(_one_of_each()).call(2)
    assert (cut.input_tokens, cut.output_tokens, cut.tokens_billed) == (1000, 100, 1100)
    assert (cut.tokens_delivered, cut.bytes_delivered) == (30, 300)
    assert cut.usd == Decimal("0.003") + Decimal("0.0015")


def test_background_calls_belong_to_their_turn():
    """Calls without an open turn belong to turn 0."""
    ledger = ledger_of(_one_of_each())
    assert ledger.turns[1].accepted == 3
    assert ledger.turns[0].tokens_billed == 10


def test_money_is_summed_exactly():
    """2,017 input and 128 output tokens at $3 and $15 per million."""
    ledger = ledger_of(_one_of_each())
    assert ledger.total.usd == Decimal(2017) * 3 / 10**6 + Decimal(128) * 15 / 10**6
    assert ledger.cost_usd == pytest.approx(0.007971)


def test_an_unknown_model_is_priced_as_the_run_says():
    """The ledger names the model whose price is used."""
    tell = HistoryBuilder(model="fake-model")
    tell.message()
    tell.reply(tell.ask(1), "Done", input_tokens=1_000_000, tokens=0, delivered=1)
    ledger = ledger_of(tell.end().seal())
    assert ledger.priced_as == {"fake-model": SONNET}
    assert ledger.cost_usd == 3.0


@pytest.mark.parametrize("model", ["devstral-small:free", "mistral-ocr-2503"])
def test_a_model_without_a_price_costs_unknown_and_makes_every_sum_unknown(model: str):
    """It is never 0."""
    tell = HistoryBuilder(model=model)
    tell.message()
    tell.reply(tell.ask(1), "Done", input_tokens=1000)
    ledger = ledger_of(tell.end().seal())
    assert ledger.priced_as == {model: None}
    assert (ledger.cost_usd, ledger.peak_usd_per_min, ledger.call(1).usd) == (None, None, None)
    assert ledger.paid_calls == 1


def test_a_refused_call_costs_nothing_even_without_a_price():
    """A refused call costs 0; a paid call without a price costs unknown."""
    tell = HistoryBuilder(model="devstral-small:free")
    tell.message()
    tell.refuse(tell.ask(1), 429)
    assert ledger_of(tell.fails().seal()).cost_usd == 0.0
    assert price("devstral-small:free", 1000, 1000, datetime(2026, 6, 1, tzinfo=UTC)) is None


def test_neither_model_nor_price_as_known_costs_unknown():
    """No model and no `price_as` has a price."""
    assert priced_as("fake-model", "another-fake") is None


def test_a_run_without_calls_costs_nothing():
    """Its cost is 0."""
    ledger = ledger_of(HistoryBuilder().seal())
    assert (ledger.paid_calls, ledger.cost_usd) == (0, 0.0)
    assert (ledger.calls_s, ledger.peak_calls_per_min, ledger.peak_usd_per_min) == (None, None, None)


def _paid_every(gap_s: float, count: int) -> History:
    tell = HistoryBuilder()
    tell.message()
    for _ in range(count):
        tell.reply(tell.ask(1), "x", input_tokens=8000, tokens=0, delivered=1, took_s=0)
        tell.wait(gap_s - 0.03)
    return tell.end().seal()


def test_the_storm_of_160_calls_costs_what_the_incident_says():
    """8,000 input tokens at $3 per million in 24 s: the rate is the cost divided by that time."""
    ledger = ledger_of(_paid_every(0.15, 160))
    assert ledger.cost_usd == pytest.approx(3.84)
    assert ledger.calls_s == pytest.approx(24, abs=0.2)
    assert ledger.peak_calls_per_min == pytest.approx(160 * 60 / ledger.calls_s)
    assert ledger.peak_usd_per_min == pytest.approx(3.84 * 60 / ledger.calls_s)


@pytest.mark.parametrize(("gap_s", "count", "peak"), [(9.9, 20, 7), (10.1, 20, 6), (59, 3, 2), (61, 3, 1)])
def test_the_peak_is_the_fullest_sixty_seconds(gap_s: float, count: int, peak: int):
    """A call one minute later is outside of the window."""
    ledger = ledger_of(_paid_every(gap_s, count))
    assert ledger.peak_calls_per_min == peak
    assert ledger.peak_usd_per_min == pytest.approx(peak * 0.024)


@pytest.mark.parametrize(("gap_s", "count", "peak"), [(1, 31, 62), (0.05, 5, 30), (4, 2, 12), (1, 1, None)])
def test_of_calls_that_took_less_than_a_minute_all_count_over_their_time(gap_s: float, count: int, peak: int | None):
    """Over ten seconds at least; one call has no rate."""
    ledger = ledger_of(_paid_every(gap_s, count))
    assert ledger.peak_calls_per_min == (None if peak is None else pytest.approx(peak, rel=0.01))


def test_the_time_of_the_calls_lasts_until_the_last_one_is_over():
    """A stalled one ends when the agent hangs up."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(2):
        tell.stall(tell.ask(1), waits_s=15)
    ledger = ledger_of(tell.fails().seal())
    assert ledger.calls_s == pytest.approx(30, abs=0.2)
    assert ledger.peak_calls_per_min == pytest.approx(4, abs=0.1)


def test_the_recovery_message_is_not_in_the_books_of_the_scenario():
    """The recovery message is left out."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.end().message("recovery")
    tell.answer_step(1)
    history = tell.end().seal()
    assert (played_ledger(history).paid_calls, ledger_of(history).paid_calls) == (1, 2)


def _a_long_call(started: str) -> float | None:
    tell = HistoryBuilder(started=started)
    tell.message()
    tell.reply(tell.ask(1), "Done", input_tokens=300_000, tokens=0, delivered=1)
    return ledger_of(tell.end().seal()).cost_usd


@pytest.mark.parametrize(
    ("started", "usd"),
    [
        ("2026-03-12T12:00:00+00:00", 1.8),
        ("2026-03-13T12:00:00+00:00", 0.9),
        ("2026-03-12T23:59:59.999+00:00", 0.9),
        ("2026-03-13T00:30:00+02:00", 1.8),
        ("2026-03-13T12:00:00", 0.9),
    ],
)
def test_a_run_is_priced_by_its_own_day_tiers_and_all(started: str, usd: float):
    """Until 12 March 2026 (UTC) long prompts of this model cost twice as much; a run over midnight has both prices."""
    assert _a_long_call(started) == pytest.approx(usd)


@pytest.mark.parametrize("today", ["2026-01-01", "2027-06-30 23:59:59"])
def test_judging_a_run_again_on_another_day_changes_no_price(today: str):
    """The date of the run counts, not today's."""
    with freeze_time(today):
        assert _a_long_call("2026-03-12T12:00:00+00:00") == pytest.approx(1.8)
        assert _a_long_call("2026-03-13T12:00:00+00:00") == pytest.approx(0.9)


def test_prices_that_change_with_the_time_of_day_follow_the_call():
    """`price` takes the time as an argument."""
    noon, night = (datetime(2025, 6, 1, hour, tzinfo=UTC) for hour in (12, 20))
    by_day = price("deepseek-chat", 1_000_000, 0, noon)
    by_night = price("deepseek-chat", 1_000_000, 0, night)
    assert by_day is not None and by_night is not None
    assert by_night < by_day


@pytest.mark.parametrize("tokens", [(1, 0), (0, 1), (8_123, 77), (262_145, 4_097)])
def test_the_price_of_every_model_is_that_of_the_price_table(tokens: tuple[int, int]):
    """The arithmetic of the table takes a millisecond for each call, so that of flat prices is our own."""
    at = datetime(2026, 6, 1, 20, tzinfo=UTC)
    wrong = {}
    for provider in get_snapshot().providers:
        for model in provider.models:
            ours = _price_or_none(model.id, tokens, at)
            if ours is not None:
                theirs = calc_price(
                    Usage(input_tokens=tokens[0], output_tokens=tokens[1]), model.id, genai_request_timestamp=at
                ).total_price
                wrong |= {model.id: (ours, theirs)} if ours != theirs else {}
    assert not wrong


def _price_or_none(model: str, tokens: tuple[int, int], at: datetime) -> object:
    try:
        return price(model, *tokens, at)
    except LookupError:
        return None


@pytest.mark.parametrize("today", ["2026-11-22", "2031-01-01"])
def test_the_price_tables_date_is_the_tables_own(today: str):
    """It does not depend on today's date, and is no start date of a future price."""
    price_table_date.cache_clear()
    with freeze_time(today):
        stated = price_table_date()
    price_table_date.cache_clear()
    assert stated is not None
    assert date(2026, 1, 1) < stated
    assert stated == price_table_date()


def test_the_price_tables_date_is_unknown_where_its_authors_name_none(monkeypatch: pytest.MonkeyPatch):
    """Without such a comment there is no date."""
    monkeypatch.setattr("genai_prices.data.providers", [])
    price_table_date.cache_clear()
    assert price_table_date() is None
    price_table_date.cache_clear()
