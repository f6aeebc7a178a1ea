"""One row per run, and summary.csv."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.turn import DeadlineHit
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.rows import COLUMNS, RunRow, table, write_csv

from .conftest import Campaign, Telling, dangling, judgement, plain_run, storm, storm_judgement


def _row(campaign: Campaign) -> RunRow:
    (row,) = table(load(campaign.folder))
    return row


def _written(path: Path) -> dict:
    return next(csv.DictReader(path.read_text().splitlines()))


def test_summary_csv_has_exactly_the_promised_columns_in_order(sample, tmp_path):
    """Programs read summary.csv by these names."""
    write_csv(table(load(sample)), tmp_path / "s.csv")
    head = (tmp_path / "s.csv").read_text().split("\n")[0]
    assert head == (
        "scenario,agent,world,network,time_scale,verdict,expected,violated,level,strict,"
        "paid_calls,refused_calls,tokens_billed,"
        "tokens_delivered,cost_usd,usage,at_least,calls_s,peak_calls_per_min,peak_usd_per_min,start_s,turn_s,"
        "first_error_s,"
        "recovery_s,answered,virtual_s,real_s,faults_fired,run_dir,replay"
    )


def test_a_storm_is_billed_for_every_call_and_the_recovery_message_is_not_counted(campaign):
    """160 stalled calls are 160 paid calls; the recovery message is left out."""
    campaign.run(storm_judgement(), storm(160, "buggy"))
    row = _row(campaign)
    assert (row.paid_calls, row.tokens_billed, row.tokens_delivered) == (160, 160 * 8_040, 0)
    assert row.cost_usd == pytest.approx(160 * (8_000 * 3 + 40 * 15) / 1e6)
    assert row.calls_s == pytest.approx(160 * 0.079 - 0.025, abs=1e-3)
    assert row.peak_calls_per_min == pytest.approx(160 * 60 / row.calls_s, rel=1e-4)
    assert row.peak_usd_per_min == pytest.approx(row.cost_usd * 60 / row.calls_s, rel=1e-4)
    assert (row.time_scale, row.usage, row.at_least) == (1.0, "counted", False)
    assert row.faults_fired == 160
    assert row.violated == "paid_call_bound;retry_discipline"


def test_times_count_from_the_first_request_to_what_the_user_saw(campaign):
    """Turn, first error and recovery are measured from the first request to the end of the turn."""
    campaign.run(storm_judgement(), storm(10, "buggy"))
    row = _row(campaign)
    assert row.turn_s == row.first_error_s == pytest.approx(10 * 0.079, abs=1e-3)
    assert row.recovery_s == pytest.approx(0.5)


def _refused() -> FaultFired:
    """A closed port: no request is known."""
    place = {"turn": 1, "step": None, "attempt": None, "call": None}
    return FaultFired(fault=0, name="refuse", link="llm", proof="the port was closed", **place)


def _asks_after(*begins_s: float, ready_s: float = 0.0):
    """One turn for each number: so many seconds from its message to its first request."""

    def tell(telling: Telling) -> None:
        telling.start("s", "mine", ready_s=ready_s)
        for number, one_s in enumerate(begins_s, start=1):
            telling.message(number)
            call = telling.later(one_s).request(number)
            telling.accept(call)
            telling.whole(call)
            telling.end(number, "Done.")

    return tell


@pytest.mark.parametrize(
    ("begins_s", "ready_s", "start_s"), [((0.5, 2.0), 0.0, 2.0), ((0.5, 1.0), 3.0, 3.5), ((0.2, 4.0), 3.0, 4.0)]
)
def test_the_start_is_the_longest_time_from_a_message_to_its_first_request(campaign, begins_s, ready_s, start_s):
    """An agent that stays starts before its first message: that time is part of the first start."""
    campaign.run(judgement("s", "mine"), _asks_after(*begins_s, ready_s=ready_s))
    assert _row(campaign).start_s == pytest.approx(start_s)


def test_a_turn_whose_requests_a_fault_kept_away_has_no_start(campaign):
    """The fault decides when its first request comes. Nor has one without a request."""

    def tell(telling: Telling) -> None:
        telling.start("s", "mine")
        telling.message(1)
        telling.history.add(_refused())
        telling.later(20).request(1)
        telling.end(1, "Done.")
        telling.message(2)
        telling.later(9).end(2, "Done.")

    campaign.run(judgement("s", "mine"), tell)
    assert _row(campaign).start_s is None


def test_a_recovery_that_was_not_answered_has_no_time(campaign):
    """A refused recovery message is no recovery."""
    campaign.run(judgement("timeout-in-mid-tool", "buggy", "fail"), dangling)
    row = _row(campaign)
    assert row.recovery_s is None
    assert row.refused_calls == 0  # the refused one was the recovery's
    assert row.answered is False


def test_a_turn_that_was_answered_shows_no_error(campaign):
    """Without an error there is no time to it."""
    campaign.run(judgement("plain", "fixed"), plain_run)
    row = _row(campaign)
    assert row.first_error_s is None
    assert row.answered is True


def test_a_wake_up_owes_no_answer(campaign):
    """`answered` is empty where no message needs an answer."""
    campaign.run(storm_judgement(), storm(3, "buggy"))
    assert _row(campaign).answered is None


def test_an_unknown_price_is_unknown_and_never_zero(campaign, tmp_path):
    """A model without a price makes the run's cost unknown, in the table and in the file."""

    def tell(telling: Telling) -> None:
        telling.model = "nobody-knows-me-9"
        telling.start("plain", "fixed", price_as="nor-me-either")
        telling.answered(1)

    campaign.run(judgement("plain", "fixed"), tell)
    rows = table(load(campaign.folder))
    assert rows[0].cost_usd is None
    write_csv(rows, tmp_path / "s.csv")
    written = _written(tmp_path / "s.csv")
    assert written["cost_usd"] == "unknown"
    assert written["paid_calls"] == "1"


def test_a_skipped_run_has_a_row_without_numbers(campaign, tmp_path):
    """The cost of a skipped run is empty, not 0."""
    campaign.run(judgement("plain", "fixed", skipped="it does not stream"))
    write_csv(table(load(campaign.folder)), tmp_path / "s.csv")
    written = _written(tmp_path / "s.csv")
    assert written["verdict"] == "skipped"
    assert {written[name] for name in ("violated", *COLUMNS[10:23])} == {""}


def test_a_run_without_any_event_still_has_a_row(campaign):
    """If the control run fails, no scenario is played and the history is empty."""
    campaign.run(judgement("plain", "fixed", "error", as_expected=False, says="its control run failed"))
    row = _row(campaign)
    assert (row.verdict, row.paid_calls) == ("error", 0)


def test_the_longest_turn_and_the_first_error_are_told(campaign):
    """Of several turns the longest is the turn time, and the first that showed an error gives the error time."""

    def tell(telling: Telling) -> None:
        telling.start("plain", "fixed")
        for turn, wait_s in ((1, 2.0), (2, 7.0)):
            telling.message(turn)
            call = telling.request(turn)
            telling.accept(call)
            telling.stalled(call, wait_s)
            telling.end(turn, error="Error: Timeout", exit_code=1)

    campaign.run(judgement("plain", "fixed"), tell)
    row = _row(campaign)
    assert (row.turn_s, row.first_error_s) == (pytest.approx(7.0), pytest.approx(2.0))


def test_a_turn_over_its_deadline_showed_no_error(campaign):
    """Silence until the deadline is no error that a user sees."""

    def tell(telling: Telling) -> None:
        telling.start("plain", "fixed")
        telling.message(1)
        telling.accept(telling.request(1))
        telling.later(120).history.add(DeadlineHit(turn=1, bound_s=120))
        telling.end(1, ended="deadline", exit_code=130)

    campaign.run(replace(judgement("plain", "fixed"), verdict="fail"), tell)
    assert _row(campaign).first_error_s is None


def test_half_a_character_does_not_break_the_table(campaign, tmp_path):
    """An agent may say half a surrogate pair, which no file can hold: it is written as an escape."""
    campaign.run(judgement("plain", "fixed", "fail", says="a\udc80b"), plain_run)
    rows = table(load(campaign.folder))
    write_csv(rows, tmp_path / "s.csv")
    assert rows[0].says == "a\\udc80b"
