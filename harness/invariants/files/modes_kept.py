"""A script stays a script, and a link a link."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.record.file_versions import FileChange, file_changes
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("modes_kept", level="strict")
def modes_kept(history: History) -> Iterator[Verdict]:
    """A file that may be executed still may after an edit, and a symbolic link is still one.

    A script that its user can no longer start fails later, long after the edit. A link that has become a file of its
    own no longer follows the file behind it. Judged as [`files_kept`](#files_kept), for files that a call of the model
    was to change. A tool may refuse to write through a link.

    Fix: Give the temporary file the mode of the old one before it is renamed (such as `shutil.copymode`), and rename it
    to where the link leads (`os.path.realpath`).
    """
    for change in file_changes(history):
        if not change.uses or change.now.kind != "file":
            continue
        if wrong := _wrong(change):
            yield fail(f"turn {change.turn}: {change.now.path} {wrong}", (change.uses[0].reply, change.seen))
        elif change.before.executable or change.before.link_to:
            yield passed(because=f"turn {change.turn}: {change.now.path} is still what it was")


def _wrong(change: FileChange) -> str:
    if change.before.link_to and not change.now.link_to:
        return f"was a link to {change.before.link_to}, and is a file of its own now"
    if change.before.executable and not change.now.executable:
        return "can no longer be executed"
    return ""
