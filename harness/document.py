"""Files that people write: YAML that keeps its line numbers, so that every mistake is one line they can act on.

    scenario = load(Path("stall.yaml")).into(Scenario)
    # or BadFile: stall.yaml:12: unknown key 'turms' (did you mean 'turns'?)

Only plain data is read: no tag is ever executed, keys are always text (`on:` is the key "on"), and of the unquoted
words only true, false and null are not text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

T = TypeVar("T")
Place = tuple[str | int, ...]
"""Where a value stands: the keys and list positions that lead to it from the top."""

MOST_VALUES = 100_000
"""More than any file a person writes; a file of nested aliases can stand for billions."""


class BadFile(Exception):  # noqa: N818  it names what is bad, for the person who wrote it
    """A mistake in a file, in one line: `file.yaml:12: what was expected`."""

    def __init__(self, path: Path, line: int | None, message: str) -> None:
        """`line` counts from 1; None where the mistake is the file itself."""
        super().__init__(path, line, message)
        self.path, self.line, self.message = path, line, message

    def __str__(self) -> str:
        """The one line that is shown."""
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


class BadValue(ValueError):  # noqa: N818  like BadFile
    """Raised by a model's own validator to say which key below it is wrong: `BadValue("no such fix", "fixed", 0)`."""

    def __init__(self, message: str, *place: str | int) -> None:
        """`place` is relative to the value that is being validated."""
        super().__init__(message)
        self.place: Place = place


@dataclass(frozen=True, slots=True)
class Document:
    """One file's data, and the line of each key and list entry."""

    path: Path
    data: Any
    lines: Mapping[Place, int] = field(repr=False)

    def line(self, place: Sequence[str | int]) -> int:
        """The line of `place`, or of the nearest thing above it that the file really holds."""
        steps = tuple(place)
        while steps and steps not in self.lines:
            steps = steps[:-1]
        return self.lines.get(steps, 1)

    def error(self, place: Sequence[str | int], message: str) -> BadFile:
        """A BadFile at the line of `place`."""
        return BadFile(self.path, self.line(place), message)

    def into(self, kind: type[T], *, at: Sequence[str | int] = ()) -> T:
        """The data (or the part of it at `at`) as `kind`, a pydantic model or any type pydantic can check."""
        part = self.data
        for step in at:
            part = part[step]
        try:
            return TypeAdapter(kind).validate_python(part)
        except ValidationError as bad:
            place, message = _first(bad, kind, self, tuple(at))
            raise self.error(place, message) from None


def load(path: Path) -> Document:
    """Read `path`. Errors: BadFile for anything that is not one document of plain data."""
    return read(_text(path), path)


def read(text: str, path: Path) -> Document:
    """Read `text` as the content of `path`."""
    try:
        node = yaml.compose(text, Loader=_PlainLoader)
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        raise BadFile(path, mark.line + 1 if mark else None, f"not valid YAML: {_problem(bad)}") from None
    except yaml.YAMLError as bad:
        raise BadFile(path, None, f"not valid YAML: {str(bad).splitlines()[0]}") from None
    except RecursionError:
        raise BadFile(path, None, "nested too deeply") from None
    if node is None:
        raise BadFile(path, None, "the file is empty")
    reader = _Reader(path)
    return Document(path, reader.value(node, ()), reader.lines)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise BadFile(path, None, "no such file") from None
    except IsADirectoryError:
        raise BadFile(path, None, "is a folder, expected a file") from None
    except UnicodeDecodeError as bad:
        line = path.read_bytes()[: bad.start].count(b"\n") + 1
        raise BadFile(path, line, "not UTF-8 text") from None
    except OSError as bad:
        raise BadFile(path, None, f"cannot be read: {bad.strerror}") from None


def _problem(bad: yaml.MarkedYAMLError) -> str:
    said = " ".join(part for part in (bad.context, bad.problem) if part)
    if "'\\t'" in said:
        return "a tab where only spaces may indent"
    if "single document" in said:
        return "expected a single document, found a second one"
    return said


class _PlainLoader(yaml.SafeLoader):
    """YAML 1.2's few unquoted words that are not text: no `on`, no dates, no base 60, no octal by a leading zero."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  PyYAML's own shape


_NUMBER_STARTS = list("-+0123456789")
_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_PlainLoader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(~|null|Null|NULL|)$"), ["~", "n", "N", ""])
_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$|^0x[0-9a-fA-F]+$"), _NUMBER_STARTS
)
_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$"),
    [*_NUMBER_STARTS, "."],
)

_SCALARS = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:null": lambda text: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:int": lambda text: int(text, 16 if "x" in text else 10),
    "tag:yaml.org,2002:float": lambda text: float(re.sub(r"\.(inf|nan)$", r"\1", text, flags=re.IGNORECASE)),
}


class _Reader:
    """Turns YAML nodes into plain data, and notes on the way where each of them stood."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Place, int] = {}
        self.open: list[yaml.Node] = []

    def value(self, node: yaml.Node, place: Place) -> Any:
        self.lines.setdefault(place, node.start_mark.line + 1)
        if len(self.lines) > MOST_VALUES or node in self.open:
            raise self.bad(node, "holds itself, or more values than any file needs")
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        if node.tag not in ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            raise self.bad(node, f"the tag {node.tag} is not read, only plain data is")
        self.open.append(node)
        data = self.mapping(node, place) if isinstance(node, yaml.MappingNode) else self.sequence(node, place)
        self.open.pop()
        return data

    def scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag not in _SCALARS:
            raise self.bad(node, f"the tag {node.tag} is not read, only plain data is")
        try:
            return _SCALARS[node.tag](node.value)  # type: ignore[operator]
        except ValueError:
            raise self.bad(node, f"{node.value!r} is not a {node.tag.rsplit(':', 1)[1]}") from None

    def sequence(self, node: yaml.Node, place: Place) -> list[Any]:
        return [self.value(entry, (*place, index)) for index, entry in enumerate(node.value)]

    def mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, entry in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self.bad(key, "a key must be a plain word")
            if key.value in data:
                first = self.lines[(*place, key.value)]
                raise self.bad(key, f"the key {key.value!r} stands here a second time (first in line {first})")
            self.lines[(*place, key.value)] = key.start_mark.line + 1
            data[key.value] = self.value(entry, (*place, key.value))
        return data

    def bad(self, node: yaml.Node, message: str) -> BadFile:
        return BadFile(self.path, node.start_mark.line + 1, message)


# From pydantic's errors to one line for a person.

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping (key: value)",
    "mapping_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "model_attributes_type": "a mapping (key: value)",
    "dataclass_type": "a mapping (key: value)",
    "none_required": "nothing",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number of at least {ge:g}",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "a number of at most {le:g}",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "too_short": "at least {min_length}",
    "too_long": "at most {max_length}",
    "string_too_short": "text, not nothing",
    "string_pattern_mismatch": "text like {pattern}",
}


@dataclass(frozen=True, slots=True)
class _Mistake:
    place: Place
    error: ErrorDetails

    @property
    def unknown(self) -> bool:
        return self.error["type"] in ("extra_forbidden", "unexpected_keyword_argument")


def _first(bad: ValidationError, kind: Any, document: Document, at: Place) -> tuple[Place, str]:
    """The mistake to tell first: the topmost, but one inside a value before one of that value.

    So an unknown key comes before the key that is missing for it, and a union's branch that fits best is heard.
    """
    mistakes = [_Mistake(_real(error["loc"], document, at), error) for error in bad.errors(include_url=False)]
    deepest = [one for one in mistakes if not any(_is_below(other.place, one.place) for other in mistakes)]
    chosen = min(deepest, key=lambda one: document.line(one.place))
    if chosen.unknown:
        return chosen.place, _unknown(str(chosen.place[-1]), _known_keys(kind, chosen.place[len(at) : -1]))
    inner = chosen.error.get("ctx", {}).get("error")
    place = (*chosen.place, *inner.place) if isinstance(inner, BadValue) else chosen.place
    return place, _sentence(chosen, [one.error for one in deepest if one.place == chosen.place])


def _is_below(inner: Place, outer: Place) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _real(loc: Sequence[str | int], document: Document, at: Place) -> Place:
    """The part of an error's location that the file holds: pydantic also names the branches of a union."""
    place = at
    for step in loc:
        if (*place, step) in document.lines:
            place = (*place, step)
    return place


def _sentence(mistake: _Mistake, same: Sequence[ErrorDetails]) -> str:
    error, name = mistake.error, _dotted(mistake.place)
    if error["type"] in ("missing", "missing_argument"):
        inside = f" in '{name}'" if name else ""
        return f"the key '{error['loc'][-1]}' is missing{inside}"
    if "error" in error.get("ctx", {}):
        return str(error["ctx"]["error"])
    expected = list(dict.fromkeys(_expected(one) for one in same))
    said = f"expected {' or '.join(expected)}, found {_shown(error['input'])}"
    return (f"'{name}': {said}" if name else said) + _meant(error)


def _dotted(place: Place) -> str:
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _expected(error: ErrorDetails) -> str:
    words = _EXPECTED.get(error["type"])
    return words.format_map(error.get("ctx", {})) if words else error["msg"][:1].lower() + error["msg"][1:]


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "an empty list" if not value else "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…'"


def _meant(error: ErrorDetails) -> str:
    if error["type"] not in ("literal_error", "enum") or not isinstance(error["input"], str):
        return ""
    return _did_you_mean(error["input"], re.findall(r"'([^']*)'", error["ctx"]["expected"]))


def _unknown(key: str, known: Sequence[str]) -> str:
    hint = _did_you_mean(key, known)
    if not hint and 0 < len(known) <= 12:
        hint = f" (known: {', '.join(known)})"
    return f"unknown key '{key}'{hint}"


def _did_you_mean(word: str, known: Sequence[str]) -> str:
    """` (did you mean 'turns'?)`, or nothing where no known word is near."""
    near = get_close_matches(word, known, n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""


def _known_keys(kind: Any, place: Place) -> list[str]:
    """The keys that a model's type allows at `place`, over every branch of a union."""
    kinds = _branches(kind)
    for step in place:
        kinds = [branch for outer in kinds for inner in _entries(outer, step) for branch in _branches(inner)]
    return list(dict.fromkeys(key for model in kinds if _is_model(model) for key in _annotations(model)))


def _branches(kind: Any) -> list[Any]:
    """A union's members, and what is annotated without its notes; any other type is its only branch."""
    if get_origin(kind) not in (Union, UnionType, Annotated):
        return [kind]
    members = get_args(kind)[:1] if get_origin(kind) is Annotated else get_args(kind)
    return [branch for member in members for branch in _branches(member)]


def _entries(kind: Any, step: str | int) -> Sequence[Any]:
    """The types of what stands at `step` in a value of `kind`."""
    if _is_model(kind):
        return [annotation for key, annotation in _annotations(kind).items() if key == step]
    return get_args(kind)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _annotations(model: type[BaseModel]) -> dict[str, Any]:
    return {info.alias or name: info.annotation for name, info in model.model_fields.items()}
