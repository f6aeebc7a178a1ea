"""Finds a request's dialect by its path, and by its headers if several dialects share the path."""

import re
from functools import lru_cache
from typing import Final

from wedgehog.fake_llm.dialects.anthropic.wire import ANTHROPIC
from wedgehog.fake_llm.dialects.base import Dialect
from wedgehog.fake_llm.dialects.gemini.wire import GEMINI
from wedgehog.fake_llm.dialects.ollama.wire import OLLAMA
from wedgehog.fake_llm.dialects.openai_chat.wire import OPENAI_CHAT
from wedgehog.fake_llm.dialects.openai_responses.wire import OPENAI_RESPONSES
from wedgehog.fake_llm.request import Request

DIALECTS: Final[tuple[Dialect, ...]] = (ANTHROPIC, GEMINI, OLLAMA, OPENAI_CHAT, OPENAI_RESPONSES)
DEFAULT_SESSION: Final = "default"

_IN_SESSION: Final = re.compile(r"/s/([\w.-]{1,64})(/.*)", re.ASCII)


def dialect_of(request: Request) -> Dialect:
    """Return a request's dialect; the default is OpenAI chat."""
    claimants = _claimants(request.path)
    if len(claimants) == 1:
        return claimants[0]
    for dialect in claimants or DIALECTS:
        if any(mark in request.headers or mark in request.query for mark in dialect.MARKS):
            return dialect
    return OPENAI_CHAT


def session_of(path: str, key: str = "") -> tuple[str, str]:
    """Return a request's session and its path within that session.

    The prefix `/s/NAME` names the session; without it each `key` (a fingerprint) has its own session, and all
    requests without a key share one.

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
