"""The run folder: names that sort, files that are whole or were never there, a history that a kill may tear."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from freezegun import freeze_time

from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.record.events.run import Note
from wedgehog.harness.record.history import History, read
from wedgehog.harness.record.judgement import Judgement, write_judgement
from wedgehog.harness.record.store import CampaignStore, RunStore, read_run, run_folders, safe_name
from wedgehog.harness.record.verdict import Verdict

JUDGED = Judgement("a-story", "buggy", "embedded", "fail", ("x",), verdicts=(Verdict("fail", "ä", (1, 2), "x"),))


def finished(folder: Path, notes: int = 3, judgement: Judgement = JUDGED) -> Path:
    """A run folder with that many events."""
    store = RunStore(folder, folder.parent / "bodies")
    history = History(WallClock(), sink=store.write)
    for number in range(notes):
        history.add(Note(what=f"n{number}"))
    store.close(judgement)
    return folder


# ---- names


@pytest.mark.parametrize(
    ("moments", "why"),
    [
        (["2026-12-31T23:59:59+00:00", "2027-01-01T00:00:00+00:00"], "midnight and New Year"),
        (["2026-03-29T00:59:59+00:00", "2026-03-29T01:00:00+00:00"], "clocks go forward in Berlin"),
        (["2026-10-25T00:30:00+00:00", "2026-10-25T01:30:00+00:00"], "the same local hour comes twice"),
        (["2028-02-28T23:59:59+00:00", "2028-02-29T00:00:00+00:00"], "leap day"),
    ],
)
@pytest.mark.parametrize("offset_h", [-11, 2, 14])
def test_campaigns_sort_by_their_start_over_midnight_and_daylight_saving(
    tmp_path: Path, moments: list[str], why: str, offset_h: int
):
    """Names are in UTC, whatever zone the machine is in."""
    names = []
    for moment in moments:
        with freeze_time(moment):
            local = WallClock().wall().astimezone(timezone(timedelta(hours=offset_h)))
            names.append(CampaignStore(tmp_path, local, "zz").folder.name)
    assert names == sorted(names) and len(set(names)) == 2, why
    assert names[0] == f"{datetime.fromisoformat(moments[0]):%Y%m%dT%H%M%S}Z-zz"


def test_latest_points_to_the_newest_campaign_and_moves_with_the_folder(tmp_path: Path):
    """A relative link: the whole `runs` folder may be carried elsewhere."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    CampaignStore(tmp_path / "runs", now, "aa")
    second = CampaignStore(tmp_path / "runs", now + timedelta(seconds=1), "bb")
    latest = tmp_path / "runs" / "latest"
    assert latest.resolve() == second.folder.resolve()
    assert not latest.readlink().is_absolute()


def test_a_folder_that_may_not_be_replaced_keeps_its_name(tmp_path: Path):
    """Where `latest` is a real folder of the user's it is left alone, and the campaign goes on."""
    (tmp_path / "latest").mkdir()
    store = CampaignStore(tmp_path, datetime(2026, 1, 1, tzinfo=UTC), "aa")
    assert store.folder.is_dir() and not (tmp_path / "latest").is_symlink()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_repeats_after_the_first_carry_their_number(tmp_path: Path):
    """So that no run writes into another's folder."""
    store = CampaignStore(tmp_path, datetime(2026, 1, 1, tzinfo=UTC), "aa")
    folders = []
    for repeat in (1, 2, 10):
        run = store.run("story", "buggy", repeat)
        run.close()
        folders.append(run.folder.name)
    assert folders == ["buggy", "buggy.2", "buggy.10"]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("only-fix.1@2", "only-fix.1@2"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("a b/c", "a_b_c"),
        ("..", "_"),
        ("", "_"),
        ("über", "über"),
    ],
)
def test_a_name_becomes_one_folder(name: str, safe: str):
    """Never a way out of the campaign's."""
    assert safe_name(name) == safe


# ---- what is written


def test_each_event_is_on_disk_as_it_happens(tmp_path: Path):
    """A kill loses at most the one being written."""
    store = RunStore(tmp_path / "run", tmp_path / "bodies")
    history = History(WallClock(), sink=store.write)
    history.add(Note(what="漢"))
    assert json.loads((tmp_path / "run" / "history.jsonl").read_text(encoding="utf-8"))["what"] == "漢"
    store.close()


def test_a_body_is_kept_once_under_its_hash(tmp_path: Path):
    """160 requests of 85 KB are one file."""
    store = RunStore(tmp_path / "run", tmp_path / "bodies")
    names = [store.keep_body(body) for body in (b"same", b"same", b"other")]
    store.close()
    assert names[0] == names[1] != names[2]
    assert sorted(path.read_bytes() for path in (tmp_path / "bodies").iterdir()) == [b"other", b"same"]


def test_json_in_another_order_of_its_keys_is_the_same_body(tmp_path: Path):
    """Hash maps write their keys as they fall: a retry of theirs is the same request, other words are not."""
    store = RunStore(tmp_path / "run", tmp_path / "bodies")
    bodies = (
        b'{"a": {"x": 1, "y": 2}}',
        b'{"a": {"y": 2, "x": 1}}',
        b'{"a": {"y": 1, "x": 2}}',
        b'{"a": {"x": 1; "y": 2}}',
    )
    names = [store.keep_body(body) for body in bodies]
    store.close()
    assert names[0] == names[1]
    assert len({names[0], names[2], names[3]}) == 3
    assert len(list((tmp_path / "bodies").iterdir())) == 3


def test_a_body_that_nests_beyond_all_measure_is_kept_as_it_is(tmp_path: Path):
    """What can't be read as JSON is compared by its bytes."""
    store = RunStore(tmp_path / "run", tmp_path / "bodies")
    names = [store.keep_body(body) for body in (b"[" * 100_000, b"{" * 100_000)]
    store.close()
    assert names[0] != names[1]


def test_a_finished_run_is_read_back_as_it_was(tmp_path: Path):
    """Judgement, evidence, history and session files."""
    folder = finished(tmp_path / "run")
    (folder / "session" / "deep").mkdir(parents=True)
    (folder / "session" / "deep" / "s.jsonl").write_text("x")
    run = read_run(folder)
    assert run.judgement == JUDGED
    assert [event.id for event in run.history.events] == [0, 1, 2]
    assert [path.name for path in run.session_files] == ["s.jsonl"]
    assert read_run(finished(tmp_path / "other")).session_files == ()


def test_no_draft_stays_beside_a_whole_file(tmp_path: Path):
    """verdicts.json appears in one piece."""
    folder = finished(tmp_path / "run")
    assert sorted(path.name for path in folder.iterdir()) == ["history.jsonl", "verdicts.json"]


def test_a_run_that_never_came_to_its_end_has_no_verdict(tmp_path: Path):
    """It is no finished run, and reading it says so in one line."""
    store = RunStore(tmp_path / "run", tmp_path / "bodies")
    store.close()
    assert list(run_folders(tmp_path)) == []
    with pytest.raises(ValueError, match=r"no run folder \(verdicts.json is missing\)"):
        read_run(tmp_path / "run")


def test_runs_are_found_below_a_campaign_in_order_and_nothing_that_an_agent_left(tmp_path: Path):
    """A session file of an agent may have any name, ours too."""
    for name in ("b", "a"):
        finished(tmp_path / name)
    (tmp_path / "a" / "session").mkdir()
    (tmp_path / "a" / "session" / "verdicts.json").write_text("mine")
    assert list(run_folders(tmp_path)) == [tmp_path / "a", tmp_path / "b"]
    assert list(run_folders(tmp_path / "a")) == [tmp_path / "a"]


# ---- what a kill leaves


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_torn_last_line_is_left_out(tmp_path: Path, cut: int):
    """The events before it are all there."""
    path = finished(tmp_path / "run") / "history.jsonl"
    whole = path.read_bytes().rstrip(b"\n")
    path.write_bytes(whole[:-cut])
    assert [event.id for event in read(path).events] == [0, 1]


def test_a_last_line_torn_inside_a_character_is_left_out_too(tmp_path: Path):
    """Bytes know nothing of characters."""
    store = RunStore(tmp_path / "run", tmp_path / "bodies")
    history = History(WallClock(), sink=store.write)
    history.add(Note(what="whole"))
    history.add(Note(what="漢"))
    store.close()
    path = tmp_path / "run" / "history.jsonl"
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex("漢".encode()) + 1])
    assert [event.id for event in read(path).events] == [0]


def test_a_line_in_the_middle_that_is_no_event_is_named_by_its_number(tmp_path: Path):
    """A damaged history is not judged by what is left of it."""
    path = finished(tmp_path / "run") / "history.jsonl"
    lines = path.read_text().splitlines()
    lines[1] = lines[1][:10]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=r"history\.jsonl:2: "):
        read(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1: not valid JSON"),
        ("{", ":1: not valid JSON"),
        ("[]", ": expected a JSON object, found an empty list"),
        ('{"scenario": 1}', ": scenario: expected text, found 1"),
        ('{"scenario": "a", "surprise": 1}', ": the key 'agent' is missing"),
        ("null", ": expected a JSON object, found nothing"),
    ],
)
def test_verdicts_that_cannot_be_read_are_one_line_that_names_the_file(tmp_path: Path, text: str, said: str):
    """Edited by hand, or from another version."""
    folder = finished(tmp_path / "run")
    (folder / "verdicts.json").write_text(text)
    with pytest.raises(ValueError, match=r"verdicts\.json") as caught:
        read_run(folder)
    assert str(caught.value) == f"{folder / 'verdicts.json'}{said}"


@pytest.mark.parametrize("status", ["pass", "fail", "inconclusive", "error", "nothing"])
def test_a_judgement_survives_its_way_through_json(status: Any, tmp_path: Path):
    """Tuples stay tuples."""
    folder = finished(tmp_path / "run")
    judgement = Judgement("s", "a", "toxiproxy", status, as_expected=None, verdicts=(Verdict(status),), remarks=("r",))
    write_judgement(folder, judgement)
    assert read_run(folder).judgement == judgement
