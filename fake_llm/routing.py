"""Finds the dialect that a request is written in: by its path, and where several share it by its headers."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from wedgehog.fake_llm.dialects import anthropic, gemini, ollama, openai_chat, openai_responses
from wedgehog.fake_llm.dialects.base import Dialect
from wedgehog.fake_llm.request import Request

DIALECTS: Final[tuple[Dialect, ...]] = (anthropic, gemini, ollama, openai_chat, openai_responses)


def dialect_of(request: Request) -> Dialect:
    """Find the dialect of a request, whatever it asks for; where nothing tells, OpenAI's."""
    claimants = _claimants(request.path)
    if len(claimants) == 1:
        return claimants[0]
    for dialect in claimants or DIALECTS:
        if any(mark in request.headers or mark in request.query for mark in dialect.MARKS):
            return dialect
    return openai_chat


def asks_for_reply(request: Request, dialect: Dialect) -> bool:
    """Tell if a request is one for a model's reply; where one says nothing to Ollama, it loads the model alone."""
    asked = request.method == "POST" and dialect.REPLIES.fullmatch(request.path) is not None
    return asked and not (dialect is ollama and ollama.only_loads(request))


@lru_cache(maxsize=1024)
def _claimants(path: str) -> tuple[Dialect, ...]:
    return tuple(dialect for dialect in DIALECTS if dialect.PATHS.fullmatch(path))
