"""The model reads why its edit failed, and no failure of an edit that worked."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call, result_in_turn
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.file_versions import FileChange, applied, file_changes
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import ToolUse

WHY = frozenset(("mismatch", "several", "foreign"))


@invariant("edit_failure_told", level="strict")
def edit_failure_told(history: History) -> Iterator[Verdict]:
    """An edit whose old text is not in its file gets a result that says so; one that worked gets no failure.

    A model that reads only that its edit failed sends the same one again. A word such as "not found", "match", "exact"
    or "old text" is enough. A model that reads of a failure although the file is changed makes the change a second
    time. That is judged for calls that write a file too, where the result says that it failed, could not, or has
    changed nothing, and no word of it tells of something that was done: a program that formats or checks the file after
    the edit may fail. Judged as [`files_kept`](#files_kept) is; a result in another language than English passes.

    Fix: Say in the result that the old text is not in the file. Write the file as the last step, when nothing of the
    call can fail any more; if something fails after that, say what is done and what is not.
    """
    for change in file_changes(history):
        for use in change.uses:
            sent = result_in_turn(use)
            if sent is None or change.harmed or not sent[1].signs_known:
                continue
            request, result = sent
            if wrong := _wrong(change, use, result):
                yield fail(
                    f"{name_of_call(use)} {wrong} ({result.chars} characters)", (use.reply, change.seen, request)
                )
            elif _fits_nowhere(change, use) or _worked(change, use):
                yield passed(because=f"the result of {name_of_call(use)} fits what became of it")


def _wrong(change: FileChange, use: ToolUse, result: ToolResult) -> str:
    """What is wrong with the result of a call; empty if nothing is."""
    signs = set(result.signs or ())
    if _fits_nowhere(change, use) and WHY.isdisjoint(signs):
        return f"has an old text that is not in {change.now.path}, and its result does not say so"
    if _worked(change, use) and "only_failed" in signs:
        return f"changed {change.now.path}, and its result says only that it failed"
    return ""


def _fits_nowhere(change: FileChange, use: ToolUse) -> bool:
    """Whether no text that the file may have held has a place for the edit."""
    action = use.offered.file
    if action is None or not action.old or change.before.kind != "file":
        return False
    return not any(applied(action, text) for text in change.versions(without=use))


def _worked(change: FileChange, use: ToolUse) -> bool:
    """Whether the file holds what only this call can have made of it."""
    if not change.changed or not change.has_effect(use):
        return False
    return change.compared(change.now.text or "") not in map(change.compared, change.versions(without=use))
