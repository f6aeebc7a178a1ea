"""What each agent's runs cost, and how long its user waited."""

from dataclasses import replace

import pytest

from wedgehog.harness.record.events.turn import GaveUp
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.cost import cost_words, notes, numbers, total_usd, total_words, worst
from wedgehog.reports.repeats import cell_of
from wedgehog.reports.rows import table
from wedgehog.reports.totals import side_by_side

from .conftest import Telling, judgement, plain_run, storm, storm_judgement


def test_cost_shows_what_was_billed_beside_what_arrived(sample):
    """The cost of the storm stands beside its zero tokens; a skipped run has no row."""
    spent = {cell_of(row): row for row in worst(table(load(sample)))}
    storm_line = spent["stall-after-headers", "buggy"]
    assert (storm_line.paid_calls, storm_line.tokens_delivered) == (160, 0)
    assert storm_line.cost_usd == pytest.approx(3.936)
    assert ("pings-only", "buggy") not in spent


def test_of_repeats_the_dearest_and_the_slowest_count(campaign):
    """The largest number counts, not the average."""
    campaign.run(storm_judgement(), storm(2, "buggy"))
    campaign.run(judgement("stall-after-headers", "buggy", "fail", repeat=2), storm(50, "buggy"))
    (row,) = worst(table(load(campaign.folder)))
    assert (row.paid_calls, row.turn_s) == (50, pytest.approx(50 * 0.079, abs=1e-3))


def test_one_unknown_price_makes_the_sum_unknown(campaign):
    """One unknown price makes the sum unknown."""

    def tell(telling: Telling) -> None:
        telling.model = "nobody-knows-me-9"
        telling.start("plain", "b", price_as="nor-me-either")
        telling.answered(1)

    campaign.run(judgement("plain", "a"), plain_run)
    assert total_usd(table(load(campaign.folder))) == pytest.approx(0.0246)
    campaign.run(judgement("plain", "b"), tell)
    rows = table(load(campaign.folder))
    assert total_usd(rows) is None
    assert {row.agent: row.cost_usd for row in worst(rows)} == {"a": pytest.approx(0.0246), "b": None}


@pytest.mark.parametrize(
    ("price_as", "said"),
    [
        ("claude-sonnet-4-6", "my-own-7b is not in the price table: billed as claude-sonnet-4-6."),
        ("nor-me-either", "The price of my-own-7b is unknown, and so is the cost."),
    ],
)
def test_a_borrowed_or_missing_price_is_said_where_the_cost_is(campaign, price_as, said):
    """Once for each model; one with a price of its own is not named."""

    def tell(telling: Telling) -> None:
        telling.model = "my-own-7b"
        telling.start("plain", "b", price_as=price_as)
        telling.answered(1)

    campaign.run(judgement("plain", "a"), plain_run)
    for repeat in (1, 2):
        campaign.run(judgement("plain", "b", repeat=repeat), tell)
    rows = table(load(campaign.folder))
    assert list(notes(rows)) == list(notes(worst(rows))) == [said]


def test_one_repeat_of_unknown_price_makes_the_agents_cost_unknown(campaign):
    """The largest known price is not the largest price."""

    def tell(telling: Telling) -> None:
        telling.model = "nobody-knows-me-9"
        telling.start("plain", "a", price_as="nor-me-either")
        telling.answered(1)

    campaign.run(judgement("plain", "a"), plain_run)
    campaign.run(judgement("plain", "a", repeat=2), tell)
    (row,) = worst(table(load(campaign.folder)))
    assert (row.cost_usd, row.paid_calls) == (None, 1)


def test_the_reports_number_stands_beside_the_measured_time_unscaled(campaign):
    """A time scale of 10 changes neither the measured time nor the incident's number."""

    def tell(telling: Telling) -> None:
        telling.start("plain", "mine", time_scale=10.0)
        telling.answered(1)

    campaign.run(judgement("plain", "mine", report_number="60 s"), tell)
    (row,) = worst(table(load(campaign.folder)))
    assert (row.turn_s, row.report_number) == (pytest.approx(0.5), "60 s")


def test_nothing_played_makes_empty_tables(campaign):
    """No run gives an empty table."""
    rows = table(load(campaign.folder))
    assert worst(rows) == []
    assert total_usd(rows) == 0


def scripted(telling: Telling) -> None:
    """A turn whose tokens the script sets."""
    telling.start("plain", "mine")
    telling.message(1)
    call = telling.request(1)
    telling.accept(call, scripted=True)
    telling.whole(call)
    telling.end(1)


def left(telling: Telling) -> None:
    """The front end gave up, and the agent still works when recording ends."""
    telling.start("plain", "mine")
    telling.message(1)
    telling.accept(telling.request(1))
    telling.history.add(GaveUp(turn=1))
    telling.end(1, ended="gave up")
    telling.answered(2, "recovery")


def test_a_cost_by_the_scripts_own_tokens_is_marked(campaign):
    """Their cost has a `*`."""
    campaign.run(judgement("plain", "mine"), scripted)
    (row,) = worst(table(load(campaign.folder)))
    assert cost_words(row) == "$0.025*"
    assert list(notes([row])) == ["* The script sets the tokens; they are not counted from what was sent."]


def test_agents_side_by_side_have_the_same_lower_bounds(campaign):
    """As in the table above them; the totals of an agent that was not stopped are exact."""
    campaign.run(judgement("plain", "mine", "fail"), left)
    campaign.run(judgement("plain", "other"), scripted)
    mine, other, _, *lines = (line for _, line in side_by_side(load(campaign.folder)))
    assert "mine: passed 0 of 1 scenario, at least 1 paid call, simulated cost at least $0.024, " in mine
    assert "other: passed 1 of 1 scenario, 1 paid call, simulated cost $0.025, " in other
    assert [line.partition(", turn")[0] for line in lines] == [
        "mine: failed 1 of 1, at least 1 paid",
        "other: passed 1 of 1, 1 paid",
    ]


def test_the_cost_of_a_run_that_was_still_going_on_is_a_lower_bound(campaign):
    """The sum of all runs is one too."""
    campaign.run(judgement("plain", "mine", "fail"), left)
    rows = table(load(campaign.folder))
    (row,) = worst(rows)
    assert (cost_words(row), total_words(rows)) == ("≥ $0.024", "simulated cost at least $0.024")
    tiny = replace(row, cost_usd=0.000027)
    assert (cost_words(tiny), total_words([tiny])) == ("≥ $0.000027", "simulated cost at least $0.000027")
    assert numbers(row)[:3] == ("≥ 1", "≥ 8,000", "0"), "so are calls and tokens; of none there is no sign"
    assert [note[0] for note in notes([row])] == ["≥"]
    campaign.run(judgement("plain", "mine", repeat=2), plain_run)
    (row,) = worst(table(load(campaign.folder)))
    assert cost_words(row).startswith("≥"), "one of the repeats was cut short"


def test_a_cost_that_was_counted_to_the_end_has_no_sign(campaign):
    """There are no notes."""
    campaign.run(judgement("plain", "mine"), plain_run)
    rows = table(load(campaign.folder))
    assert (total_words(rows), list(notes(rows))) == ("simulated cost $0.025", [])
