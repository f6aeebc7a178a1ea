"""Immutable values that are cheap to create; a request creates over a dozen."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[_T]) -> type[_T]:
    """Make a slotted dataclass that is frozen only for the type checker.

    A dataclass frozen at run time sets each field by a call; that took a fifth of a request's time.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
