"""What was expected of a value, and what was found: the one wording of every message about a file's content."""

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from pydantic import ValidationError
from pydantic_core import ErrorDetails

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
    "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}",
    "string_too_short": "text of at least {min_length} characters",
}
_LIKE = {
    "^/": "a path that begins with /, such as /messages",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "the name of a variable, such as DATABASE_URL",
    r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}$": (
        "a name of at most 100 letters, digits and ._@+-, with a letter or digit first, such as my-agent@1.2"
    ),
    r"^[A-Za-z0-9._@+-]*$": "letters, digits and ._@+-, such as +retries",
    r"^[A-Za-z][A-Za-z0-9-]*$": "a name of letters, digits and hyphens, with a letter first, such as B",
    r"^[a-z][a-z0-9-]*$": "a name of small letters, digits and hyphens, with a letter first, such as title-maker",
    r"^[a-z0-9][a-z0-9-]*$": "a name of small letters, digits and hyphens, such as main-database",
    r"^[a-z0-9][a-z0-9-]{0,99}$": ("a name of at most 100 small letters, digits and hyphens, such as empty-reply-once"),
    r"^[a-z0-9-]+(\.[a-z0-9-]+)*$": "the name of a host in small letters, such as api.example.com",
}
"""The patterns of our file formats, in words."""


def first_mistake(bad: ValidationError) -> str:
    """The first mistake in data that a program wrote: `turn: expected a whole number, found 'two'`."""
    error = bad.errors(include_url=False)[0]
    place, key = dotted(error["loc"]), str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] in ("missing", "missing_argument"):
        return f"the key '{key}' is missing"
    if error["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"unknown key '{key}'"
    if error["type"] == "json_invalid":
        return "not valid JSON"
    said = mismatch([expected(error)], error["input"])
    return f"{place}: {said}" if place else said


def dotted(place: Sequence[str | int]) -> str:
    """A place in a file: `turns[0].user`."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def expected(error: ErrorDetails) -> str:
    """What one error of pydantic expected, in our words."""
    if error["type"] == "missing":  # in one branch of a union
        return f"a mapping with the key '{error['loc'][-1]}'"
    if error["type"] == "string_too_short" and error.get("ctx", {}).get("min_length") == 1:
        return "text, not nothing"
    if error["type"] == "string_pattern_mismatch":
        pattern = str(error.get("ctx", {}).get("pattern"))
        return _LIKE.get(pattern, f"text like {pattern}")
    words = _EXPECTED.get(error["type"])
    return words.format_map(error.get("ctx", {})) if words else error["msg"][:1].lower() + error["msg"][1:]


def mismatch(expected: Iterable[str], value: object, words: Iterable[object] = ()) -> str:
    """`expected true or false, found 'perhaps'`, with the nearest of the words that fit."""
    near = did_you_mean(value, [str(word) for word in words]) if isinstance(value, str) else ""
    return f"expected {' or '.join(dict.fromkeys(expected))}, found {shown(value)}{near}"


def shown(value: object) -> str:
    """A value in the words of a YAML file."""
    if isinstance(value, Mapping):
        keys = ", ".join(map(str, value))
        return f"a mapping with the key{'s' * (len(value) > 1)} {keys}" if 0 < len(keys) <= 40 else "a mapping"
    if isinstance(value, list):
        return "an empty list" if not value else "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    if isinstance(value, float) and not math.isfinite(value):
        return text.replace("inf", ".inf").replace("nan", ".nan")
    return text if len(text) <= 60 else text[:57] + "…'"


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is most like `word`; empty where none is near."""
    return next(iter(get_close_matches(word, list(known), n=1)), "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'turns'?)`, or nothing where no known word is near."""
    near = nearest(word, known)
    return f" (did you mean {near!r}?)" if near else ""
