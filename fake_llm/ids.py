"""Ids as a provider makes them up: unique, plausible, and the same in every run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
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
    digest = hashlib.sha512(_joined(*parts)).digest()
    id_ = digest.translate(_SMALL if small else _LETTERS)[:length].decode()
    heard = _HEARD.get()
    if heard is not None:
        heard.append((parts, length, small, id_))
    return id_


def for_other_calls(made: MadeUp) -> Callable[[int], bytes]:
    """Return what makes an id up for another call, whose number is the second of its parts.

    >>> made = (("tool", 7, 0), 24, False, made_up("tool", 7, 0))
    >>> for_other_calls(made)(8).decode() == made_up("tool", 8, 0)
    True
    """
    (first, _, *rest), length, small, _ = made
    begun, after = hashlib.sha512(_joined(first, "")), _joined("", *rest) if rest else b""
    letters = _SMALL if small else _LETTERS

    def make_up(call: int) -> bytes:
        whole = begun.copy()
        whole.update(b"%d%b" % (call, after))
        return whole.digest().translate(letters)[:length]

    return make_up


def _joined(*parts: object) -> bytes:
    return "/".join(map(str, parts)).encode(errors="surrogatepass")


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
