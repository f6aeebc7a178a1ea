"""A file's data of which some keys hold mistakes: what can be read of it is still checked as a whole.

    spec = Readable(keys, {"abort"})      # `abort` holds a mistake of its own
    spec.command                          # as in `keys`
    spec.abort                            # UnreadError: a check that needs it finds nothing more

So one look at the file names the mistakes of single values and those between keys.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)
F = TypeVar("F")


class UnreadError(Exception):
    """A check needs a key that holds a mistake."""


class Readable:
    """Stands for a model whose keys `unread` hold mistakes; the model itself has their defaults."""

    def __init__(self, model: BaseModel, unread: Collection[str]) -> None:
        """`unread` are names of keys at the top of the file."""
        self._model, self._unread = model, frozenset(unread)

    @property
    def model_fields_set(self) -> set[str]:
        """The keys that the file gives, also those that hold mistakes."""
        return self._model.model_fields_set | self._unread

    def __getattr__(self, name: str) -> Any:
        if name in self._unread:
            raise UnreadError(name)
        return getattr(self._model, name)


def is_given(model: BaseModel, key: str) -> bool:
    """Whether the file gives a value for this key, also one that holds a mistake."""
    try:
        return getattr(model, key) is not None
    except UnreadError:
        return True


def found_in(model: M, checks: Iterable[Callable[[M], Iterable[F]]]) -> Iterator[F]:
    """All that the checks find; one that needs a key with a mistake ends there."""
    for check in checks:
        try:
            yield from check(model)
        except UnreadError:
            continue
