"""Hand-written files: YAML with line numbers, so that each mistake is one line with file, line and expectation.

    scenario = load(Path("stall.yaml")).into(Scenario)
    # or BadFileError: stall.yaml:12: unknown key 'turms' (did you mean 'turns'?)

Only plain data is read: no tag runs, keys are always text (`on:` is the key "on"), and of the unquoted words only true,
false and null are not text.
"""

import errno
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from wedgehog.harness.scenario.mistake import DocumentPath, Mistake, all_mistakes
from wedgehog.harness.scenario.plain_yaml import compose
from wedgehog.harness.scenario.readable import Readable

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
MOST_VALUES = 100_000
"""More than any hand-written file; a file of nested aliases can stand for billions."""


class BadFileError(Exception):
    """Mistakes in a file, one line each: `file.yaml:12: what was expected`."""

    def __init__(self, path: Path, line: int | None, message: str, others: Sequence["BadFileError"] = ()) -> None:
        """`line` counts from 1; None: the mistake is the file itself. `others` are the later mistakes."""
        super().__init__(path, line, message, others)
        self.path, self.line, self.message, self.others = path, line, message, others

    def __str__(self) -> str:
        first = f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"
        return "\n".join([first, *map(str, self.others)])

    def beside(self, other: "BadFileError") -> "BadFileError":
        """The mistakes of both, which are of one file, from its top."""
        both = sorted((self, *self.others, other, *other.others), key=lambda one: one.line or 0)
        first, *others = (BadFileError(one.path, one.line, one.message) for one in both)
        return BadFileError(first.path, first.line, first.message, others)


@dataclass(frozen=True, slots=True)
class Document:
    """One file's data, and the line of each key and list entry."""

    path: Path
    data: Any
    lines: Mapping[DocumentPath, int] = field(repr=False)

    def line(self, place: Sequence[str | int]) -> int:
        """The line of `place`, or of the nearest place above it in the file."""
        steps = tuple(place)
        while steps and steps not in self.lines:
            steps = steps[:-1]
        return self.lines.get(steps, 1)

    def error(self, place: Sequence[str | int], message: str) -> BadFileError:
        """A BadFileError at the line of `place`."""
        return self.errors([Mistake(tuple(place), message)])

    def errors(self, found: Sequence[Mistake]) -> BadFileError:
        """A BadFileError with a line for each mistake, from the top of the file."""
        lines = dict.fromkeys(sorted(((self.line(one.place), one.said) for one in found), key=itemgetter(0)))
        first, *others = (BadFileError(self.path, line, said) for line, said in lines)
        return BadFileError(first.path, first.line, first.message, others)

    def into(self, kind: type[T], *, at: Sequence[str | int] = ()) -> T:
        """The data (or the part of it at `at`) as `kind`, a pydantic model or any type pydantic can check."""
        value, found = self.checked(kind, at=at)
        if found:
            raise self.errors(found)
        return cast(T, value)

    def checked(self, kind: type[T], *, at: Sequence[str | int] = ()) -> tuple[T | None, list[Mistake]]:
        """The data as `kind`, and all that is wrong with it: unknown keys do not hide what is wrong beside them.

        The value is there also if unknown keys are all that is wrong.
        """
        part = self.data
        for step in at:
            part = part[step]
        try:
            return TypeAdapter(kind).validate_python(part), []
        except ValidationError as bad:
            found = list(all_mistakes(bad, kind, self.lines, tuple(at)))
        unknown = _unknown_keys(found, len(at))
        if len(unknown) < len(found) or not unknown:
            return None, found
        rest = _corrected(part, unknown)
        try:
            return TypeAdapter(kind).validate_python(rest), found
        except ValidationError as bad:
            lines = {(*at, *_renamed(place[len(at) :], unknown)): line for place, line in self.lines.items()}
            more = all_mistakes(bad, kind, {**self.lines, **lines}, tuple(at))
            back = {_renamed(place, unknown): place for place in (line[len(at) :] for line in self.lines)}
            places = [(*at, *back.get(one.place[len(at) :], one.place[len(at) :])) for one in more]
            return None, [*found, *(replace(one, place=place) for one, place in zip(more, places, strict=True))]

    def readable(self, kind: type[M], found: Sequence[Mistake], needed: Mapping[str, Any]) -> M | None:
        """What can be read although `found` is wrong; None if that is nothing.

        It stands for a `kind` (see `Readable`): keys at the top of the file that hold a mistake are unread. `needed`
        has a value for each key that must not be missing.
        """
        if not isinstance(self.data, dict):
            return None
        wrong = {one.place[0] for one in found if one.place}
        unread = {str(_top(one)) for one in found}
        try:
            rest = {key: value for key, value in self.data.items() if key not in wrong}
            model = TypeAdapter(kind).validate_python({**needed, **rest})
        except ValidationError:
            return None
        return cast(M, Readable(model, unread))


def _top(mistake: Mistake) -> str | int:
    """The key at the top of the file that holds the mistake, in its right spelling; empty if it is in none."""
    if mistake.unknown and len(mistake.place) == 1:
        return mistake.meant
    return next(iter((*mistake.place, mistake.missing)))


def _unknown_keys(found: Sequence[Mistake], above: int = 0) -> dict[DocumentPath, str]:
    """The known key (or nothing) that each unknown one stands for, by its place below `above` steps."""
    return {one.place[above:]: one.meant for one in found if one.unknown}


def _corrected(data: Any, unknown: Mapping[DocumentPath, str], place: DocumentPath = ()) -> Any:
    """The data without its unknown keys; one that is a known key with a mistake is that key."""
    if isinstance(data, list):
        return [_corrected(it, unknown, (*place, index)) for index, it in enumerate(data)]
    if not isinstance(data, dict):
        return data
    keys = {key: unknown.get((*place, key), key) for key in data}
    given = {right: key for key, right in keys.items() if right and (right == key or right not in data)}
    return {right: _corrected(data[key], unknown, (*place, key)) for right, key in given.items()}


def _renamed(place: DocumentPath, unknown: Mapping[DocumentPath, str]) -> DocumentPath:
    """The place in the corrected data."""
    return tuple(unknown.get(place[: index + 1]) or step for index, step in enumerate(place))


def load(path: Path) -> Document:
    """Read `path`. Errors: BadFileError for anything that is not one document of plain data."""
    return read(_text(path), path)


def read(text: str, path: Path) -> Document:
    """Read `text` as the content of `path`."""
    try:
        node = compose(text)
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        raise BadFileError(path, mark.line + 1 if mark else None, f"not valid YAML: {_problem(bad)}") from None
    except yaml.YAMLError as bad:
        raise BadFileError(path, None, f"not valid YAML: {str(bad).splitlines()[0]}") from None
    except RecursionError:
        raise BadFileError(path, None, "nested too deeply") from None
    if node is None:
        raise BadFileError(path, None, "the file is empty")
    return _document(node, path)


def _document(node: yaml.Node, path: Path) -> Document:
    reader = _LineReader(path)
    try:
        return Document(path, reader.value(node, ()), reader.lines)
    except RecursionError:
        raise BadFileError(path, None, "nested too deeply") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as bad:
        line = path.read_bytes()[: bad.start].count(b"\n") + 1
        raise BadFileError(path, line, "not UTF-8 text; expected YAML") from None
    except OSError as bad:
        said = {errno.ENOENT: "no such file", errno.EISDIR: "is a folder, expected a file"}
        raise BadFileError(path, None, said.get(bad.errno or 0, f"cannot be read: {bad.strerror}")) from None


def _problem(bad: yaml.MarkedYAMLError) -> str:
    said = " ".join(part for part in (bad.context, bad.problem) if part)
    if "'\\t'" in said:
        return "a tab where only spaces may indent"
    if "single document" in said:
        return "expected a single document, found a second one"
    return said


_SCALARS = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:null": lambda text: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:int": lambda text: int(text, 16 if "x" in text else 10),
    "tag:yaml.org,2002:float": lambda text: float(re.sub(r"\.(inf|nan)$", r"\1", text, flags=re.IGNORECASE)),
}
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class _LineReader:
    """Turns YAML nodes into plain data, and notes the line of each in `lines`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines: dict[DocumentPath, int] = {}
        self._open: list[yaml.Node] = []

    def value(self, node: yaml.Node, place: DocumentPath) -> Any:
        """The data of the node at `place`. Errors: BadFileError."""
        self.lines.setdefault(place, node.start_mark.line + 1)
        if len(self.lines) > MOST_VALUES or node in self._open:
            raise self._bad(node, "holds itself, or more values than any file needs")
        if node.tag not in (_SCALARS if isinstance(node, yaml.ScalarNode) else _COLLECTIONS):
            raise self._bad(node, f"the tag {node.tag} is not read, only plain data is")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._open.append(node)
        if isinstance(node, yaml.MappingNode):
            data: Any = self._mapping(node, place)
        else:
            data = [self.value(entry, (*place, index)) for index, entry in enumerate(node.value)]
        self._open.pop()
        return data

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        try:
            return _SCALARS[node.tag](node.value)  # type: ignore[operator]
        except ValueError:
            raise self._bad(node, f"{node.value!r} is not a {node.tag.rsplit(':', 1)[1]}") from None

    def _mapping(self, node: yaml.MappingNode, place: DocumentPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, entry in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._bad(key, "a key must be a plain word")
            if key.value == "<<":
                raise self._bad(key, "merge keys (`<<`) are not read: write the keys here")
            if key.value in data:
                first = self.lines[(*place, key.value)]
                raise self._bad(key, f"the key {key.value!r} stands here a second time (first in line {first})")
            self.lines[(*place, key.value)] = key.start_mark.line + 1
            data[key.value] = self.value(entry, (*place, key.value))
        return data

    def _bad(self, node: yaml.Node, message: str) -> BadFileError:
        return BadFileError(self._path, node.start_mark.line + 1, message)
