"""Values by a key."""

from collections.abc import Callable, Iterable
from typing import TypeVar

GroupItem = TypeVar("GroupItem")
GroupKey = TypeVar("GroupKey")


def grouped(values: Iterable[GroupItem], key: Callable[[GroupItem], GroupKey]) -> dict[GroupKey, list[GroupItem]]:
    """The values of each key; keys and values in the order in which they first come."""
    found: dict[GroupKey, list[GroupItem]] = {}
    for value in values:
        found.setdefault(key(value), []).append(value)
    return found
