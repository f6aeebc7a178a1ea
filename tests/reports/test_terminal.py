"""The report in a terminal."""

import io
import re

import pytest
from rich.console import Console

from wedgehog.harness.record.verdict import Verdict
from wedgehog.reports import write_folder
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.page.attention import headline
from wedgehog.reports.terminal import print_campaign
from wedgehog.reports.words import NONE

from .conftest import dangling, judgement, plain_run, storm, storm_judgement


def _printed(folder, width=120, encoding="utf-8", verbose=False, **more) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="strict", newline="\n")
    print_campaign(load(folder), Console(file=file, width=width, **more), verbose=verbose)
    file.flush()
    return raw.getvalue().decode(encoding)


def test_a_sentence_that_wraps_ends_without_blanks(sample):
    """Its later lines begin where the first one does."""
    said = _printed(sample, width=60)
    assert "  buggy  fail (expected): stall-after-headers; skipped:\n  pings-only\n" in said
    assert [line for line in said.split("\n") if line != line.rstrip()] == []


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_every_number_fits_the_terminal(sample, width):
    """At any width each run shows verdict, violated invariants, calls, tokens, money and times, in lines that fit."""
    said = _printed(sample, width)
    for words in (
        "✓ fail (expected)",
        "✗ fail (pass expected)",
        "paid_call_bound",
        "1.29M",
        "$3.94",
        "12.6 s",
        "0.50 s",
    ):
        assert words in said
    whole = ("replay:", "report:")
    assert [line for line in said.split("\n") if len(line) > width and not line.strip().startswith(whole)] == []


def test_without_colours_the_words_still_tell_red_from_expected_red(sample, monkeypatch):
    """With NO_COLOR there are no colour codes, and all words are there."""
    monkeypatch.setenv("NO_COLOR", "1")
    said = _printed(sample, force_terminal=True)
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", said)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said)
    assert "✓ fail (expected)" in plain
    assert "✗ fail (pass expected)" in plain


def test_no_word_of_an_agent_is_a_command_of_github(campaign):
    """Its runner obeys `##[command]` anywhere in a line, and `stop-commands` would take away our annotations."""
    said = "turn 1: it said ##[stop-commands]x"
    campaign.run(judgement("x", "a", "fail", "pass", violated=("error_surfaced",), says=said), plain_run)
    printed = _printed(campaign.folder, width=200)
    assert "it said ## [stop-commands]x" in printed and "##[" not in printed


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_that_writes_no_utf8_gets_words_for_signs(sample, encoding):
    """Characters outside the encoding are replaced."""
    said = _printed(sample, encoding=encoding)
    assert "ok fail (expected)" in said
    assert "X fail (pass expected)" in said


def test_an_unexpected_run_says_why_and_how_to_replay_it(sample):
    """Its sentence and its command; an expected failure has only the sentence."""
    said = _printed(sample, 200)
    wrong = said[said.index("Not as expected") :]
    assert "timeout-in-mid-tool, fixed: the next request held tool call 1.1.2 without a result" in wrong
    assert "replay: wedgehog replay runs/latest/timeout-in-mid-tool/fixed\n" in wrong
    assert "replay runs/latest/stall-after-headers/buggy" not in said
    assert "stall-after-headers, buggy: step 1 of turn 1 was paid 160 times, 13 allowed" in said


def test_each_violated_invariant_says_once_how_to_fix_it(campaign):
    """Not where the failure was expected: a specimen stays broken."""
    for agent in ("one", "two"):
        failed = Verdict("fail", "too many", name="paid_call_bound", fix="Pay less.")
        campaign.run(judgement("story", agent, "fail", violated=("paid_call_bound",), verdicts=(failed,)), plain_run)
    failed = Verdict("fail", "too late", name="turn_deadline", fix="Hurry.")
    expected = judgement(
        "story", "three", "fail", "fail: turn_deadline", violated=("turn_deadline",), verdicts=(failed,)
    )
    campaign.run(expected, plain_run)
    said = _printed(campaign.folder)
    assert "Hurry." not in said
    assert said.count("How to fix") == said.count("paid_call_bound (2 runs): Pay less.") == 1


def test_what_most_runs_violate_is_to_be_fixed_first(campaign):
    """With the number of these runs: they may have one cause."""
    for name, scenarios in (("no_half_calls", "a"), ("turn_deadline", "bc")):
        verdict = Verdict("fail", "wrong", name=name, fix=f"Mend {name}.")
        for scenario in scenarios:
            campaign.run(judgement(scenario, "x", "fail", violated=(name,), verdicts=(verdict,)), plain_run)
    _, _, fixes = _printed(campaign.folder).partition("How to fix\n")
    assert fixes.startswith(
        "  turn_deadline (2 runs): Mend turn_deadline.\n  no_half_calls: Mend no_half_calls.\n"
        "  More of each: wedgehog explain turn_deadline\n"
    )


def test_of_many_results_one_of_each_kind_says_why(campaign):
    """Twelve runs may have one cause; the others are named below it, and `-v` prints each."""
    for scenario in "abcdefgh":
        campaign.run(judgement(scenario, "x", "fail", violated=("turn_deadline",), says=f"{scenario} hangs"), plain_run)
    assert _printed(campaign.folder).count(" hangs\n") == 8
    campaign.run(judgement("i", "y", "fail", violated=("turn_deadline",), says="i hangs"), plain_run)
    campaign.run(judgement("j", "x", "fail", violated=("error_surfaced",), says="j is silent"), plain_run)
    _, _, wrong = _printed(campaign.folder).partition("Not passed\n")
    assert "a, x: a hangs\n" in wrong and "i, y: i hangs\n" in wrong and "j, x: j is silent\n" in wrong
    assert "    7 more scenarios with this result (-v says why): b, c, d, e, f, g, h\n" in wrong
    assert wrong.count(" hangs\n") == 2
    assert _printed(campaign.folder, verbose=True).count(" hangs\n") == 9


@pytest.mark.parametrize(("skipped", "in_the_table"), [(20, True), (21, False)])
def test_many_skipped_runs_stand_only_under_their_reasons(campaign, skipped, in_the_table):
    """A campaign of the whole catalogue skips a hundred and more; between them the red ones are hard to see."""
    campaign.run(judgement("played", "x"), plain_run)
    for number in range(skipped):
        campaign.run(judgement(f"left{number}", "x", "nothing", skipped="it has no tool"), plain_run)
    said = _printed(campaign.folder)
    assert "played" in said and (f"{NONE} skipped" in said) is in_the_table
    assert "x: it has no tool (left0, " in said and f"and {skipped - 4} more)" in said


def test_where_nothing_was_expected_a_red_run_is_one_that_has_not_passed(campaign):
    """A user's own agent has no `expect`."""
    campaign.run(judgement("stalls", "mine", "fail"), plain_run)
    said = _printed(campaign.folder)
    assert "Not passed\n" in said and "Not as expected" not in said


def test_a_replay_command_is_never_broken(campaign):
    """The command is one line to copy, also on a narrow terminal."""
    campaign.run(judgement("a-scenario-with-a-rather-long-name-of-its-own", "fixed", "fail", "pass"), plain_run)
    said = _printed(campaign.folder, 40)
    assert "replay: wedgehog replay runs/latest/a-scenario-with-a-rather-long-name-of-its-own/fixed\n" in said


def test_the_closing_line_counts_and_names_the_report(sample):
    """Expected failures count as passed; cells of the fix matrix do not count; the page is named if it exists."""
    write_folder(sample)
    said = _printed(sample)
    assert "4 passed, 1 failed, 1 skipped, 1 inconclusive, 2 only shown, 1 unfinished" in said
    assert said.strip().endswith(f"report: {sample / 'report.html'}")


def test_each_run_that_was_never_begun_is_counted(campaign):
    """They stand in one line, which is not one run."""
    campaign.run(judgement("a", "fixed"), plain_run)
    (campaign.folder / "plan.json").write_text('{"cells": [{"repeats": [1, 2, 3]}]}')
    said = _printed(campaign.folder)
    assert "2 of 3 runs were never begun" in said
    assert "1 passed, 0 failed, 0 skipped, 2 unfinished" in said
    assert "2 of 3 runs did not end as expected" in headline(load(campaign.folder))


def test_families_head_their_scenarios(sample):
    """Each incident has its own table."""
    said = _printed(sample)
    assert said.index("\nretry-storm\n") < said.index("stall-after-headers") < said.index("\ndangling-call\n")


def test_the_fix_matrix_shows_which_fix_is_enough(sample):
    """A single fix and a left-out fix have a line each."""
    said = _printed(sample)
    matrix = said[said.index("fix \N{MULTIPLICATION SIGN} scenario") :]
    assert "only-wrapper  fail: stall-after-headers" in matrix
    assert "without-total-budget  pass: stall-after-headers" in matrix


def test_what_an_agent_said_cannot_steer_the_terminal(campaign):
    """Escape codes, reversed text and markup are shown as plain text."""
    says = "it said [bold red]hi[/] \x1b[2J\x1b]0;owned\x07 and \u202egnp.exe, on\ntwo lines"
    campaign.run(judgement("plain", "fixed", "fail", says=says), plain_run)
    said = _printed(campaign.folder, 200)
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "it said [bold red]hi[/] \\x1b[2J\\x1b]0;owned\\x07 and \\u202egnp.exe, on two lines" in said


def test_a_skipped_run_says_why_and_each_reason_once(campaign):
    """Runs that an agent skips for the same reason share a line; after four names the rest is counted."""
    for n in range(6):
        campaign.run(judgement(f"s{n}", "mine", "nothing", skipped="the agent does not stream"))
    campaign.run(judgement("s6", "mine", "nothing", skipped="the agent advertises no tool shell"))
    said = _printed(campaign.folder, 200)
    streams = "mine: the agent does not stream (s0, s1, s2, s3 and 2 more)\n"
    assert said.count("the agent does not stream") == 1
    assert f"Skipped\n  \N{EN DASH} {streams}" in said
    assert "  \N{EN DASH} mine: the agent advertises no tool shell (s6)\n" in said


def test_an_agent_that_failed_its_control_is_told_once(campaign):
    """One line for all scenarios that were not played; errors of played runs have a line each."""
    for n in range(3):
        campaign.run(judgement(f"s{n}", "mine", "error", says="its control run failed: no such program"))
        campaign.run(judgement(f"s{n}", "other", "error", says="the network failed"), plain_run)
    said = _printed(campaign.folder, 200)
    assert said.count("! error") == 3, "the table has only what was played"
    assert said.count("no such program") == 1 and "! 3 scenarios, mine: its control run failed" in said
    assert said.count("the network failed") == 3 and said.count("replay: ") == 4


def test_nothing_skipped_says_nothing_of_it(campaign):
    """There is no empty heading."""
    campaign.run(judgement("plain", "fixed"), plain_run)
    assert "Skipped" not in _printed(campaign.folder)


def test_a_minute_that_costs_much_is_told_for_every_agent_of_its_scenario(sample):
    """Only a scenario with a high cost per minute has the line; cells of the matrix are left out."""
    said = _printed(sample, 200)
    (line,) = re.findall("highest simulated cost per minute .*", said)
    storm_, fix = "buggy $18.72 (160 calls in 12.6 s)", "fixed $0.738 (5 calls in 0.37 s)"
    assert line == f"highest simulated cost per minute in stall-after-headers: {storm_}, {fix}"


def test_a_rate_of_a_faster_run_says_whose_clock_it_is(campaign):
    """A scenario that is played 1,200 times faster also costs more per minute."""

    campaign.run(storm_judgement(), storm(160, "buggy", time_scale=1200.0))
    assert "(in real time; durations were divided by 1200)" in _printed(campaign.folder, 200)


def test_verbose_adds_the_sentence_of_each_invariant(campaign):
    """Only `verbose` shows remarks and passed verdicts."""
    campaign.run(storm_judgement(), storm(3, "buggy"))
    assert "session_recovers" not in _printed(campaign.folder)
    said = _printed(campaign.folder, verbose=True)
    assert "session_recovers pass: the next message was answered" in said
    assert "The idle timer (50 ms) fired 160 times." in said


def test_verbose_says_what_speaks_for_a_pass(campaign):
    """A green run is explained too, each sentence once; an invariant that had nothing to judge is left out."""
    sentences = (Verdict("pass", "all 2 turns", name="turn_answered"), Verdict("nothing", name="bytes_exact"))
    remarks = ("all 2 turns",)
    campaign.run(judgement("plain", "mine", "pass", "pass", verdicts=sentences, remarks=remarks), plain_run)
    assert "Passed" not in _printed(campaign.folder)
    _, _, passed = _printed(campaign.folder, verbose=True).partition("\nPassed\n")
    assert passed.startswith("  ✓ plain, mine\n    turn_answered pass: all 2 turns\n\n1 passed")


def test_verbose_says_why_an_invariant_without_a_remark_passed(campaign):
    """A reason is no remark: without `verbose` nothing shows it."""
    sentences = (Verdict("pass", name="turn_answered", because="turn 1 was answered"),)
    campaign.run(judgement("plain", "mine", "pass", "pass", verdicts=sentences), plain_run)
    assert "turn 1 was answered" not in _printed(campaign.folder)
    assert "turn_answered pass: turn 1 was answered" in _printed(campaign.folder, verbose=True)


def test_verbose_gives_each_agent_its_own_reasons(campaign):
    """Two agents pass one scenario for different reasons."""
    for agent, because in (("one", "1 retry"), ("two", "4 retries")):
        sentences = (Verdict("pass", name="retry_discipline", because=because),)
        campaign.run(judgement("plain", agent, "pass", "pass", verdicts=sentences), plain_run)
    said = _printed(campaign.folder, verbose=True)
    assert "plain, one\n    retry_discipline pass: 1 retry" in said
    assert "plain, two\n    retry_discipline pass: 4 retries" in said


def test_verbose_gives_each_agent_its_own_reasons_of_an_expected_failure(campaign):
    """One sentence for both, and without `verbose` one line."""
    for agent, because in (("one", "1 retry"), ("two", "4 retries")):
        sentences = (Verdict("pass", name="retry_discipline", because=because),)
        told = judgement("plain", agent, "fail", "fail: a", violated=("a",), says="late", verdicts=sentences)
        campaign.run(told, plain_run)
    assert "plain, one, two: late" in _printed(campaign.folder)
    said = _printed(campaign.folder, verbose=True)
    assert "plain, one: late\n    retry_discipline pass: 1 retry" in said
    assert "plain, two: late\n    retry_discipline pass: 4 retries" in said


def test_a_known_failure_says_its_reason(campaign):
    """It does not fail the campaign, but it is shown."""
    campaign.run(judgement("timeout-in-mid-tool", "mine", "fail", known="see issue 7", says="no result"), dangling)
    said = _printed(campaign.folder)
    assert "~ timeout-in-mid-tool, mine: no result (known: see issue 7)" in said
    assert "0 passed, 0 failed, 0 skipped, 1 known failure" in said


def test_an_empty_campaign_says_that_nothing_ran(campaign):
    """No table, no traceback."""
    said = _printed(campaign.folder)
    assert "Nothing ran." in said
    assert "0 passed, 0 failed, 0 skipped" in said
