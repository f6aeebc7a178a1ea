"""`wedgehog explain`: a new reader of a report asks what its names mean."""

import pytest
from typer.testing import CliRunner

from wedgehog.harness.commands.cli import app
from wedgehog.harness.commands.known_commands import MEANT
from wedgehog.harness.faults.base import registered
from wedgehog.harness.invariants import known


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")


def explained(*names: str) -> str:
    done = CliRunner().invoke(app, ["explain", *names])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_an_invariant_is_explained_with_its_fix_and_its_bounds():
    said = explained("paid_call_bound")
    assert "Fix: Give each step one budget" in " ".join(said.split())
    assert "per_step 12" in said and "calls_per_turn (no stock bound)" in " ".join(said.split())
    assert all(line.startswith("    ") and len(line) <= 60 for line in said.splitlines()[1:])


def test_a_fault_and_a_scenario_are_explained():
    said = explained("stall", "abort-in-mid-tool").splitlines()
    assert {"stall", "abort-in-mid-tool"} <= set(said)
    assert "seen: https://github.com/" in "".join(said) and "Play it: wedgehog run" in "".join(said)


def test_every_invariant_and_every_fault_has_words():
    assert explained(*known(), *registered()).count("\n") > 2 * len([*known(), *registered()])


def test_a_name_that_nothing_has_is_told_with_the_nearest_one():
    done = CliRunner().invoke(app, ["explain", "tool_call_pairin"])
    assert done.exit_code == 2 and "did you mean 'tool_call_pairing'?" in done.stderr


def test_a_word_that_is_no_command_names_the_one_that_is_meant():
    """No word of the list is a command, or it would hide it."""
    for word, meant in MEANT.items():
        done = CliRunner().invoke(app, [word])
        assert done.exit_code == 2 and meant.split(",")[0] in " ".join(done.output.split()), word
