"""The base of all events, and their JSON."""

import json
import re
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, ClassVar, Self, dataclass_transform

from pydantic import TypeAdapter, ValidationError

from wedgehog.harness.record.expectation import first_mistake, shown

KINDS: dict[str, type["Event"]] = {}


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, kw_only=True)
class Event:
    """The base of all events; makes each subclass a frozen dataclass."""

    kind: ClassVar[str] = "event"
    id: int = -1
    at_s: float = -1.0

    def __init_subclass__(cls) -> None:
        """Make the subclass a dataclass and register it under its tag."""
        dataclass(frozen=True, kw_only=True)(cls)
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        KINDS[cls.kind] = cls

    def placed(self, number: int, at_s: float) -> Self:
        """This event with its id and its time; `dataclasses.replace` takes five times as long."""
        placed = object.__new__(type(self))
        placed.__dict__.update(self.__dict__, id=number, at_s=at_s)
        return placed

    def as_json(self) -> dict[str, Any]:
        """This event as plain JSON data, tag first."""
        return {"event": self.kind, **asdict(self)}


@cache
def _adapter(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(KINDS[kind])


def from_json(data: dict[str, Any]) -> Event:
    """Read an event that `as_json` wrote. ValueError if the tag is unknown, or the fields do not fit it."""
    rest = dict(data)
    kind = str(rest.pop("event", ""))
    if kind not in KINDS:
        raise ValueError(f"unknown event {kind!r}")
    try:
        return _adapter(kind).validate_python(rest)
    except ValidationError as wrong:
        raise ValueError(f"event {kind}: {first_mistake(wrong)}") from None


_TAG = re.compile(rb'\{"event": "(\w+)"')


def from_line(line: bytes) -> Event:
    """Read one line of history.jsonl. ValueError as `from_json`, or if it is no JSON."""
    tag = _TAG.match(line)
    kind = tag[1].decode() if tag else ""
    if kind in KINDS:
        try:
            return _adapter(kind).validate_json(line)  # parses and checks in one pass, which takes half the time
        except ValidationError:
            pass  # it is wrong, or holds half a surrogate pair, which only `json` accepts
    return from_json(_object(line))


def _object(line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text; expected an event in JSON") from None
    except (ValueError, RecursionError):
        raise ValueError("not valid JSON; expected an event") from None
    if not isinstance(data, dict):
        raise ValueError(f"expected an event (a JSON object), found {shown(data)}")  # noqa: TRY004  a mistake in the file
    return data
