"""The files of the user hold what they held, or what the model wrote."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import turns_with_a_full_disk
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.file_versions import FileChange, file_changes
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed

SHOWN_CHARS = 60
LOST_CHARACTER = "\ufffd"


@invariant("files_kept")
def files_kept(history: History) -> Iterator[Verdict]:
    r"""After a turn each file holds what it held before, changed by calls of the model that arrived whole.

    Judged for the files that the scenario names, in turns in which no other tool was called, the agent was not killed,
    and the disk was not full. Each of the calls may have worked or not, in their order; an edit whose old text occurs
    more than once may have changed one place or all. A call without an effect in its turn may have one in a later turn,
    until its user writes into the file: some agents work on a copy. Empty lines at the end, an empty line in the place
    of a deleted one, a byte order mark and the encoding of the same characters may differ, and the line ends of what
    the model wrote, but not those of the other lines, if these had all one kind of line ends.

    Fix: Write to a temporary file and rename it. Do not write what has not arrived whole. Read a file again right
    before an edit, and make parallel edits of one file one after the other. Replace the text as it is: no patterns
    (`$&`, `\1`) in the new text. Keep the file's own line ends and encoding, and refuse what cannot be decoded.
    """
    full = turns_with_a_full_disk(history)
    yield from map(judged, (change for change in file_changes(history) if change.turn not in full))


def judged(change: FileChange) -> Verdict:
    """Whether a file holds what it may hold; nothing if it did not change, or is too long to compare."""
    too_long = change.before.text is None and change.before.kind == "file"
    if too_long or not change.changed or change.now.kind == "other":
        return nothing()
    if wrong := _wrong(change):
        return fail(f"turn {change.turn}: {change.now.path} {wrong}", _evidence(change))
    return passed(because=f"turn {change.turn}: {change.now.path} holds what the model wrote")


def _wrong(change: FileChange) -> str:
    """What is wrong with a file that has changed; empty if nothing is."""
    if change.now.kind == "missing":
        return "is gone"
    if change.now.text is None:
        return f"has grown to {change.now.size:,} bytes"
    if change.foreseen:
        return ""
    return _difference(change, change.compared(change.now.text), change.possible())


def _difference(change: FileChange, now: str, versions: Sequence[str]) -> str:
    """How its text differs from each that it may be."""
    if not now:
        return f"is empty; it had {change.before.size:,} bytes"
    if half := _half(change, now):
        return half
    if lost := _lost_line(change, now, written_by_user=True):
        return f"has lost what its user wrote: {lost!r}"
    return _harm_of_lines(change, now, versions)


def _harm_of_lines(change: FileChange, now: str, versions: Sequence[str]) -> str:
    """What is wrong with the lines of a file that is not empty."""
    if longer := [text for text in versions if text.startswith(now)]:
        return f"has only the first {len(now):,} of {len(longer[0]):,} characters"
    if rest := [now.removeprefix(text) for text in versions if text and now.startswith(text)]:
        return f"has more behind what belongs there: {min(rest, key=len).strip().splitlines()[0][:SHOWN_CHARS]!r}"
    if LOST_CHARACTER in now and not any(LOST_CHARACTER in text for text in versions):
        return f"has lost characters: {_line_with(now, LOST_CHARACTER)}"
    return _difference_of_blanks(now, versions) or _difference_of_words(change, now, versions)


def _difference_of_blanks(now: str, versions: Sequence[str]) -> str:
    """How it differs from a version that has the same words; empty if there is none."""
    if now.splitlines() in [text.splitlines() for text in versions]:
        return "has other line ends in lines that no call changed"
    alike = [text for text in versions if "".join(text.split()) == "".join(now.split())]
    return f"has other blanks or line ends: {_first_difference(now, _nearest(now, alike))}" if alike else ""


def _difference_of_words(change: FileChange, now: str, versions: Sequence[str]) -> str:
    if lost := _lost_line(change, now):
        return f"has lost a line that no call changed: {lost!r}"
    return f"holds what no call of the model wrote: {_first_difference(now, _nearest(now, versions))}"


def _nearest(now: str, versions: Sequence[str]) -> str:
    """The version with which it has the longest beginning in common."""

    def common(text: str) -> int:
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(now, text, strict=False)))

    return max(versions, key=common)


def _half(change: FileChange, now: str) -> str:
    """Whether it is the beginning of what a call writes that never arrived whole."""
    for use in change.halves:
        if use.offered.file is not None and use.offered.file.content.startswith(now):
            return f"has a part of what tool call {use.token} writes, of which only a part had arrived"
    return ""


def _lost_line(change: FileChange, now: str, *, written_by_user: bool = False) -> str:
    """The first line that is gone, although no call of the model names a part of it; empty if there is none.

    With `written_by_user` only lines count that its user wrote since the turn before.
    """
    calls = [use.offered.file for use in (*change.late, *change.uses) if use.offered.file is not None]
    if any(call.role == "write_file" for call in calls) or (written_by_user and change.left is None):
        return ""
    old = set((change.left.text or "").splitlines()) if written_by_user and change.left is not None else set()
    named = {line.strip() for call in calls for line in call.old.splitlines()} - {""}
    before, known = change.compared(change.before.text or "").splitlines(), old.union(now.splitlines())
    gone = (
        line for line in before if line.strip() not in now and line not in known and not any(it in line for it in named)
    )
    return next((line[:SHOWN_CHARS] for line in gone), "")


def _line_with(text: str, part: str) -> str:
    return repr(next(line for line in text.splitlines() if part in line)[:SHOWN_CHARS])


def _first_difference(now: str, wanted: str) -> str:
    """The first line that differs, and what it should be."""
    lines, others = [*now.splitlines(), ""], [*wanted.splitlines(), ""]
    for line, other in zip(lines, others, strict=False):
        if line != other:
            return f"{line[:SHOWN_CHARS]!r}, and not {other[:SHOWN_CHARS]!r}"
    return f"{len(now):,} characters, and not {len(wanted):,}"


def _evidence(change: FileChange) -> tuple[Event, ...]:
    return (*dict.fromkeys(use.reply for use in change.uses), change.seen)
