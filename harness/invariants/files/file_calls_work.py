"""A call of a file tool that fits its file works."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call, turns_with_a_full_disk
from wedgehog.harness.record.file_versions import FileChange, applied, file_changes, has_bytes
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import ToolUse


@invariant("file_calls_work", level="strict")
def file_calls_work(history: History) -> Iterator[Verdict]:
    """A call whose old text stands once in its file, or that writes a file anew, changes the file.

    Judged as [`file_result_true`](#file_result_true) is, for calls whose result reached the model. Calls that write are
    judged only if another one of the run replaced a file: some agents allow that only by edits. A file in which its
    user has written something else since the turn before may be protected until the model has read it again, and one
    that is not in UTF-8 may be refused. Nothing need work in a turn in which the disk was full. An agent that refuses a
    sound edit makes its model try it again and again, or write the whole file anew.

    Fix: Look for the old text in the lines as the model has read them, whatever their ends are. Take an empty text for
    a text. Compare what stands in a file, not the time of its last change.
    """
    changes = [(change, use) for change in file_changes(history) for use in change.uses if use.results]
    worked = {_role(use) for change, use in changes if change.has_effect(use) and change.before.kind == "file"}
    full = turns_with_a_full_disk(history)
    for change, use in changes:
        protected = change.turn in full or change.stale
        if protected or change.harmed or _role(use) not in worked or not _fits(change, use):
            continue
        if change.has_effect(use) or change.now.text is None:
            yield passed(because=f"{name_of_call(use)} worked")
        else:
            yield fail(f"{name_of_call(use)} fits {change.now.path}, and did not work", (use.reply, change.seen))


def _role(use: ToolUse) -> str:
    return use.offered.file.role if use.offered.file is not None else ""


def _fits(change: FileChange, use: ToolUse) -> bool:
    """Whether there is one place for it, whichever of the other calls worked."""
    action = use.offered.file
    if action is None or change.before.kind != "file" or change.before.text is None or has_bytes(change.before.text):
        return False
    others = change.versions(without=use)
    return all(applied(action, text) and (not action.old or _once(action.old, text)) for text in others)


def _once(old: str, text: str) -> bool:
    return text.replace("\r\n", "\n").count(old.replace("\r\n", "\n")) == 1
