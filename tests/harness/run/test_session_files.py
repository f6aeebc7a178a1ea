"""What becomes of session files at a crash."""

import contextlib
import os
import sqlite3
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.events.run import Note
from wedgehog.harness.record.events.turn import SessionSaved, StimulusGiven
from wedgehog.harness.record.history import History
from wedgehog.harness.run.session_files import A_DATABASE, NEVER_TORN, SessionFiles, torn_of

SALT = "wqbcd"


@pytest.fixture
def context(tmp_path: Path, manual_clock: Any) -> AgentContext:
    """A run's own folder, with room for sessions."""
    folder = tmp_path / "folder"
    made = AgentContext(folder, "http://127.0.0.1:1", "k", "s1", "run", tmp_path / "log", manual_clock)
    for path in (made.cwd, made.session_dir):
        path.mkdir(parents=True)
    return made


@pytest.fixture
def watch(context: AgentContext, tmp_path: Path, manual_clock: Any) -> Any:
    """Watches the files that a spec names, or all in its session folder."""

    def make(*patterns: str) -> SessionFiles:
        spec = AgentSpec.model_validate(
            {"name": "a", "wire": "anthropic", "command": ["a"], "session_files": list(patterns)}
        )
        return SessionFiles(spec, lambda: context, History(manual_clock), SALT, tmp_path / "kept")

    return make


@pytest.mark.parametrize("patterns", [(), ("{session_dir}/*.jsonl",)])
def test_a_change_of_any_session_file_is_seen(watch: Any, context: AgentContext, patterns: tuple[str, ...]):
    """A new file, a longer one, as many other bytes, one that was put in the context of another."""
    it = watch(*patterns)
    looks = [it.look()]
    file = context.session_dir / "a.jsonl"
    file.write_text("1\n")
    looks.append(it.look())
    with file.open("a") as more:
        more.write("2\n")
    looks.append(it.look())
    file.write_text("3\n4\n")
    looks.append(it.look())
    (context.session_dir / "new").write_text("1\n2\n")
    os.utime(context.session_dir / "new", ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    (context.session_dir / "new").replace(file)
    looks.append(it.look())
    assert all(one != other for one, other in pairwise(looks))
    assert it.look() == looks[-1]


def test_a_file_that_is_replaced_whole_is_never_torn(watch: Any, context: AgentContext):
    """A crash leaves the old or the new one; a line that is appended, or a file that is written again, can be torn."""
    it = watch()
    file, other = context.session_dir / "a.json", context.session_dir / "other.json"
    file.write_text('{"turn": 1}')
    it.plant(2, None)
    other.write_text('{"turn": 2}')
    other.replace(file)
    assert it.save(2, tear=True) and file.read_text() == '{"turn": 2}'
    assert [note.what for note in it.history.of(Note)] == [NEVER_TORN]
    (context.session_dir / "log.jsonl").write_text('{"turn": 2}\n')
    assert it.save(2, tear=True) and (context.session_dir / "log.jsonl").read_text() == '{"tur'
    assert file.read_text() == '{"turn": 2}' and len([*it.history.of(Note)]) == 1


def test_a_lock_beside_the_session_is_never_torn(watch: Any, context: AgentContext):
    """It holds no message; half of its pid is the pid of another process, which may live for ever."""
    it = watch()
    it.history.add(StimulusGiven(turn=1, stimulus="user", marker="mq7", nonce="n", text="mq7 Hello"))
    log, lock = context.session_dir / "a.jsonl", context.session_dir / "a.jsonl.lock"
    log.write_text('{"user": "mq7 Hello"}\n')
    lock.write_text("370")
    os.utime(log, (1, 1))
    assert it.save(1, tear=True)
    assert (log.read_text(), lock.read_text()) == ('{"user": "', "370")


def test_a_database_is_never_torn(watch: Any, context: AgentContext):
    """It survives a crash in the middle of a transaction, with a journal beside it. A journal alone proves nothing."""
    it = watch()
    (context.session_dir / "s.db-journal").write_bytes(b"\xd9\xd5\x05\xf9")
    assert not it.save(2, tear=True) and list(it.history.of(Note)) == []
    with contextlib.closing(sqlite3.connect(context.session_dir / "s.db")) as database:
        database.execute("create table said (words text)")
    before = (context.session_dir / "s.db").read_bytes()
    assert it.save(2, tear=True) and (context.session_dir / "s.db").read_bytes() == before
    assert [note.what for note in it.history.of(Note)] == [A_DATABASE]


def test_a_write_to_a_database_that_is_open_is_seen_though_its_own_file_stays_the_same(
    watch: Any, context: AgentContext
):
    """In WAL mode a process that stays writes to the file beside it, also where the spec names only the database."""
    it, file = watch("{session_dir}/*.db"), context.session_dir / "s.db"
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE said (text)")
        before, was = it.look(), file.stat()
        database.execute("INSERT INTO said VALUES ('Hello')")
        assert (file.stat().st_mtime_ns, file.stat().st_size) == (was.st_mtime_ns, was.st_size)
        assert it.look() != before
        assert it.save(1, tear=True)
    assert [note.what for note in it.history.of(Note)] == [A_DATABASE]


def test_a_file_that_is_replaced_and_then_grows_can_be_torn(watch: Any, context: AgentContext):
    """An agent may write a repaired file when it loads a session, and append to it then."""
    it = watch()
    file, other = context.session_dir / "a.jsonl", context.session_dir / "other"
    for text in ('{"turn": 1}\n', '{"turn": 1, "repaired": true}\n'):
        other.write_text(text)
        other.replace(file)
        it.look()
    with file.open("a") as more:
        more.write('{"turn": 2}\n')
    assert it.save(2, tear=True) and file.read_text() == '{"turn": 1, "repaired": true}\n{"tur'
    it.keep()


def test_what_is_left_after_a_crash_is_kept_and_told(watch: Any, context: AgentContext, tmp_path: Path):
    """Each file as it is then, with the results that stand in it; copies of two kills do not meet."""
    it = watch()
    (context.session_dir / "a.jsonl").write_text(f'{{"result": "ok\\n{SALT}1x1x1\\n"}}\n{{"result": "{SALT}1x1x2"}}\n')
    assert it.save(1, tear=False) and it.save(1, tear=True)
    first, second = it.history.of(SessionSaved)
    assert (first.results, first.torn) == (("1.1.1", "1.1.2"), False)
    assert (second.results, second.torn, second.turn) == (("1.1.1",), True, 1)
    kept = [tmp_path / "kept" / event.path for event in (first, second)]
    assert [path.stat().st_size for path in kept] == [first.size, second.size]
    assert kept[1].read_bytes() == (context.session_dir / "a.jsonl").read_bytes()


def test_where_nothing_can_be_torn_it_is_said(watch: Any, context: AgentContext):
    """No file, an empty one, one that is not text: no half line is lost, and the kill is not proved."""
    it = watch()
    assert not it.save(1, tear=True)
    (context.session_dir / "empty").touch()
    (context.session_dir / "binary").write_bytes(b"\xff\xfe\n")
    assert not it.save(1, tear=True)
    assert [event.torn for event in it.history.of(SessionSaved)] == [False] * 2


def test_the_file_that_was_written_last_is_torn(tmp_path: Path):
    """The others are as they were."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("one\ntwo\n")
    new.write_text("one\nfour\n")
    os.utime(old, (1, 1))
    assert torn_of([old, new]) == new
    assert (old.read_text(), new.read_text()) == ("one\ntwo\n", "one\nfo")


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=2), min_size=1))
def test_only_the_last_line_is_torn(tmp_path_factory: Any, lines: list[str]):
    """Whatever it holds: every line before it is whole, and it is not."""
    file = tmp_path_factory.mktemp("torn") / "session"
    whole = "".join(f"{line}x\n" for line in lines).encode()
    file.write_bytes(whole)
    assert torn_of([file]) == file
    left = file.read_bytes()
    before = "".join(f"{line}x\n" for line in lines[:-1]).encode()
    assert left.startswith(before) and len(left) < len(whole) - 1 and whole.startswith(left)
