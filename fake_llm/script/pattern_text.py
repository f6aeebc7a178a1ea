"""A short text that fits a regular expression."""

import re
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final

_TRIED: Final = "a1A-_ "
_CATEGORIES: Final = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


def matching(pattern: str, least: int = 0) -> str | None:
    """A text of at least so many characters that fits; None if none is found.

    >>> matching(r"^[A-Z]{2}-\\d+$"), matching("^[a-z]+$", 3), matching("(")
    ('AA-1', 'aaa', None)
    """
    try:
        parsed = list(_parser.parse(pattern))
    except (re.error, OverflowError):
        return None
    found = (_sequence(parsed, more) for more in (0, least))
    return next((text for text in found if len(text) >= least and re.search(pattern, text)), None)


def _sequence(nodes: Any, more: int) -> str:
    return "".join(_text(str(node[0]), node[1], more) for node in nodes)


def _text(kind: str, value: Any, more: int) -> str:
    """The text of one part of an expression; a part that may repeat does so `more` times beyond its least."""
    if kind == "LITERAL":
        return chr(value)
    if kind in ("ANY", "NOT_LITERAL"):
        return "b" if value == ord("a") else "a"
    if kind == "IN":
        return _of_set(value)
    if kind.endswith("_REPEAT"):
        low, high, inner = value
        return _sequence(inner, 0) * min(int(high), int(low) + more)
    if kind == "BRANCH":
        return _sequence(value[1][0], more)
    return _sequence(value[-1], more) if kind == "SUBPATTERN" else ""


def _of_set(members: Any) -> str:
    negated = any(str(kind) == "NEGATE" for kind, _ in members)
    named = [member for member in members if str(member[0]) != "NEGATE"]
    own = [chr(value if str(kind) == "LITERAL" else value[0]) for kind, value in named if str(kind) != "CATEGORY"]
    return next((it for it in [*_TRIED, *own] if any(_has(one, it) for one in named) is not negated), "")


def _has(member: Any, char: str) -> bool:
    kind, value = str(member[0]), member[1]
    if kind == "LITERAL":
        return ord(char) == int(value)
    if kind == "RANGE":
        return int(value[0]) <= ord(char) <= int(value[1])
    name = str(value).removeprefix("CATEGORY_")
    fits = re.match(_CATEGORIES.get(name.removeprefix("NOT_"), r"\b"), char) is not None
    return fits is not name.startswith("NOT_")
