"""The files of the user survive a full disk."""

from collections.abc import Iterator

from wedgehog.harness.invariants.files.files_kept import judged
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import turns_with_a_full_disk
from wedgehog.harness.record.file_versions import file_changes
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, passed


@invariant("files_survive", level="strict")
def files_survive(history: History) -> Iterator[Verdict]:
    """After a turn in which the disk was full each file holds its old text or its new one, whole.

    Judged as [`files_kept`](#files_kept). Most programs empty a file before they write it, and tell of the failure;
    what stood in the file is lost all the same.

    Fix: Write to a temporary file, and rename it when all is written.
    """
    full = turns_with_a_full_disk(history)
    for change in file_changes(history):
        if change.turn in full and change.uses:
            yield judged(change) if change.changed else passed(because=f"{change.now.path} holds its old text")
