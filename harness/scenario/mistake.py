"""Lines for a user from pydantic's errors."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from wedgehog.harness.record.expectation import did_you_mean, dotted, expected, mismatch, nearest

DocumentPath = tuple[str | int, ...]
"""The keys and list positions that lead to a value from the top."""
Lines = Mapping[DocumentPath, int]
"""The line of each place in the file."""


class BadValueError(ValueError):
    """From a model's validator, with the key below it that is wrong: `BadValueError("no such fix", "fixed", 0)`."""

    def __init__(self, message: str, *place: str | int) -> None:
        """`place` is relative to the value that is being validated."""
        super().__init__(message)
        self.place: DocumentPath = place


class BadValuesError(ValueError):
    """From a model's validator that looks at several keys: everything that is wrong, with the key of each."""

    def __init__(self, found: Sequence[tuple[DocumentPath, str]]) -> None:
        """`found` are places, relative to the value that is being validated, and sentences."""
        super().__init__("; ".join(said for _, said in found))
        self.found = found


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong at a place of a file."""

    place: DocumentPath
    said: str
    """The sentence, without the file and the line."""
    missing: str = ""
    """The key that is missing below `place`, if that is the mistake."""
    unknown: bool = False
    """Whether `place` is a key that is not known."""
    meant: str = ""
    """The known key that an unknown one looks like."""


@dataclass(frozen=True, slots=True)
class _Located:
    place: DocumentPath
    error: ErrorDetails
    group: DocumentPath
    """Errors of one group are one mistake for a user: the branches of a union complain about the same value."""

    @property
    def unknown(self) -> bool:
        return self.error["type"] in ("extra_forbidden", "unexpected_keyword_argument")

    @property
    def missing(self) -> str:
        """The key that is missing, if that is the mistake."""
        return str(self.error["loc"][-1]) if self.error["type"] in ("missing", "missing_argument") else ""


def all_mistakes(bad: ValidationError, kind: Any, lines: Lines, at: DocumentPath) -> Sequence[Mistake]:
    """All mistakes, from the top of the file; a key is not missing where an unknown one looks like it."""
    groups: dict[DocumentPath, list[_Located]] = {}
    for error in bad.errors(include_url=False):
        one = _located(error, lines, at)
        groups.setdefault(one.group, []).append(one)
    found = [mistake for group in groups.values() for mistake in _first_of(group, kind, lines, at)]
    meant = {(*one.place[:-1], one.meant) for one in found if one.meant}
    found = [one for one in found if not one.missing or (*one.place, one.missing) not in meant]
    return sorted(found, key=lambda one: lines.get(one.place, 1))


def _located(error: ErrorDetails, lines: Lines, at: DocumentPath) -> _Located:
    """The error with its place in the file; pydantic's location also names the branches of a union."""
    place, group = at, None
    missing = error["type"] in ("missing", "missing_argument")
    for step in error["loc"][:-1] if missing else error["loc"]:
        if (*place, step) in lines:
            place = (*place, step)
        elif group is None:
            group = place
    if group is None:
        group = (*place, error["loc"][-1]) if missing else place
    return _Located(place, error, group)


def _first_of(group: Sequence[_Located], kind: Any, lines: Lines, at: DocumentPath) -> Sequence[Mistake]:
    """The first mistake of a group: the topmost, but one inside a value before one of that value."""
    deepest = [one for one in group if not any(_is_below(other.place, one.place) for other in group)]
    chosen = min(deepest, key=lambda one: lines.get(one.place, 1))
    if chosen.unknown:
        return [_unknown(chosen.place, _known_keys(kind, chosen.place[len(at) : -1]))]
    inner = chosen.error.get("ctx", {}).get("error")
    if isinstance(inner, BadValuesError):
        return [Mistake((*chosen.place, *place), said) for place, said in inner.found]
    place = (*chosen.place, *inner.place) if isinstance(inner, BadValueError) else chosen.place
    said = _sentence(chosen, [one.error for one in deepest if one.place == chosen.place])
    return [Mistake(place, said, missing=chosen.missing)]


def _is_below(inner: DocumentPath, outer: DocumentPath) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _sentence(mistake: _Located, same: Sequence[ErrorDetails]) -> str:
    error, name = mistake.error, dotted(mistake.place)
    if mistake.missing:
        inside = f" in '{name}'" if name else ""
        return f"the key '{mistake.missing}' is missing{inside}"
    if "error" in error.get("ctx", {}):
        return str(error["ctx"]["error"])
    words = re.findall(r"'([^']*)'", error["ctx"]["expected"]) if error["type"] in ("literal_error", "enum") else ()
    said = mismatch(map(expected, same), error["input"], words)
    return f"'{name}': {said}" if name else said


def _unknown(place: DocumentPath, known: Sequence[str]) -> Mistake:
    key = str(place[-1])
    meant = nearest(key, known)
    hint = f" (known: {', '.join(known)})" if 0 < len(known) <= 12 else ""
    return Mistake(place, f"unknown key '{key}'{did_you_mean(key, known) or hint}", unknown=True, meant=meant)


def _known_keys(kind: Any, place: DocumentPath) -> list[str]:
    """The keys that a model's type allows at `place`, over every branch of a union."""
    kinds = _branches(kind)
    for step in place:
        kinds = [branch for outer in kinds for inner in _entries(outer, step) for branch in _branches(inner)]
    return list(dict.fromkeys(key for model in kinds if _is_model(model) for key in _annotations(model)))


def _branches(kind: Any) -> list[Any]:
    """A union's members, an annotated type without its notes; any other type is its only branch."""
    if get_origin(kind) not in (Union, UnionType, Annotated):
        return [kind]
    members = get_args(kind)[:1] if get_origin(kind) is Annotated else get_args(kind)
    return [branch for member in members for branch in _branches(member)]


def _entries(kind: Any, step: str | int) -> Sequence[Any]:
    """The types of the value at `step` in a value of `kind`."""
    if _is_model(kind):
        return [annotation for key, annotation in _annotations(kind).items() if key == step]
    return get_args(kind)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _annotations(model: type[BaseModel]) -> dict[str, Any]:
    return {info.alias or name: info.annotation for name, info in model.model_fields.items()}
