"""Finds the dialect that a request is written in: by its path, and where several share it by its headers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from wedgehog.fake_llm.dialects.anthropic import wire as anthropic
from wedgehog.fake_llm.dialects.base import Dialect
from wedgehog.fake_llm.dialects.gemini import wire as gemini
from wedgehog.fake_llm.dialects.ollama import wire as ollama
from wedgehog.fake_llm.dialects.openai_chat import wire as openai_chat
from wedgehog.fake_llm.dialects.openai_responses import wire as openai_responses
from wedgehog.fake_llm.request import Request

DIALECTS: Final[tuple[Dialect, ...]] = (anthropic, gemini, ollama, openai_chat, openai_responses)
DEFAULT_SESSION: Final = "default"

_IN_SESSION: Final = re.compile(r"/s/([\w.-]{1,64})(/.*)", re.ASCII)


def dialect_of(request: Request) -> Dialect:
    """Find the dialect of a request, whatever it asks for; where nothing tells, OpenAI's."""
    claimants = _claimants(request.path)
    if len(claimants) == 1:
        return claimants[0]
    for dialect in claimants or DIALECTS:
        if any(mark in request.headers or mark in request.query for mark in dialect.MARKS):
            return dialect
    return openai_chat


def session_of(path: str, key: str = "") -> tuple[str, str]:
    """Return the name of the session that a request belongs to, and its path within it.

    A prefix names it, `/s/NAME/v1/…`; without one every `key` (its fingerprint) has a session of its own, and all that
    come without a key share one.

    >>> session_of("/s/red/v1/messages", "1a2b3c4d"), session_of("/v1/messages", "1a2b3c4d"), session_of("/api/chat")
    (('red', '/v1/messages'), ('key-1a2b3c4d', '/v1/messages'), ('default', '/api/chat'))
    """
    named = _IN_SESSION.fullmatch(path) if path.startswith("/s/") else None
    if named:
        return named[1], named[2]
    return f"key-{key}" if key else DEFAULT_SESSION, path


@lru_cache(maxsize=1024)
def _claimants(path: str) -> tuple[Dialect, ...]:
    return tuple(dialect for dialect in DIALECTS if dialect.PATHS.fullmatch(path))
