"""What a file tool tells the model is true."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call, result_in_turn
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.file_versions import file_changes
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("file_result_true")
def file_result_true(history: History) -> Iterator[Verdict]:
    """A call that did not change its file gets a result that says so.

    A model that reads of a success tells its user that the work is done. Judged for calls that write or edit a file,
    as for [`files_kept`](#files_kept), if another such call of the run changed its file: some agents keep changes apart
    until their user takes them. A result with a mark of an error, or with any word that may tell of a failure, is
    enough.

    Fix: Send the model an error if the old text is not in the file, or if the write failed.
    """
    changes = [(change, use) for change in file_changes(history) for use in change.uses]
    if not any(change.has_effect(use) for change, use in changes):
        return
    for change, use in changes:
        told = result_in_turn(use)
        if told is None or _may_tell(told[1]) or change.harmed:
            continue
        if change.has_effect(use) or change.now.text is None:
            yield passed(because=f"{name_of_call(use)} says that it worked, and it did")
        else:
            says = f"{name_of_call(use)} did not change {change.now.path}, and nothing in its result says so"
            yield fail(f"{says} ({told[1].chars} characters)", (use.reply, change.seen, told[0]))


def _may_tell(result: ToolResult) -> bool:
    """Whether it says, or may say, that the call failed; one whose signs were not recorded may."""
    return (
        not result.signs_known or result.is_error or not {"failed", "undone", "foreign"}.isdisjoint(result.signs or ())
    )
