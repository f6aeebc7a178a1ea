"""An API key is never kept: a fingerprint stands for it, and `***` where a body quotes it."""

import hashlib
from functools import lru_cache
from typing import Final

SHORTEST_SECRET: Final = 16
"""A shorter key may be a word of the conversation, such as `test`."""


@lru_cache(maxsize=64)
def fingerprint(key: str) -> str:
    """Return the first 8 hex digits of an API key's SHA-256, "" without a key."""
    return hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()[:8] if key else ""


def without_key(body: bytes, key: str) -> bytes:
    """Return a request's body with `***` in the place of its API key, which an agent may quote."""
    return body.replace(key.encode(errors="surrogateescape"), b"***") if len(key) >= SHORTEST_SECRET else body
