"""What the session files of a run hold at each kill and at the end, in sentences."""

from collections.abc import Iterator
from pathlib import Path

from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.page.answers.history_changes import named
from wedgehog.reports.page.answers.session_state import SessionState, session_state
from wedgehog.reports.words import many, one_line

AT_KILL = "session-at-kill-"


def session_answers(run: StoredRun) -> Iterator[str]:
    """A sentence for each file that holds tool calls, is torn, or holds a status."""
    told = 0
    for path in [*sorted(run.folder.glob(f"{AT_KILL}*/**/*")), *run.session_files]:
        state = session_state(path) if path.is_file() else None
        if state is not None and (state.calls or state.torn or state.status):
            told += 1
            yield _said(path.relative_to(run.folder), state) + _since_the_kill(path, run.folder)
    if told:
        return
    if run.session_files:
        files = many(len(run.session_files), "file")
        yield f"{files} at the end, in which no record has the id of a tool call or a status."


def _said(path: Path, state: SessionState) -> str:
    when = "At the kill" if path.parts[0].startswith(AT_KILL) else "At the end"
    if state.dangling:
        held = f"{many(len(state.dangling), 'tool call')} without a result: {named(state.dangling)}"
    else:
        held = f"a result for each of {many(len(state.calls), 'tool call')}" if state.calls else "no tool call"
    torn = "; its last record is torn" if state.torn else ""
    status = (
        f"its status is “{one_line(state.status, 60)}”"
        if state.status
        else "no record holds a status, so the file can't tell whether it is running"
    )
    records = many(state.records, "record") if path.suffix == ".jsonl" or state.records > 1 else "one JSON document"
    return f"{when}, {one_line(path.name, 60)}: {records}, {held}{torn}; {status}."


def _since_the_kill(path: Path, folder: Path) -> str:
    """Whether the file at the end is that of the last kill."""
    inside = path.relative_to(folder)
    kills = sorted(folder.glob(f"{AT_KILL}*"))
    before = kills[-1] / Path(*inside.parts[1:]) if kills else None
    if inside.parts[0].startswith(AT_KILL) or before is None or not before.is_file():
        return ""
    same = before.read_bytes() == path.read_bytes()
    return " The file is the same as at the last kill." if same else " The file has changed since the last kill."
