"""Latency over repeats, money per answer, the drawn distributions, and the tables as Parquet."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from wedgehog.harness.record.events.call import ToolCallOffered
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.store import StoredRun
from wedgehog.reports import write_folder
from wedgehog.reports.call_attributes import call_rows
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.cost import PerAnswer, per_answer
from wedgehog.reports.data import parquet
from wedgehog.reports.latency import MEASURES, LatencyRow, TimesKey, latency, times
from wedgehog.reports.page import distributions
from wedgehog.reports.rows import table

from .conftest import NONCE, Campaign, Telling, dangling, judgement, plain_run, storm, storm_judgement


def _took(seconds: float):
    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        call = telling.request(1)
        telling.accept(call)
        telling.later(seconds).whole(call, "no nonce", first_byte_s=seconds / 2)
        telling.end(1, "no nonce")

    return tell


def _found(campaign: Campaign) -> dict[str, LatencyRow]:
    return {row.measure: row for row in latency(times(load(campaign.folder)))}


def test_quantiles_are_those_of_all_repeats(campaign):
    """A hundred runs of 1 to 100 s: count, p50, p95, p99 and maximum of calls and first bytes."""
    for repeat in range(1, 101):
        campaign.run(judgement("s", "a", repeat=repeat), _took(float(repeat)))
    found = _found(campaign)
    call = found["call"]
    shown = (call.count, call.p50, call.p95, call.p99, call.max)
    assert shown == pytest.approx((100, 50.5, 95.05, 99.01, 100))
    assert found["first byte"].max == 50


def test_each_measure_counts_what_it_says(campaign):
    """The recovery message is a recovery and neither a turn nor a call; a tool without an end has no time."""
    campaign.run(storm_judgement(), storm(7, "buggy"))
    found = _found(campaign)
    assert {name: row.count for name, row in found.items()} == {"call": 7, "turn": 1, "first error": 1, "recovery": 1}
    assert found["call"].max == pytest.approx(0.054)


def _fails_twice(telling: Telling) -> None:
    """The first message fails after 2 s, the next one at once."""
    telling.start("s", "a")
    for turn, waits_s in ((1, 2.0), (2, 0.1)):
        telling.message(turn)
        telling.request(turn)
        telling.later(waits_s).end(turn, error="Error: no luck", exit_code=1)


def test_of_each_run_only_the_first_error_is_one(campaign):
    """Two repeats with two errors each: as in summary.csv, each repeat has one first error."""
    for repeat in (1, 2):
        campaign.run(judgement("s", "a", repeat=repeat), _fails_twice)
    found = _found(campaign)
    assert (found["turn"].count, found["first error"].count) == (4, 2)
    assert found["first error"].p50 == found["first error"].max == 2.0
    assert {row.first_error_s for row in table(load(campaign.folder))} == {2.0}


def test_a_tool_is_timed_from_its_start_to_its_end(campaign):
    """One of two commands ended."""
    campaign.run(judgement("s", "a"), dangling)
    assert _found(campaign)["tool"].count == 1


def _has_a_tool_in_its_recovery(telling: Telling) -> None:
    """Each of two messages has one command; the second message is the recovery."""
    telling.start("s", "a")
    for turn, kind in ((1, "user"), (2, "recovery")):
        telling.message(turn, kind=kind)
        call, token = telling.request(turn), f"{turn}.1.1"
        telling.accept(call)
        telling.whole(call, stop="tool", tool_calls=(ToolCallOffered(token, "shell", True),), blocks_delivered=1)
        telling.history.add(BeaconSeen(token=token, phase="started"))
        telling.later(1.0).history.add(BeaconSeen(token=token, phase="done"))
        telling.end(turn, f"{NONCE}{turn}")


def test_a_command_of_the_recovery_message_is_no_tool_of_the_scenario(campaign):
    """Nor is its call, and its turn is a recovery."""
    campaign.run(judgement("s", "a"), _has_a_tool_in_its_recovery)
    counts = {name: row.count for name, row in _found(campaign).items()}
    assert counts == {"call": 1, "tool": 1, "turn": 1, "recovery": 1}


def test_money_per_answer_and_what_was_wasted(campaign):
    """A storm without an answer has no price per answer, and all its money is wasted; an answered run wastes none."""
    campaign.run(storm_judgement(), storm(10, "buggy"))
    campaign.run(judgement("plain", "fixed"), plain_run)
    found = {agent: per for (_, agent), per in per_answer(table(load(campaign.folder))).items()}
    assert found["buggy"] == PerAnswer(None, None, pytest.approx(1))
    assert found["fixed"] == PerAnswer(pytest.approx((8_000 * 3 + 40 * 15) / 1e6), 8_040, 0)
    write_folder(campaign.folder)
    assert ">no answer</td>" in (campaign.folder / "report.html").read_text()


# ---- drawn

EVIL = "$\\frac{<script>alert(1)</script>"


def test_distributions_are_drawn_the_same_each_time_in_the_colours_of_the_page(campaign):
    """No id twice, no fixed colour, no style, no address, and names are text, not formulas or markup."""
    pytest.importorskip("matplotlib")
    for repeat in range(1, distributions.FEWEST + 1):
        campaign.run(judgement("s", EVIL, repeat=repeat), _took(1.0))
        campaign.run(replace(storm_judgement(), repeat=repeat), storm(30, "buggy"))
    taken = times(load(campaign.folder))
    drawn = "".join(distributions.distributions(taken))
    assert drawn == "".join(distributions.distributions(taken))
    assert drawn.count("<figure") == len({what.measure for what in taken}) <= len(MEASURES)
    ids = re.findall(r' id="([^"]+)"', drawn)
    assert len(ids) == len(set(ids))
    assert not re.search(r"#[0-9a-f]{6}|url\(|https?:|<style|<script|<metadata", drawn)
    assert "$\\frac{&lt;script" in drawn
    parser = HTMLParser()
    parser.feed(drawn)


def test_a_drawing_is_byte_for_byte_the_one_that_savefig_writes(campaign, monkeypatch):
    """It is written without `Figure.savefig`, which draws everything twice; the ground is transparent in both."""
    svg = pytest.importorskip("matplotlib.backends.backend_svg").FigureCanvasSVG
    campaign.run(storm_judgement(), storm(30, "buggy"))
    taken = times(load(campaign.folder))
    drawn = distributions.distributions(taken)
    direct, saved = svg.print_svg, []

    def by_savefig(canvas, target, metadata):
        with monkeypatch.context() as once:
            once.setattr(svg, "print_svg", direct)
            saved.append(canvas.figure.savefig(target, format="svg", transparent=True, metadata=metadata))

    monkeypatch.setattr(svg, "print_svg", by_savefig)
    assert distributions.distributions(taken) == drawn and len(saved) == len(drawn) > 0


@pytest.mark.usefixtures("drawings")
def test_the_page_has_the_drawings(campaign):
    """With matplotlib, and says nothing of what to install; with one time fewer only the table is there."""
    pages = []
    for repeat in range(1, distributions.FEWEST + 1):
        campaign.run(judgement("s", "a", repeat=repeat), _took(1.0))
        write_folder(campaign.folder)
        pages.append((campaign.folder / "report.html").read_text())
    assert ['<figure class="distribution"' in page for page in pages] == [False] * (distributions.FEWEST - 1) + [True]
    assert not any("wedgehog[plots]" in page for page in pages) and all("first byte" in page for page in pages)


def test_without_matplotlib_the_page_says_what_to_install(campaign, monkeypatch):
    """If there is something to draw. The tables are there all the same."""
    monkeypatch.setattr("wedgehog.reports.page.latency_section.DRAWS", False)
    campaign.run(judgement("s", "a"), _took(1.0))
    write_folder(campaign.folder)
    assert "wedgehog[plots]" not in (campaign.folder / "report.html").read_text()
    for repeat in range(2, distributions.FEWEST + 1):
        campaign.run(judgement("s", "a", repeat=repeat), _took(1.0))
    write_folder(campaign.folder)
    page = (campaign.folder / "report.html").read_text()
    assert "wedgehog[plots]" in page and "first byte" in page


# ---- Parquet


def _parquet_files(folder: Path) -> list[Path]:
    write_folder(folder, parquet=True)
    return [folder / f"{name}.parquet" for name in ("runs", "calls", "latency")]


def test_parquet_holds_runs_calls_and_latency(campaign):
    """The columns are those of the documentation, and the numbers those of the history."""
    pytest.importorskip("pyarrow")
    campaign.run(storm_judgement(), storm(5, "buggy"))
    runs, calls, taken = map(pd.read_parquet, _parquet_files(campaign.folder))
    assert (len(runs), len(calls)) == (1, 6)
    assert calls["gen_ai.usage.input_tokens"].sum() == 6 * 8_000
    assert calls["error.type"].tolist() == ["stalled"] * 5 + [None] or calls["error.type"].isna().sum() == 1
    assert set(taken["measure"]) == {"call", "turn", "first error", "recovery"}


def test_an_empty_column_has_its_type_too(campaign):
    """A campaign without a run and one of a skipped run write the types of a campaign whose columns are filled."""
    read = pytest.importorskip("pyarrow.parquet").read_schema

    def types() -> dict[str, dict[str, str]]:
        schemas = {path.stem: read(path) for path in _parquet_files(campaign.folder)}
        return {name: {field.name: str(field.type) for field in schema} for name, schema in schemas.items()}

    empty = types()
    campaign.run(judgement("skipped", "a", skipped="no tool"), lambda telling: telling.start("skipped", "a"))
    skipped = types()
    campaign.run(storm_judgement(), storm(5, "buggy"))
    assert empty == skipped == types()
    assert not [name for columns in empty.values() for name, kind in columns.items() if kind == "null"]
    assert empty["runs"]["recovery_s"] == "double" and empty["runs"]["paid_calls"] == "int64"
    assert empty["calls"]["gen_ai.response.finish_reasons"].startswith("list<")


def test_every_column_of_the_calls_is_documented(campaign, request):
    """docs/reports.md names each of them, and no other of ours."""
    campaign.run(judgement("s", "a"), _took(1.0))
    run: StoredRun = load(campaign.folder).runs[0]
    said = (request.config.rootpath / "docs/reports.md").read_text(encoding="utf-8")
    section = said.partition("## Parquet")[2].partition("\n## ")[0]
    named = set(re.findall(r"`((?:gen_ai|wedgehog|http|error)\.[a-z_.]+)`", section))
    assert named == set(call_rows(run)[0])


def test_without_pyarrow_one_line_says_what_to_install(campaign, monkeypatch):
    """No traceback."""
    monkeypatch.setattr(parquet, "INSTALLED", False)
    with pytest.raises(ValueError, match=r"pip install 'wedgehog\[parquet\]'"):
        write_folder(campaign.folder, parquet=True)


def test_a_drawing_of_equal_times_has_a_scale_with_a_number_at_both_ends():
    """All repeats of a simulated run take the same time; its scale is a decade, and nothing is warned of."""
    pytest.importorskip("matplotlib")
    (figure,) = distributions.distributions({TimesKey("f", "s", "a", "turn"): [9.999999999999999e-05] * 5})
    assert ">0.1 ms<" in figure and ">1 ms<" in figure
