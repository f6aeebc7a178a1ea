"""The model reads which place an edit has changed, where its old text stands at several."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call, result_in_turn
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.file_versions import FileChange, file_changes
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import ToolUse

TELLS = frozenset(("several", "number", "failed", "undone", "foreign"))
OF_AN_EXIT_CODE = frozenset(("number", "failed", "undone"))
"""An exit code of 0 has these signs, and a duration."""


@invariant("edit_place_told", level="strict")
def edit_place_told(history: History) -> Iterator[Verdict]:
    """An edit whose old text stands at several places is refused, or its result says more than that it worked.

    The model means one place, and a tool that takes the first one may change another. A number in the result (of
    places, of lines) is enough, as is any word that there are several; an exit code and a duration are not. Judged as
    [`files_kept`](#files_kept) is.

    Fix: Refuse the edit, and say at how many places the old text stands, so that the model sends more of it. Offer a
    parameter that changes all of them.
    """
    for change in file_changes(history):
        for use in change.uses:
            told = result_in_turn(use)
            if told is None or change.harmed or not _fits_several(change, use):
                continue
            if change.has_effect(use) and not _tells(told[1]):
                says = f"{name_of_call(use)} fits several places of {change.now.path}, and its result does not say so"
                yield fail(says, (use.reply, change.seen, told[0]))
            else:
                yield passed(because=f"{name_of_call(use)} is refused, or its result says what it changed")


def _fits_several(change: FileChange, use: ToolUse) -> bool:
    """Whether its old text stands more than once in the file, whichever of the other calls worked."""
    old = use.offered.file.old if use.offered.file is not None else ""
    return bool(old) and all(text.count(old) > 1 for text in change.versions(without=use))


def _tells(result: ToolResult) -> bool:
    if not result.signs_known or result.is_error:
        return True
    words = TELLS - OF_AN_EXIT_CODE if "ended_well" in (result.signs or ()) else TELLS
    return not words.isdisjoint(result.signs or ())
