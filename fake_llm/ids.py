"""Ids as a provider makes them up: unique, plausible, and the same in every run."""

from __future__ import annotations

import hashlib

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def made_up(*parts: object, length: int = 24) -> str:
    """Return `length` letters and digits that depend on nothing but `parts`.

    >>> made_up("message", 1) == made_up("message", 1) != made_up("message", 2)
    True
    """
    number = int.from_bytes(hashlib.sha512("/".join(map(str, parts)).encode()).digest(), "big")
    letters = []
    for _ in range(length):
        number, index = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return "".join(letters)


def fingerprint(key: str) -> str:
    """Return what may be recorded of an API key: the first 8 hex digits of its SHA-256, "" without a key."""
    return hashlib.sha256(key.encode()).hexdigest()[:8] if key else ""
