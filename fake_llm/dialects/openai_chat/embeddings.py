"""OpenAI's `POST /v1/embeddings`, which agents with a memory ask for beside chat: each text has a vector of its own."""

from __future__ import annotations

import hashlib
import struct
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Refusal, Response
from wedgehog.fake_llm.dialects.openai_common import error, missing, unreadable
from wedgehog.fake_llm.request import Request, counted
from wedgehog.fake_llm.sse import encode
from wedgehog.fake_llm.usage import tokens_in

_DIMENSIONS: Final = 1536
_MOST_DIMENSIONS: Final = 3072


def embeddings(request: Request) -> Response:
    """Answer with a vector for each text."""
    refusal = next(_refusals(request), None)
    if refusal:
        return error(refusal, request)
    document = request.document or {}
    texts = _texts(document["input"])
    size = min(max(1, counted(document.get("dimensions")) or _DIMENSIONS), _MOST_DIMENSIONS)
    packed = document.get("encoding_format") == "base64"
    vectors = [
        {"object": "embedding", "index": index, "embedding": _told(text, size, packed)}
        for index, text in enumerate(texts)
    ]
    spent = max(1, sum(map(tokens_in, texts)))
    usage = {"prompt_tokens": spent, "total_tokens": spent}
    return Response(200, encode({"object": "list", "data": vectors, "model": document["model"], "usage": usage}))


def _refusals(request: Request) -> Iterator[Refusal]:
    yield from unreadable(request)
    for name in ("model", "input"):
        if not (request.document or {}).get(name):
            yield missing(name)


def _texts(given: Any) -> Sequence[str]:
    """Return the texts asked for: one, several, or the same as tokens."""
    if not isinstance(given, list) or all(isinstance(token, int) for token in given):
        return [str(given)]
    return [str(text) for text in given]


def _told(text: str, size: int, packed: bool) -> str | list[float]:
    data = hashlib.shake_128(text.encode("utf-8", errors="replace")).digest(size)
    vector = [(byte - 127.5) / (73.9 * size**0.5) for byte in data]
    return b64encode(struct.pack(f"<{size}f", *vector)).decode() if packed else vector
