"""The files of one run in the page; of a session file of JSON lines also its last record."""

import os
from collections.abc import Sequence
from pathlib import Path

from wedgehog.harness.record.events.run import SessionKept
from wedgehog.harness.record.events.turn import HangSeen, TurnEnded
from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.markup import tag
from wedgehog.reports.words import count, one_line

OWN_FILES = ("scenario.yaml", "agent.yaml", "history.jsonl", "verdicts.json", "agent.log")
RECORD_SHOWN = 300
"""So many characters of a last record are in the page."""
READ_AT_MOST = 65_536


def files(run: StoredRun, run_dir: str) -> list[object]:
    """One item for each file; `run_dir` is how the page names the folder."""
    own = [name for name in OWN_FILES if (run.folder / name).is_file()]
    own += [event.file for event in run.history.of(HangSeen) if event.file]
    own += [event.picture for event in run.history.of(TurnEnded) if event.picture]
    kept = {event.path: event for event in run.history.of(SessionKept)}
    if not kept:
        own += [str(path).removeprefix(f"{run.folder}/") for path in run.session_files]
    items: list[object] = [tag("code", f"{run_dir}/{name}") for name in own]
    for path, event in kept.items():
        hashed = tag("code", event.sha256[:16])
        record = _record(run.folder / "session" / path)
        items.append((tag("code", path), f" {count(event.size)} bytes, sha256 ", hashed, *record))
    return items


def _record(path: Path) -> Sequence[object]:
    line = last_record(path) if path.suffix == ".jsonl" else ""
    return ("; its last record: ", tag("code", one_line(line, RECORD_SHOWN))) if line else ()


def last_record(path: Path) -> str:
    """The last line with content; empty if the file can't be read, or that line is longer than `READ_AT_MOST`."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - READ_AT_MOST))
            end = file.read()
    except OSError:
        return ""
    lines = [line for line in end.splitlines() if line.strip()]
    whole = size <= READ_AT_MOST or len(lines) > 1
    return lines[-1].decode("utf-8", "replace") if lines and whole else ""
