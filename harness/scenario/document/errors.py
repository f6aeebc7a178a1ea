"""A mistake in a file: its place, and what is expected."""

from pathlib import Path

DocumentPath = tuple[str | int, ...]
"""The keys and list positions that lead to a value from the top."""


class BadFileError(Exception):
    """A mistake in a file, in one line: `file.yaml:12: what was expected`."""

    def __init__(self, path: Path, line: int | None, message: str) -> None:
        """`line` counts from 1; None: the mistake is the file itself."""
        super().__init__(path, line, message)
        self.path, self.line, self.message = path, line, message

    def __str__(self) -> str:
        """The one line that is shown."""
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


class BadValueError(ValueError):
    """From a model's validator, with the key below it that is wrong: `BadValueError("no such fix", "fixed", 0)`."""

    def __init__(self, message: str, *place: str | int) -> None:
        """`place` is relative to the value that is being validated."""
        super().__init__(message)
        self.place: DocumentPath = place
