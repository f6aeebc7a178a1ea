"""Types and ranges of fault parameters, checked with words a user understands.

A parameter's type is its annotation: `float`, `int`, `bool`, `str`, `Literal`, `None`, unions of them, and
`Annotated[..., Range(low, high)]`. Durations are annotated `Seconds`, which is how `Fault.scaled` finds them.
"""

import difflib
import math
from collections.abc import Iterable
from dataclasses import MISSING, Field, dataclass, fields
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints


class FaultError(ValueError):
    """A fault that a user wrote can't be understood; the message is one sentence that says what was expected."""


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive bounds of a number; no `high` means without end."""

    low: float
    high: float = math.inf

    def words(self) -> str:
        """The bounds as a user reads them."""
        return f"of at least {self.low:g}" if self.high == math.inf else f"from {self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class Duration(Range):
    """Bounds of seconds that belong to the story's time and are therefore divided by its time scale."""


Seconds = Annotated[float, Duration(0)]
Positive = Annotated[float, Duration(1e-9)]
Forever = Literal["forever"]


class Default(Enum):
    """Stands where a parameter has no default."""

    REQUIRED = "required"

    @classmethod
    def of(cls, item: "Field[Any]") -> object:
        """The default of a dataclass field, or REQUIRED."""
        return cls.REQUIRED if item.default is MISSING else item.default


def hints(cls: type) -> dict[str, Any]:
    """The parameters of a fault class with their annotations, in order."""
    found = get_type_hints(cls, include_extras=True)
    return {item.name: found[item.name] for item in fields(cls)}


def check(owner: str, parameter: str, hint: object, value: object) -> None:
    """Raise FaultError unless `value` fits `hint`."""
    options = _options(hint)
    if any(_fits(option, value) for option in options):
        return
    words = [choice for option in options if get_origin(option) is Literal for choice in get_args(option)]
    guess = closest(value, words) if isinstance(value, str) else ""
    expected = " or ".join(_words(option) for option in options)
    raise FaultError(f"{owner}: {parameter} must be {expected}, not {value!r}{guess}")


def is_duration(hint: object) -> bool:
    """Whether a parameter holds seconds of the story's time."""
    return any(isinstance(bounds_of(option), Duration) for option in _options(hint))


def bounds(hint: object) -> Range:
    """The bounds of a parameter that is a number."""
    return next(filter(None, map(bounds_of, _options(hint))), Range(1))


def shorten(value: object, factor: float) -> object:
    """Seconds divided by a time scale; words such as `forever` stay."""
    return value / factor if isinstance(value, int | float) else value


def closest(word: str, among: Iterable[str]) -> str:
    """`(did you mean …?)` with a space before it, or nothing."""
    found = difflib.get_close_matches(word, list(among), n=1, cutoff=0.6)
    return f" (did you mean {found[0]}?)" if found else ""


def _options(hint: object) -> list[object]:
    if get_origin(hint) in (Union, UnionType):
        return [option for member in get_args(hint) for option in _options(member)]
    return [hint]


def bounds_of(hint: object) -> Range | None:
    """The bounds of one option of a parameter, if it has any."""
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, Range)), None)


def _bare(hint: object) -> object:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _fits(hint: object, value: object) -> bool:
    bare, bounds = _bare(hint), bounds_of(hint)
    if get_origin(bare) is Literal:
        return value in get_args(bare) and not isinstance(value, bool)
    if bare in (int, float):
        number = isinstance(value, int | float if bare is float else int) and not isinstance(value, bool)
        low, high = (bounds.low, bounds.high) if bounds else (-math.inf, math.inf)
        return number and math.isfinite(cast(float, value)) and low <= cast(float, value) <= high
    return isinstance(value, cast(type, bare))


def _words(hint: object) -> str:
    bare, bounds = _bare(hint), bounds_of(hint)
    if get_origin(bare) is Literal:
        return " or ".join(str(choice) for choice in get_args(bare))
    if bare in (int, float):
        noun = "seconds" if isinstance(bounds, Duration) else "a whole number" if bare is int else "a number"
        return f"{noun} {bounds.words()}" if bounds else noun
    return {bool: "true or false", str: "text", NoneType: "nothing"}.get(cast(type, bare), str(bare))
