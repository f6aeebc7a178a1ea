"""Requests as bytes: in batches, broken in small ways, as JSON and as HTTP."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.asked import Asked, texts
from tests.fuzz.requests import DIALECTS

odd = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "id", "x"]), inner),
    max_leaves=4,
)


@dataclass(frozen=True)
class Batch:
    """Requests, replacements for their values, and a `seed` for how they are broken."""

    dialect: str
    asked: list[Asked]
    odd: list[Any]
    seed: int

    def requests(self, count: int) -> Iterator[bytes]:
        """The bytes of so many: most are well-formed HTTP around a document that is broken in up to two places."""
        random = Random(self.seed)
        for _ in range(count):
            yield wire_bytes(random.choice(self.asked), self.odd, random)


def batches(dialect: str) -> st.SearchStrategy[Batch]:
    """Requests of a dialect."""
    asked = st.lists(DIALECTS[dialect], min_size=1, max_size=6)
    return st.builds(Batch, st.just(dialect), asked, st.lists(odd, min_size=1, max_size=6), st.integers(0, 2**64 - 1))


def wire_bytes(asked: Asked, odd: list[Any], random: Random) -> bytes:
    """One request: its document may be broken, and then its body or its head."""
    document = asked.document
    for _ in range(random.choice([0, 0, 1, 1, 2])):
        place = random.choice(places(document))
        document = broken(document, place, random.choice(["gone", "twice", "wrapped", "other"]), random.choice(odd))
    body = json.dumps(document).encode()
    method = "POST" if random.random() < 0.9 else "GET"
    headers = dict(asked.headers)
    how = random.choice(["whole"] * 9 + ["cut", "noise", "gzip", "chunks", "no key", "old", "head"])
    if random.random() < 0.01:
        how = "deep"
    version = "1.1"
    if how == "cut":
        body = body[: random.randint(0, len(body))]
    elif how == "noise":
        body = noisy(body, random)
    elif how == "gzip":
        body, headers["Content-Encoding"] = random.choice([gzip.compress(body, 1), body]), "gzip"
    elif how == "no key":
        headers = {}
    elif how == "old":
        version = "1.0"
    elif how == "deep":
        body = b'{"messages":' + b"[" * 5000 + b"]" * 5000 + b"}"
    lines = {"Host": "x", **headers, "Content-Length": str(len(body))}
    if how == "chunks":
        del lines["Content-Length"]
        lines["Transfer-Encoding"] = "chunked"
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    head = f"{method} {asked.path} HTTP/{version}\r\n" + "".join(f"{n}: {v}\r\n" for n, v in lines.items()) + "\r\n"
    return (noisy(head.encode(), random) if how == "head" else head.encode()) + body


def noisy(data: bytes, random: Random) -> bytes:
    """With up to four bytes of anything somewhere."""
    at = random.randint(0, len(data))
    return data[:at] + random.randbytes(random.randint(0, 4)) + data[at:]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    found = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def broken(document: Any, place: tuple[Any, ...], how: str, value: Any) -> Any:
    """A copy with one place taken away, doubled, wrapped or replaced."""
    if not place:
        return value
    key, *rest = place
    document = document.copy()
    if rest:
        document[key] = broken(document[key], tuple(rest), how, value)
    elif how == "gone":
        del document[key]
    elif how == "twice" and isinstance(document, list):
        document.insert(key, document[key])
    elif how == "wrapped":
        document[key] = [document[key]]
    else:
        document[key] = value
    return document
