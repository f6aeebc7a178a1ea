"""Cost, latency and matrices as tables."""

import pandas as pd
import pytest

from wedgehog.reports.campaign_folder import load
from wedgehog.reports.cost import cost, total_usd
from wedgehog.reports.latency import latency
from wedgehog.reports.matrix import fixes, verdicts
from wedgehog.reports.rows import table

from .conftest import Telling, judgement, plain_run, storm, storm_judgement


def test_the_matrix_has_scenarios_down_and_agents_across(sample):
    """A cell holds the verdict in words; what was not played is empty."""
    cells = verdicts(table(load(sample)))
    assert list(cells.columns) == ["buggy", "only-wrapper", "fixed", "without-total-budget"]
    assert cells.loc["stall-after-headers", "buggy"] == "fail (expected)"
    assert cells.loc["timeout-in-mid-tool", "fixed"] == "fail (pass expected)"
    assert cells.loc["timeout-in-mid-tool", "only-wrapper"] == ""


def test_repeats_that_differ_are_counted_in_one_cell(campaign):
    """A flaky run is not hidden behind its last repeat."""
    for repeat, verdict in ((1, "pass"), (2, "fail"), (3, "pass")):
        campaign.run(judgement("plain", "mine", verdict, repeat=repeat), plain_run)
    assert verdicts(table(load(campaign.folder))).loc["plain", "mine"] == "pass 2, fail 1"


def test_the_fix_matrix_goes_from_broken_to_repaired(sample):
    """One row per variant, one column per scenario."""
    rows = table(load(sample))
    cells = fixes(rows[rows["family"] == "retry-storm"])
    assert list(cells.index) == ["buggy", "only-wrapper", "fixed", "without-total-budget"]
    assert cells.loc["only-wrapper", "stall-after-headers"] == "fail"


def test_without_a_single_fix_there_is_no_fix_matrix(sample):
    """Buggy beside fixed is what the verdicts show already."""
    rows = table(load(sample))
    assert fixes(rows[rows["family"] == "dangling-call"]).empty


def test_cost_shows_what_was_billed_beside_what_arrived(sample):
    """The storm's bill stands beside its zero tokens; a skipped run has no line."""
    spent = cost(table(load(sample))).set_index(["scenario", "agent"])
    storm_line = spent.loc[("stall-after-headers", "buggy")]
    assert (storm_line["paid_calls"], storm_line["tokens_delivered"]) == (160, 0)
    assert storm_line["cost_usd"] == pytest.approx(3.936)
    assert ("pings-only", "buggy") not in spent.index


def test_of_repeats_the_dearest_and_the_slowest_count(campaign):
    """An average would hide the storm."""
    campaign.run(storm_judgement(), storm(2, "buggy"))
    campaign.run(judgement("stall-after-headers", "buggy", "fail", repeat=2), storm(50, "buggy"))
    rows = table(load(campaign.folder))
    assert cost(rows)["paid_calls"].tolist() == [50]
    assert latency(rows)["turn_s"].tolist() == [pytest.approx(50 * 0.079, abs=1e-3)]


def test_one_unknown_price_makes_the_sum_unknown(campaign):
    """A sum that left one out would be wrong by an unknown amount."""

    def tell(telling: Telling) -> None:
        telling.model = "nobody-knows-me-9"
        telling.start("plain", "b", price_as="nor-me-either")
        telling.answered(1)

    campaign.run(judgement("plain", "a"), plain_run)
    assert total_usd(table(load(campaign.folder))) == pytest.approx(0.0246)
    campaign.run(judgement("plain", "b"), tell)
    rows = table(load(campaign.folder))
    assert total_usd(rows) is None
    assert pd.isna(cost(rows).set_index("agent").loc["b", "cost_usd"])


def test_one_repeat_of_unknown_price_makes_the_agents_cost_unknown(campaign):
    """The dearest of some known prices would not be the dearest."""

    def tell(telling: Telling) -> None:
        telling.model = "nobody-knows-me-9"
        telling.start("plain", "a", price_as="nor-me-either")
        telling.answered(1)

    campaign.run(judgement("plain", "a"), plain_run)
    campaign.run(judgement("plain", "a", repeat=2), tell)
    line = cost(table(load(campaign.folder))).to_dict("records")[0]
    assert pd.isna(line["cost_usd"])
    assert line["paid_calls"] == 1


def test_the_reports_number_stands_beside_the_measured_time_unscaled(campaign):
    """A time scale of 10 changes neither the measured time nor the report's words."""

    def tell(telling: Telling) -> None:
        telling.start("plain", "mine", time_scale=10.0)
        telling.answered(1)

    campaign.run(judgement("plain", "mine", report_number="60 s"), tell)
    line = latency(table(load(campaign.folder))).to_dict("records")[0]
    assert (line["turn_s"], line["report_number"]) == (pytest.approx(0.5), "60 s")


def test_nothing_played_makes_empty_tables(campaign):
    """Folds of nothing are tables of nothing."""
    rows = table(load(campaign.folder))
    assert verdicts(rows).empty
    assert fixes(rows).empty
    assert cost(rows).empty
    assert latency(rows).empty
    assert total_usd(rows) == 0
