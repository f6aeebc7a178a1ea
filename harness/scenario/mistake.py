"""One line for a user from pydantic's errors."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from wedgehog.harness.faults.parameters import did_you_mean, mismatch

DocumentPath = tuple[str | int, ...]
"""The keys and list positions that lead to a value from the top."""
Lines = Mapping[DocumentPath, int]
"""The line of each place in the file."""

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


class BadValueError(ValueError):
    """From a model's validator, with the key below it that is wrong: `BadValueError("no such fix", "fixed", 0)`."""

    def __init__(self, message: str, *place: str | int) -> None:
        """`place` is relative to the value that is being validated."""
        super().__init__(message)
        self.place: DocumentPath = place


@dataclass(frozen=True, slots=True)
class _Mistake:
    place: DocumentPath
    error: ErrorDetails

    @property
    def unknown(self) -> bool:
        return self.error["type"] in ("extra_forbidden", "unexpected_keyword_argument")


def first_mistake(bad: ValidationError, kind: Any, lines: Lines, at: DocumentPath) -> tuple[DocumentPath, str]:
    """Where the first mistake is, and its sentence: the topmost, but one inside a value before one of that value.

    So an unknown key comes before the key that is missing because of it, and of a union the branch that fits best.
    """
    mistakes = [_Mistake(_real(error["loc"], lines, at), error) for error in bad.errors(include_url=False)]
    deepest = [one for one in mistakes if not any(_is_below(other.place, one.place) for other in mistakes)]
    chosen = min(deepest, key=lambda one: lines.get(one.place, 1))
    if chosen.unknown:
        return chosen.place, _unknown(str(chosen.place[-1]), _known_keys(kind, chosen.place[len(at) : -1]))
    inner = chosen.error.get("ctx", {}).get("error")
    place = (*chosen.place, *inner.place) if isinstance(inner, BadValueError) else chosen.place
    return place, _sentence(chosen, [one.error for one in deepest if one.place == chosen.place])


def _is_below(inner: DocumentPath, outer: DocumentPath) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _real(loc: Sequence[str | int], lines: Lines, at: DocumentPath) -> DocumentPath:
    """The part of an error's location that is in the file: pydantic also names the branches of a union."""
    place = at
    for step in loc:
        if (*place, step) in lines:
            place = (*place, step)
    return place


def _sentence(mistake: _Mistake, same: Sequence[ErrorDetails]) -> str:
    error, name = mistake.error, _dotted(mistake.place)
    if error["type"] in ("missing", "missing_argument"):
        inside = f" in '{name}'" if name else ""
        return f"the key '{error['loc'][-1]}' is missing{inside}"
    if "error" in error.get("ctx", {}):
        return str(error["ctx"]["error"])
    words = re.findall(r"'([^']*)'", error["ctx"]["expected"]) if error["type"] in ("literal_error", "enum") else ()
    said = mismatch(map(_expected, same), error["input"], words)
    return f"'{name}': {said}" if name else said


def _dotted(place: DocumentPath) -> str:
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _expected(error: ErrorDetails) -> str:
    words = _EXPECTED.get(error["type"])
    return words.format_map(error.get("ctx", {})) if words else error["msg"][:1].lower() + error["msg"][1:]


def _unknown(key: str, known: Sequence[str]) -> str:
    hint = did_you_mean(key, known)
    if not hint and 0 < len(known) <= 12:
        hint = f" (known: {', '.join(known)})"
    return f"unknown key '{key}'{hint}"


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
