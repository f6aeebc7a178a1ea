"""Lines for a user from pydantic's errors."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from wedgehog.harness.record.expectation import did_you_mean, dotted, expected, mismatch

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
class _Mistake:
    place: DocumentPath
    error: ErrorDetails
    group: DocumentPath
    """Mistakes of one group are one for a user: the branches of a union complain about the same value."""

    @property
    def unknown(self) -> bool:
        return self.error["type"] in ("extra_forbidden", "unexpected_keyword_argument")

    @property
    def missing(self) -> str:
        """The key that is missing, if that is the mistake."""
        return str(self.error["loc"][-1]) if self.error["type"] in ("missing", "missing_argument") else ""


def all_mistakes(bad: ValidationError, kind: Any, lines: Lines, at: DocumentPath) -> Sequence[tuple[DocumentPath, str]]:
    """Where each mistake is, and its sentence, from the top of the file."""
    groups: dict[DocumentPath, list[_Mistake]] = {}
    for error in bad.errors(include_url=False):
        one = _located(error, lines, at)
        groups.setdefault(one.group, []).append(one)
    found = [line for group in groups.values() for line in _first_of(group, kind, lines, at)]
    unknown = [(place[:-1], said) for place, said in found if is_unknown_key(said)]
    found = [
        (place, said) for place, said in found if not any(_is_explained(said, it) for at, it in unknown if at == place)
    ]
    return sorted(found, key=lambda line: lines.get(line[0], 1))


def is_unknown_key(said: str) -> bool:
    """Whether a mistake's sentence is that of an unknown key."""
    return said.startswith(_UNKNOWN)


def meant(said: str) -> str:
    """The known key that the sentence of an unknown one proposes; empty without one."""
    return said.partition("did you mean '")[2].partition("'")[0]


def _is_explained(said: str, unknown: str) -> bool:
    """Whether a key is missing only because the user wrote it with a mistake."""
    key = said.removeprefix(_MISSING).split("'")[0] if said.startswith(_MISSING) else ""
    return bool(key) and f"did you mean '{key}'" in unknown


def _located(error: ErrorDetails, lines: Lines, at: DocumentPath) -> _Mistake:
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
    return _Mistake(place, error, group)


def _first_of(
    group: Sequence[_Mistake], kind: Any, lines: Lines, at: DocumentPath
) -> Sequence[tuple[DocumentPath, str]]:
    """The first mistake of a group: the topmost, but one inside a value before one of that value."""
    deepest = [one for one in group if not any(_is_below(other.place, one.place) for other in group)]
    chosen = min(deepest, key=lambda one: lines.get(one.place, 1))
    if chosen.unknown:
        return [(chosen.place, _unknown(str(chosen.place[-1]), _known_keys(kind, chosen.place[len(at) : -1])))]
    inner = chosen.error.get("ctx", {}).get("error")
    if isinstance(inner, BadValuesError):
        return [((*chosen.place, *place), said) for place, said in inner.found]
    place = (*chosen.place, *inner.place) if isinstance(inner, BadValueError) else chosen.place
    return [(place, _sentence(chosen, [one.error for one in deepest if one.place == chosen.place]))]


def _is_below(inner: DocumentPath, outer: DocumentPath) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


_MISSING, _UNKNOWN = "the key '", "unknown key '"


def _sentence(mistake: _Mistake, same: Sequence[ErrorDetails]) -> str:
    error, name = mistake.error, dotted(mistake.place)
    if mistake.missing:
        inside = f" in '{name}'" if name else ""
        return f"{_MISSING}{mistake.missing}' is missing{inside}"
    if "error" in error.get("ctx", {}):
        return str(error["ctx"]["error"])
    words = re.findall(r"'([^']*)'", error["ctx"]["expected"]) if error["type"] in ("literal_error", "enum") else ()
    said = mismatch(map(expected, same), error["input"], words)
    return f"'{name}': {said}" if name else said


def _unknown(key: str, known: Sequence[str]) -> str:
    hint = did_you_mean(key, known)
    if not hint and 0 < len(known) <= 12:
        hint = f" (known: {', '.join(known)})"
    return f"{_UNKNOWN}{key}'{hint}"


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
