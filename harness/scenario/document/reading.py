"""A file's text into a document: its data, and the line of each part of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from wedgehog.harness.scenario.document.errors import BadFileError, DocumentPath
from wedgehog.harness.scenario.document.mistake import first_mistake
from wedgehog.harness.scenario.document.yaml_loader import LineReader, PlainLoader

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Document:
    """One file's data, and the line of each key and list entry."""

    path: Path
    data: Any
    lines: Mapping[DocumentPath, int] = field(repr=False)

    def line(self, place: Sequence[str | int]) -> int:
        """The line of `place`, or of the nearest thing above it that the file really holds."""
        steps = tuple(place)
        while steps and steps not in self.lines:
            steps = steps[:-1]
        return self.lines.get(steps, 1)

    def error(self, place: Sequence[str | int], message: str) -> BadFileError:
        """A BadFileError at the line of `place`."""
        return BadFileError(self.path, self.line(place), message)

    def into(self, kind: type[T], *, at: Sequence[str | int] = ()) -> T:
        """The data (or the part of it at `at`) as `kind`, a pydantic model or any type pydantic can check."""
        part = self.data
        for step in at:
            part = part[step]
        try:
            return TypeAdapter(kind).validate_python(part)
        except ValidationError as bad:
            place, message = first_mistake(bad, kind, self.lines, tuple(at))
            raise self.error(place, message) from None


def load(path: Path) -> Document:
    """Read `path`. Errors: BadFileError for anything that is not one document of plain data."""
    return read(_text(path), path)


def read(text: str, path: Path) -> Document:
    """Read `text` as the content of `path`."""
    try:
        node = yaml.compose(text, Loader=PlainLoader)
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        raise BadFileError(path, mark.line + 1 if mark else None, f"not valid YAML: {_problem(bad)}") from None
    except yaml.YAMLError as bad:
        raise BadFileError(path, None, f"not valid YAML: {str(bad).splitlines()[0]}") from None
    except RecursionError:
        raise BadFileError(path, None, "nested too deeply") from None
    if node is None:
        raise BadFileError(path, None, "the file is empty")
    reader = LineReader(path)
    return Document(path, reader.value(node, ()), reader.lines)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise BadFileError(path, None, "no such file") from None
    except IsADirectoryError:
        raise BadFileError(path, None, "is a folder, expected a file") from None
    except UnicodeDecodeError as bad:
        line = path.read_bytes()[: bad.start].count(b"\n") + 1
        raise BadFileError(path, line, "not UTF-8 text") from None
    except OSError as bad:
        raise BadFileError(path, None, f"cannot be read: {bad.strerror}") from None


def _problem(bad: yaml.MarkedYAMLError) -> str:
    said = " ".join(part for part in (bad.context, bad.problem) if part)
    if "'\\t'" in said:
        return "a tab where only spaces may indent"
    if "single document" in said:
        return "expected a single document, found a second one"
    return said
