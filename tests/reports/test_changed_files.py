"""The report shows what became of files."""

from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.reports.page.run.changed_files import LINES_SHOWN, changed_files


def _played(*texts: str | bytes | None, by_user: bool = False) -> History:
    tell = HistoryBuilder()
    tell.finds(notes=texts[0])
    tell.message()
    tell.answer_step(1)
    tell.end().finds(notes=texts[1], by_user=["notes.txt"] if by_user else ())
    return tell.seal()


def test_each_change_is_shown_with_its_lines_and_escaped():
    """A line end of Windows is seen, and markup of a file is text."""
    (shown,) = changed_files(_played("one\r\ntwo\r\n", "one\n<b>two</b>\n"))
    assert "notes.txt changed in turn 1: 10 bytes, then 15 bytes" in shown
    assert "-one\\r\n-two\\r\n+one\n+&lt;b&gt;two&lt;/b&gt;" in shown and "<b>" not in shown


def test_a_file_that_stayed_is_not_shown():
    """There is nothing to see."""
    assert list(changed_files(_played("one\n", "one\n"))) == []


def test_who_wrote_it_is_said_and_what_is_gone():
    """A file of the user, a file that is not there any more, and one that is too long."""
    (written,) = changed_files(_played("one\n", "two\n", by_user=True))
    assert "notes.txt changed before turn 2, by its user" in written
    (gone,) = changed_files(_played("one\n", None))
    assert "4 bytes, then not there" in gone and "-one" in gone
    (long,) = changed_files(_played("one\n", b"x" * 100_000))
    assert "too long to be compared" in long


def test_a_long_change_is_cut():
    """The history has all of it."""
    (shown,) = changed_files(_played("", "".join(f"line {number}\n" for number in range(100))))
    assert shown.count("\n+line") <= LINES_SHOWN and "more lines" in shown
