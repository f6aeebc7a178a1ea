"""The files of the user hold what they held, or what the model wrote."""

from collections.abc import Iterator, Sequence

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
    more than once may have changed one place or all. Empty lines at the end, a byte order mark and the encoding of the
    same characters may differ, and the line ends of what the model wrote, but not those of the other lines, if these
    had all one kind of line ends.

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
    longer = [text for text in versions if text.startswith(now)]
    if longer:
        return f"has only the first {len(now):,} of {len(longer[0]):,} characters"
    if _same_lines(now, versions):
        return "has other line ends in lines that no call changed"
    if LOST_CHARACTER in now and not any(LOST_CHARACTER in text for text in versions):
        return f"has lost characters: {_line_with(now, LOST_CHARACTER)}"
    return f"holds what no call of the model wrote: {_first_difference(now, max(versions, key=len))}"


def _half(change: FileChange, now: str) -> str:
    """Whether it is the beginning of what a call writes that never arrived whole."""
    for use in change.halves:
        if use.offered.file is not None and use.offered.file.content.startswith(now):
            return f"has a part of what tool call {use.token} writes, of which only a part had arrived"
    return ""


def _same_lines(now: str, versions: Sequence[str]) -> bool:
    return now.splitlines() in [text.splitlines() for text in versions]


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
