"""Ids as a provider makes them up: unique, plausible, and the same in every run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Final, TypeAlias

MadeUp: TypeAlias = tuple[tuple[object, ...], int, bool, str]
"""What an id was made of, how long it is, whether in small letters, and the id."""

_ALPHABET: Final = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_LETTERS: Final = bytes(_ALPHABET[byte % len(_ALPHABET)] for byte in range(256))
_SMALL: Final = _LETTERS.lower()
_HEARD: Final[ContextVar[list[MadeUp] | None]] = ContextVar("_HEARD", default=None)


def made_up(*parts: object, length: int = 24, small: bool = False) -> str:
    """Return up to 64 letters and digits that depend on nothing but `parts`; `small`: no capitals.

    >>> made_up("message", 1) == made_up("message", 1) != made_up("message", 2)
    True
    """
    digest = hashlib.sha512("/".join(map(str, parts)).encode(errors="surrogatepass")).digest()
    id_ = digest.translate(_SMALL if small else _LETTERS)[:length].decode()
    heard = _HEARD.get()
    if heard is not None:
        heard.append((parts, length, small, id_))
    return id_


@contextmanager
def overheard() -> Iterator[list[MadeUp]]:
    """Collect the ids that are made up meanwhile."""
    heard: list[MadeUp] = []
    token = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(token)


@lru_cache(maxsize=64)
def fingerprint(key: str) -> str:
    """Return what may be recorded of an API key: the first 8 hex digits of its SHA-256, "" without a key."""
    return hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()[:8] if key else ""
