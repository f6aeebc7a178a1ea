"""Facts beside a history: the same fold with and without them, and nothing from facts that do not fit."""

import shutil

import pandas as pd
import pytest
from typer.testing import CliRunner

from wedgehog.harness.commands.cli import app
from wedgehog.harness.record.store import read_run
from wedgehog.reports import campaign_folder, facts, write_folder
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.facts import FACTS, facts_of, keep_facts, kept_facts

from .conftest import dangling, judgement, plain_run, storm, storm_judgement


@pytest.fixture
def folded(campaign):
    """A campaign of four runs, one of them skipped, with facts beside each history."""
    campaign.run(storm_judgement(), storm(5, "buggy"))
    campaign.run(judgement("plain", "a"), plain_run)
    campaign.run(judgement("dangling", "a"), dangling)
    campaign.run(judgement("skipped", "a", skipped="no tool"), plain_run)
    for path in campaign.folder.rglob("history.jsonl"):
        keep_facts(path.parent)
    return campaign.folder


def _reports(folder):
    pytest.importorskip("pyarrow")
    write_folder(folder, parquet=True)
    names = ("summary.csv", "report.html", "summary.md", "junit.xml")
    tables = ("runs", "calls", "latency")
    return [(folder / name).read_text() for name in names], [pd.read_parquet(folder / f"{it}.parquet") for it in tables]


def test_a_fold_from_facts_is_the_fold_from_histories_field_by_field(folded, monkeypatch):
    """The numbers of each run are equal, also in their types; so is every report."""
    read = []
    monkeypatch.setattr(campaign_folder, "facts_of", lambda history: read.append(history) or facts_of(history))
    by_facts, reports = load(folded), _reports(folded)
    assert not read
    for path in folded.rglob(FACTS):
        path.unlink()
    by_histories, again = load(folded), _reports(folded)
    assert len(read) == 8 and repr(by_facts) == repr(by_histories) and by_facts == by_histories
    assert reports[0] == again[0]
    for one, other in zip(reports[1], again[1], strict=True):
        pd.testing.assert_frame_equal(one, other)


def _history_of(folder):
    return folder / "history.jsonl"


def _edit_history(folder):
    path = _history_of(folder)
    said = path.read_bytes()
    path.write_bytes(said.replace(b'"input_tokens": 8000', b'"input_tokens": 9000'))
    assert path.stat().st_size == len(said) and path.read_bytes() != said


def _one_digit(folder):
    path = folder / FACTS
    said = path.read_text()
    path.write_text(said.replace('"tokens_billed": 4', '"tokens_billed": 5'))
    assert path.read_text() != said


def _of_another_run(folder):
    shutil.copy(next(it for it in folder.parents[1].rglob(FACTS) if it.parent != folder), folder / FACTS)


DAMAGE = {
    "the history was edited": _edit_history,
    "the facts were edited": _one_digit,
    "of another run": _of_another_run,
    "empty": lambda folder: (folder / FACTS).write_bytes(b""),
    "half written": lambda folder: (folder / FACTS).write_bytes((folder / FACTS).read_bytes()[:-40]),
    "other bytes": lambda folder: (folder / FACTS).write_bytes(b"\xff\xfe\n[]"),
    "no file": lambda folder: (folder / FACTS).unlink(),
    "a folder": lambda folder: ((folder / FACTS).unlink(), (folder / FACTS).mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_facts_that_do_not_fit_are_ignored(folded, damage):
    """The numbers are those of the history as it is now, and the verdict is that of verdicts.json."""
    folder = next(path.parent for path in folded.rglob(FACTS) if "stall" in str(path))
    damage(folder)
    assert kept_facts(folder) is None
    run = next(run for run in load(folded).runs if run.folder == folder)
    assert load(folded).numbers[folder] == facts_of(read_run(folder).history).numbers
    assert run.judgement.verdict == "fail"


def test_facts_with_half_a_character_are_read(folded):
    """A model's name may hold half a surrogate pair, which the fast parser refuses."""
    folder = next(path.parent for path in folded.rglob(FACTS) if "stall" in str(path))
    said = _history_of(folder).read_bytes()
    _history_of(folder).write_bytes(said.replace(b'"model": "', rb'"model": "\udc80'))
    keep_facts(folder)
    assert rb"\udc80" in (folder / FACTS).read_bytes()
    assert kept_facts(folder) == facts_of(read_run(folder).history)


def test_facts_of_another_version_are_ignored(folded, monkeypatch):
    """The seal holds our program text and the version of the price table."""
    folder = next(path.parent for path in folded.rglob(FACTS))
    assert kept_facts(folder) is not None
    monkeypatch.setattr(facts, "_program", lambda: b"another")
    assert kept_facts(folder) is None


def test_a_check_writes_facts_that_do_not_fit_again(folded):
    """Those of another version would make each later report as slow as without any."""
    folder = next(path.parent for path in folded.rglob(FACTS))
    (folder / FACTS).write_text("of another version\n{}\n")
    CliRunner().invoke(app, ["check", str(folded)])
    assert kept_facts(folder) == facts_of(read_run(folder).history)


def test_an_unreadable_history_has_no_facts(folded):
    """The report says what is wrong with it, as without facts."""
    folder = next(path.parent for path in folded.rglob(FACTS))
    (folder / FACTS).unlink()
    _history_of(folder).write_bytes(b"no json\n{}\n")
    keep_facts(folder)
    assert not (folder / FACTS).exists()
    assert [it.folder for it in load(folded).unfinished] == [folder]
