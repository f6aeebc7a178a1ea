"""Progress: a line per finished run, and a live one where there is a terminal."""

import io
from typing import Any

import pytest
from rich.console import Console
from rich.status import Status

from wedgehog.harness.commands.console import LineProgress, Stdout, open_progress
from wedgehog.harness.record.judgement import Judgement


def judgement(**more: Any) -> Judgement:
    return Judgement("a", "b", "embedded", more.pop("verdict", "pass"), **more)


@pytest.mark.parametrize(
    ("judged", "line"),
    [
        (judgement(), "[1/2] a x b: pass"),
        (judgement(as_expected=True, verdict="fail"), "[1/2] a x b: fail as expected"),
        (judgement(verdict="fail", violated=("turn_deadline", "x")), "[1/2] a x b: fail: turn_deadline, x"),
        (judgement(as_expected=True, verdict="fail", violated=("x",)), "[1/2] a x b: fail as expected"),
        (judgement(as_expected=False), "[1/2] a x b: pass UNEXPECTED"),
        (judgement(as_expected=False, verdict="inconclusive"), "[1/2] a x b: inconclusive UNEXPECTED"),
        (judgement(verdict="nothing", skipped="no tool"), "[1/2] a x b: skipped"),
    ],
)
def test_each_finished_run_is_a_line(judged: Judgement, line: str):
    """With how many there are, its verdict, and whether that was expected."""
    out = io.StringIO()
    with open_progress(2, Console(file=out, width=200)) as progress:
        progress.begins("a x b")
        progress.ended("a x b", judged)
    assert out.getvalue().splitlines() == [line]


def test_a_control_is_no_run(manual_clock: Any):
    """It is not counted and prints nothing; nor does a run that was broken off."""
    out = io.StringIO()
    with open_progress(1, Console(file=out, width=200)) as progress:
        progress.begins("control x b")
        progress.ended("control x b", None)
        progress.say("network: embedded [relay]")
    assert out.getvalue() == "wedgehog: network: embedded [relay]\n"


def test_a_terminal_gets_a_live_line_as_well():
    """And does not break on names longer than it is wide."""
    out = io.StringIO()
    with open_progress(3, Console(file=out, width=40, force_terminal=True)) as progress:
        for number in range(5):
            progress.begins(f"{'long' * 10}-{number}")
        progress.ended(f"{'long' * 10}-0", judgement())
    assert "pass" in out.getvalue()


@pytest.mark.parametrize(
    ("played", "skipped", "taken_s", "said"),
    [
        (2, 0, 60, "2 of 80 done; "),
        (10, 0, 60, "10 of 80 done, about 7 min left; "),
        (10, 30, 60, "40 of 80 done, about 4 min left; "),
        (70, 0, 60, "70 of 80 done, less than two minutes left; "),
        (80, 0, 60, "80 of 80 done; "),
    ],
)
def test_the_live_line_says_how_long_the_rest_takes(played: int, skipped: int, taken_s: float, said: str):
    """As soon as some runs were played; skipped ones took no time."""
    clock = iter([0.0] + [taken_s] * 200)
    status = Status("")
    progress = LineProgress(80, Console(file=io.StringIO(), width=200), status, clock=lambda: next(clock))
    for judged in [judgement(verdict="nothing", skipped="no tool")] * skipped + [judgement()] * played:
        progress.begins("a x b")
        progress.ended("a x b", judged)
    assert status.status == said


def test_an_agents_colons_stay_colons():
    """`:x:` in an error is no picture."""
    console = Stdout()
    console.file = io.StringIO()
    console.print("mine: error :x: at line 3")
    assert console.file.getvalue() == "mine: error :x: at line 3\n"


def test_no_color_means_no_escape_byte_on_a_terminal_too(monkeypatch: pytest.MonkeyPatch):
    """Neither bold nor dim, and no live line."""
    said: dict[str, str] = {}
    for value in ("", "1"):
        monkeypatch.setenv("NO_COLOR", value)
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        console = Stdout()
        console.file = io.StringIO()
        console.print("family", style="bold")
        with open_progress(1, console):
            pass
        said[value] = console.file.getvalue()
    assert "\x1b[" in said[""]
    assert "\x1b" not in said["1"]
