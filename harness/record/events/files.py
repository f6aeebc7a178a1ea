"""The files of the project in which the agent works."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from wedgehog.harness.record.events.base import Event

MOST_TEXT_BYTES = 64_000
"""Of a longer file only the digest is recorded."""


@dataclass(frozen=True, slots=True)
class FileCall:
    """What a call of one of the agent's own file tools asks for, whatever the agent calls its tool."""

    role: str
    """read_file, write_file, edit_file or search_files."""
    path: str
    """From the agent's working folder."""
    content: str = ""
    """What `write_file` writes."""
    old: str = ""
    new: str = ""
    """What `edit_file` puts in the place of `old`."""


@dataclass(frozen=True, slots=True)
class FileSeen:
    """A file as it was at one moment."""

    path: str
    """From the agent's working folder."""
    kind: Literal["file", "missing", "other"]
    """`other`: a folder, a pipe, or a file that cannot be read."""
    size: int = 0
    """In bytes."""
    sha256: str = ""
    text: str | None = None
    r"""Its bytes as UTF-8, each byte that is none as `\xff`; None: longer than MOST_TEXT_BYTES, or no file."""
    executable: bool = False
    """Whether its owner may execute it."""
    link_to: str = ""
    """It is a symbolic link to this file; empty if it is none."""

    @classmethod
    def of(cls, path: str, data: bytes, *, executable: bool = False) -> "FileSeen":
        """A file with these bytes."""
        text = data.decode("utf-8", "backslashreplace") if len(data) <= MOST_TEXT_BYTES else None
        return cls(path, "file", len(data), hashlib.sha256(data).hexdigest(), text, executable)


class FilesSeen(Event):
    """The files that a scenario names, before the first turn and after each one."""

    turn: int
    """The turn that is over; 0 before the first one."""
    files: tuple[FileSeen, ...]
    by_user: tuple[str, ...] = ()
    """The files that the user has written before the next turn; then all files are seen once more."""
