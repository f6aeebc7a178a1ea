"""Ids as a provider generates them: unique, plausible, and the same in every run."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

MadeUp: TypeAlias = tuple[tuple[object, ...], int, bool, str]
"""(parts, length, small letters?, the id) of a generated id."""

_ALPHABET: Final = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_LETTERS: Final = bytes(_ALPHABET[byte % len(_ALPHABET)] for byte in range(256))
_SMALL: Final = _LETTERS.lower()
_RECORDED: Final[ContextVar[list[MadeUp] | None]] = ContextVar("_RECORDED", default=None)


def made_up(*parts: object, length: int = 24, small: bool = False) -> str:
    """Return up to 64 letters and digits that depend only on `parts`; `small`: no capitals.

    >>> made_up("message", 1) == made_up("message", 1) != made_up("message", 2)
    True
    """
    digest = hashlib.sha512(_joined(*parts)).digest()
    id_ = digest.translate(_SMALL if small else _LETTERS)[:length].decode()
    recorded = _RECORDED.get()
    if recorded is not None:
        recorded.append((parts, length, small, id_))
    return id_


def for_other_calls(made: MadeUp) -> Callable[[int], bytes]:
    """Return a function that generates the id for another call; the call's number is the second part.

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
def recorded_ids() -> Iterator[list[MadeUp]]:
    """Collect the ids that are generated inside this context."""
    recorded: list[MadeUp] = []
    token = _RECORDED.set(recorded)
    try:
        yield recorded
    finally:
        _RECORDED.reset(token)
