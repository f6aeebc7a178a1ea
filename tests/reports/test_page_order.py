"""The order and the size of the page: what is wrong first, the worst runs in full, all others in tables."""

import re

import pytest

from wedgehog.harness.record.verdict import inconclusive, passed
from wedgehog.reports import write_campaign, write_folder
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.page import all_runs, matrix

from .conftest import Campaign, judgement, plain_run, storm, storm_judgement


def _page(campaign: Campaign) -> str:
    write_folder(campaign.folder)
    return (campaign.folder / "report.html").read_text(encoding="utf-8")


def _lines(page: str) -> list[str]:
    found = re.search(r'<ol class="wrong">(.*?)</ol>', page, re.DOTALL)
    return [re.sub("<[^>]+>", "", line) for line in re.findall("<li>(.*?)</li>", found[1], re.DOTALL)] if found else []


def _failed(name: str, *violated: str, agent: str = "a", repeat: int = 1):
    says = f"{name} went wrong"
    return judgement(name, agent, "fail", "pass", violated=violated, says=says, repeat=repeat)


def test_what_is_wrong_stands_above_everything_in_three_lines(campaign):
    """The largest group first, with a link to a run; what does not fit is counted."""
    for name, violated in (("w", "x1"), ("x", "x2"), ("y", "x3"), ("z", "x3"), ("v", "x4")):
        campaign.run(_failed(name, violated), plain_run)
    page = _page(campaign)
    lines = _lines(page)
    assert len(lines) == 3
    assert lines[0].startswith("x3 in 2 runs of a. y, a: y went wrong")
    assert lines[2] == "2 more kinds of result that were not expected: see below"
    before = page[page.index("<body>") : page.index('<ol class="wrong">')]
    assert "<table" not in before and "<section" not in before and "<dl" not in before


def test_the_first_lines_say_the_name_of_an_invariant_once(campaign):
    """What is violated begins the line; the sentence of the run begins with it too."""
    failed = judgement("y", "a", "fail", "pass", violated=("x3",), says="x3: turn 1 went wrong")
    campaign.run(failed, plain_run)
    assert _lines(_page(campaign)) == ["x3 in 1 run of a. y, a: turn 1 went wrong"]


def test_if_nothing_is_wrong_the_expected_failures_stand_there(campaign):
    """An expected failure is named as one."""
    campaign.run(storm_judgement(), storm(3, "buggy"))
    assert _lines(_page(campaign)) == [
        "1 run failed as expected, as known, or only to be shown: paid_call_bound 1, retry_discipline 1."
    ]


def test_the_first_lines_need_no_knowledge_of_the_verdicts_names(campaign):
    """A result that violates nothing is said in words."""
    campaign.run(judgement("u", "a", "inconclusive", says="the fault never fired"), plain_run)
    campaign.run(judgement("p", "a", "pass", "fail: x", verdicts=(passed().named("y"),)), plain_run)
    lines = sorted(_lines(_page(campaign)))
    assert lines == [
        "not decided (inconclusive) in 1 run of a. u, a: the fault never fired",
        "passed, where a failure is expected: x in 1 run of a. p, a: fail: x expected",
    ]


def test_the_first_lines_name_what_is_not_as_expected(campaign):
    """Not the expected violations, but what is undecided, what else is violated, and what is missing."""
    wanted = "fail: late;loop"
    both, unclear = ("late", "loop"), (inconclusive("busy").named("spend"), passed().named("paid"))
    campaign.run(judgement("u", "a", "inconclusive", wanted, violated=both, says="u", verdicts=unclear), plain_run)
    campaign.run(judgement("m", "b", "fail", wanted, violated=(*both, "more"), says="m"), plain_run)
    campaign.run(judgement("l", "c", "fail", wanted, violated=("late",), says="l"), plain_run)
    assert sorted(_lines(_page(campaign))) == [
        "more in 1 run of b. m, b: m",
        "not decided (inconclusive): spend in 1 run of a. u, a: u",
        "passed, where a failure is expected: loop in 1 run of c. l, c: l",
    ]


def test_the_worst_runs_come_first(campaign):
    """Failed, then inconclusive, then expected failures, then passes; not in the order of names."""
    campaign.run(judgement("a-pass", "a"), plain_run)
    campaign.run(storm_judgement(), storm(3, "buggy"))
    campaign.run(judgement("c-unclear", "a", "inconclusive", says="?"), plain_run)
    campaign.run(_failed("z-fail", "x"), plain_run)
    page = _page(campaign)
    names = re.findall(r"</span><h3>(\S+), \S+</h3>", page[page.index('id="runs"') :])
    assert names == ["z-fail", "c-unclear", "stall-after-headers", "a-pass"]


def test_what_has_no_room_is_a_row_and_every_link_still_leads_somewhere(campaign, monkeypatch):
    """With room for one section, the worst run has it; the rows end too, and then the page says how many more ran."""
    for number in range(6):
        campaign.run(judgement(f"s{number}", "a"), plain_run)
    campaign.run(_failed("z", "x"), plain_run)
    whole = _page(campaign)
    section = re.findall(r'<details class="run".*?id="run-\d+"', whole, re.DOTALL)
    assert len(section) == 7
    monkeypatch.setattr(all_runs, "SECTIONS_BYTES", 16_000)
    monkeypatch.setattr(all_runs, "ROWS_BYTES", 600)
    monkeypatch.setattr(matrix, "ROWS_SHOWN", 2)
    page = _page(campaign)
    shown = re.findall(r"</span><h3>(\S+), \S+</h3>", page[page.index('id="runs"') :])
    assert shown[0] == "z" and len(shown) < 4
    assert (
        re.search(r"more runs are only in .* summary.csv: \d passed", page)
        and "5 more in summary.csv; none is worse." in page
    )
    ids = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= ids


def test_a_repeat_or_a_variant_takes_no_room_of_another_scenario(campaign, monkeypatch):
    """With room for two sections, each scenario has one, and the table has the repeats and single fixes."""
    for repeat in (1, 2, 3):
        campaign.run(judgement("p", "buggy", "fail", "fail: x", violated=("x",), repeat=repeat), plain_run)
        campaign.run(judgement("p", "only-one", "fail", "fail: x", violated=("x",), repeat=repeat), plain_run)
    campaign.run(judgement("q", "fixed"), plain_run)
    whole = _page(campaign)
    sizes = [len(it) for it in re.findall(r'<details class="run".*?(?=<details class="run"|<footer)', whole, re.DOTALL)]
    assert len(sizes) == 7
    monkeypatch.setattr(all_runs, "SECTIONS_BYTES", int(2.5 * max(sizes)))
    page = _page(campaign)
    shown = re.findall(r"</span><h3>(\S+, \S+)</h3>", page[page.index('id="runs"') :])
    assert shown == ["p, buggy", "q, fixed"]
    assert "<h2>5 other runs</h2>" in page


def test_a_large_campaign_shows_one_of_alike_repeats_and_counts_its_passes(campaign, monkeypatch):
    """Each other failure is a row; a pass is in the matrix."""
    for repeat in (1, 2, 3):
        campaign.run(_failed("bad", "x", repeat=repeat), plain_run)
        campaign.run(judgement("good", "a", repeat=repeat), plain_run)
    monkeypatch.setattr(all_runs, "ALL_SECTIONS_UP_TO", 5)
    page = _page(campaign)
    assert re.findall(r"</span><h3>(\S+), \S+</h3>", page[page.index('id="runs"') :]) == ["bad", "good"]
    assert "<h2>2 other runs</h2>" in page and page.count("<code>bad/a.") + page.count(">bad/a.") == 2
    assert "2 more runs are only in the matrices, the numbers and summary.csv: 2 passed." in page
    monkeypatch.setattr(all_runs, "ALL_SECTIONS_UP_TO", 6)
    assert "other runs" not in _page(campaign)


def test_a_report_of_many_runs_keeps_no_history(campaign):
    """Each is read, folded and forgotten; a section reads its own again."""
    for repeat in (1, 2, 3):
        campaign.run(judgement("good", "a", repeat=repeat), plain_run)
    read = load(campaign.folder)
    write_campaign(read)
    assert not any("history" in vars(run) for run in read.runs)
    assert len(read.numbers) == 3 and all(it.recorded for it in read.numbers.values())


@pytest.mark.parametrize("number", [30])
def test_the_list_of_runs_that_need_attention_ends(campaign, number):
    """It shows the first ones and counts the others."""
    for name in range(1, number + 1):
        campaign.run(_failed(f"s{name}", "x"), plain_run)
    assert "5 more, run by run below" in _page(campaign)


def test_repeats_that_ended_alike_are_one_card_of_that_list(campaign):
    """Another result of the same scenario and agent is another card."""
    for repeat in (1, 2, 3):
        campaign.run(_failed("s", "x", repeat=repeat), plain_run)
    campaign.run(_failed("s", "y", repeat=4), plain_run)
    page = _page(campaign)
    cards = page[page.index('class="plain attention"') : page.index("<h2>Verdicts</h2>")]
    assert re.findall(r"<strong>(.*?)</strong> \((.*?)\)", cards) == [
        ("s, a", "3 of 4 repeats"),
        ("s, a", "1 of 4 repeats"),
    ]


def test_both_times_of_a_turn_name_where_they_begin(campaign):
    """The timeline counts from the message, and the table of turns from the first request, 0.3 s later."""
    campaign.run(judgement("s", "a"), lambda telling: (telling.start("s", "a"), telling.answered(1)))
    page = _page(campaign)
    assert "answered 0.80 s after the message" in page
    assert re.search(r">took</th>.*?>0\.50 s</td>", page, re.DOTALL)
