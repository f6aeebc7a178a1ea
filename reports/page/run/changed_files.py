"""What became of the files in which the agent worked, as a part of the report."""

from collections.abc import Iterator
from difflib import unified_diff
from itertools import pairwise

from wedgehog.harness.record.events.files import FileSeen, FilesSeen
from wedgehog.harness.record.history import History
from wedgehog.reports.markup import Markup, tag

LINES_SHOWN = 40
"""The most lines of one change."""
_CONTEXT = 2


def changed_files(history: History) -> Iterator[Markup]:
    """A fold for each change of a file: which turn made it, and the lines that differ."""
    for before, after in pairwise(history.of(FilesSeen)):
        when = f"before turn {after.turn + 1}, by its user" if after.by_user else f"in turn {after.turn}"
        for old, now in zip(before.files, after.files, strict=True):
            if old != now:
                summary = tag("summary", f"{now.path} changed {when}: {_size(old)}, then {_size(now)}")
                yield tag("details", summary, tag("pre", "\n".join(_lines(old, now))))


def _size(file: FileSeen) -> str:
    return f"{file.size:,} bytes" if file.kind == "file" else "not there" if file.kind == "missing" else "no file"


def _shown(file: FileSeen) -> list[str]:
    return (file.text or "").replace("\r", "\\r").splitlines()


def _lines(old: FileSeen, now: FileSeen) -> list[str]:
    """The lines that differ; a carriage return at the end of a line is shown."""
    if (old.kind == "file" and old.text is None) or (now.kind == "file" and now.text is None):
        return ["(too long to be compared)"]
    found = list(unified_diff(_shown(old), _shown(now), lineterm="", n=_CONTEXT))[2:]
    more = [f"… {len(found) - LINES_SHOWN} more lines"] if len(found) > LINES_SHOWN else []
    return [*found[:LINES_SHOWN], *more] or ["(its last line end, or nothing but its kind)"]
