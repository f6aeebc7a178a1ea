"""From pydantic's errors to one line for a person."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from wedgehog.harness.scenario.document.errors import BadValueError, DocumentPath

Lines = Mapping[DocumentPath, int]
"""The line of each place that the file holds."""

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
    place: DocumentPath
    error: ErrorDetails

    @property
    def unknown(self) -> bool:
        return self.error["type"] in ("extra_forbidden", "unexpected_keyword_argument")


def first_mistake(bad: ValidationError, kind: Any, lines: Lines, at: DocumentPath) -> tuple[DocumentPath, str]:
    """The mistake to report first: the topmost, but one inside a value before one of that value.

    So an unknown key comes before the key that is missing for it, and the best branch of a union is reported.
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
    """The part of an error's location that the file holds: pydantic also names the branches of a union."""
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
    expected = list(dict.fromkeys(_expected(one) for one in same))
    said = f"expected {' or '.join(expected)}, found {_shown(error['input'])}"
    return (f"'{name}': {said}" if name else said) + _meant(error)


def _dotted(place: DocumentPath) -> str:
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


def _known_keys(kind: Any, place: DocumentPath) -> list[str]:
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
