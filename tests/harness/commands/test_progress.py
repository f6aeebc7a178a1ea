"""Progress: a line per finished run, and a live one where there is a terminal."""

import io
from typing import Any

import pytest
from rich.console import Console

from wedgehog.harness.commands.console import open_progress
from wedgehog.harness.record.store import Judgement


def judgement(**more: Any) -> Judgement:
    return Judgement("a", "b", "embedded", more.pop("verdict", "pass"), **more)


@pytest.mark.parametrize(
    ("judged", "line"),
    [
        (judgement(), "[1/2] a x b: pass"),
        (judgement(as_expected=True, verdict="fail"), "[1/2] a x b: fail as expected"),
        (judgement(as_expected=False), "[1/2] a x b: pass UNEXPECTED"),
        (judgement(as_expected=False, verdict="fail", in_doubt=("x",)), "[1/2] a x b: fail in doubt"),
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
