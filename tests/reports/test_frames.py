"""The tables of a run as DataFrames, and our folds beside those of pandas: the same numbers."""

import random
from dataclasses import replace

import pandas as pd
import pytest

import wedgehog
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.cost import QUERIES, per_answer, worst
from wedgehog.reports.data import frames
from wedgehog.reports.latency import TimesKey, latency
from wedgehog.reports.repeats import SPENT, WAITED, cell_of
from wedgehog.reports.rows import RunRow, table

from .conftest import Campaign, judgement, plain_run, storm, storm_judgement

CELL = ["scenario", "agent"]


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> RunRow:
    """The row of a run, to be changed."""
    campaign = Campaign(tmp_path_factory.mktemp("row"))
    campaign.run(judgement("plain", "a"), plain_run)
    return table(load(campaign.folder))[0]


@pytest.fixture(scope="module")
def drawn(row: RunRow) -> list[RunRow]:
    """200 runs of nine cells with drawn numbers; one number in eight is missing."""
    draw = random.Random(7)
    return [_drawn(row, draw) for _ in range(200)]


def _drawn(row: RunRow, draw: random.Random) -> RunRow:
    numbers = {name: None if draw.random() < 0.125 else draw.random() * 10 for name in (*SPENT, *WAITED, *QUERIES)}
    told = {"scenario": draw.choice("xyz"), "agent": draw.choice("abc"), "answered_turns": draw.randrange(2)}
    wasted = None if numbers["cost_usd"] is None else draw.random() * numbers["cost_usd"]
    skipped = {"verdict": draw.choice(("pass", "fail", "skipped"))}
    return replace(row, **numbers, **told, **skipped, wasted_usd=wasted)


def _by_pandas(rows: list[RunRow]) -> pd.DataFrame:
    names = [*CELL, *SPENT, *WAITED, *QUERIES, "answered_turns", "wasted_usd"]
    played = [row for row in rows if row.verdict != "skipped"]
    return pd.DataFrame([[getattr(row, name) for name in names] for row in played], columns=names)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def test_the_largest_numbers_of_repeats_are_those_of_pandas(drawn: list[RunRow]):
    """A missing number of calls, tokens or money makes it unknown; of times the known ones count."""
    groups = _by_pandas(drawn).groupby(CELL, sort=False)
    spent, waited = groups[list(SPENT)].max(skipna=False), groups[[*WAITED, *QUERIES]].max()
    found = worst(drawn)
    assert [cell_of(row) for row in found] == spent.index.tolist()
    for name in (*SPENT, *WAITED, *QUERIES):
        wanted = (spent if name in SPENT else waited)[name].tolist()
        assert [_number(getattr(row, name)) for row in found] == pytest.approx(wanted, rel=0, nan_ok=True)


def test_the_cost_of_an_answer_is_that_of_pandas(drawn: list[RunRow]):
    """One unknown price makes the dollars of a cell unknown."""
    groups = _by_pandas(drawn).groupby(CELL, sort=False)
    usd, answers = groups["cost_usd"].sum(skipna=False), groups["answered_turns"].sum()
    wanted = pd.DataFrame({"usd": usd / answers, "wasted": groups["wasted_usd"].sum() / usd})
    wanted["tokens"] = groups["tokens_billed"].sum() / answers
    found = per_answer(drawn)
    assert list(found) == wanted.index.tolist()
    for cell, per in found.items():
        said = (_number(per.usd), _number(per.wasted_share), _number(per.tokens))
        assert said == pytest.approx(tuple(wanted.loc[cell]), nan_ok=True)


def test_quantiles_are_to_the_last_digit_those_of_pandas():
    """Groups of one to 40 times."""
    draw = random.Random(7)
    taken = {TimesKey("f", f"s{n}", "a", "turn"): [draw.expovariate(1) for _ in range(n)] for n in range(1, 41)}
    every = pd.DataFrame([(what.scenario, it) for what, found in taken.items() for it in found], columns=["s", "taken"])
    groups = every.groupby("s", sort=False)["taken"]
    wanted = zip(*(groups.quantile(part) for part in (0.5, 0.95, 0.99)), groups.max(), strict=True)
    assert [(row.p50, row.p95, row.p99, row.max) for row in latency(taken)] == list(wanted)


def test_the_repeats_of_a_cell_are_one_row(campaign: Campaign):
    """Each number's quantiles over the repeats, and how many passed; a skipped run is no repeat."""
    for repeat, calls in enumerate((1, 3, 11), start=1):
        campaign.run(replace(storm_judgement(), repeat=repeat), storm(calls, "buggy"))
    campaign.run(judgement("skipped", "a", skipped="no tool"))
    found = wedgehog.frames(campaign.folder)
    cells = found["cells"].set_index(["scenario", "agent"])
    assert len(cells) == 1
    cell = cells.iloc[0]
    assert (cell["runs"], cell["passed"], cell["failed"]) == (3, 0, 3)
    assert [cell[f"paid_calls_{of}"] for of in ("p50", "p95", "p99", "max")] == pytest.approx([3, 10.2, 10.84, 11])
    assert cell["tokens_billed_max"] == found["runs"]["tokens_billed"].max() > 11 * 7_000
    turns = found["latency"].set_index("measure").loc["turn"]
    assert [cell[f"turn_s_{of}"] for of in ("p50", "p95", "p99", "max")] == pytest.approx(
        [turns[of] for of in ("p50", "p95", "p99", "max")]
    )


def test_a_run_is_four_frames(campaign: Campaign):
    """Whole numbers are whole, also where one is missing, and a missing number is NA."""
    campaign.run(storm_judgement(), storm(5, "buggy"))
    campaign.run(judgement("skipped", "a", skipped="no tool"))
    found = wedgehog.frames(str(campaign.folder))
    runs = found["runs"].set_index("agent")
    assert {name: len(frame) for name, frame in found.items()} == {"runs": 2, "calls": 6, "latency": 4, "cells": 1}
    assert runs.loc["buggy", "paid_calls"] == 5 and runs.loc["a", "paid_calls"] is pd.NA
    assert runs["paid_calls"].dtype == "Int64" and runs["cost_usd"].dtype == "float64"
    assert found["calls"]["gen_ai.usage.input_tokens"].sum() == 6 * 8_000


def test_a_run_in_which_nothing_was_played_has_the_same_columns(campaign: Campaign):
    """Also in their types."""
    empty = {name: frame.dtypes.to_dict() for name, frame in wedgehog.frames(campaign.folder).items()}
    campaign.run(storm_judgement(), storm(5, "buggy"))
    assert empty == {name: frame.dtypes.to_dict() for name, frame in wedgehog.frames(campaign.folder).items()}


def test_without_pandas_one_line_says_what_to_install(campaign: Campaign, monkeypatch: pytest.MonkeyPatch):
    """No traceback of an import."""
    monkeypatch.setattr(frames, "INSTALLED", False)
    with pytest.raises(ValueError, match=r"pip install 'wedgehog\[pandas\]'"):
        frames.frames(campaign.folder)
