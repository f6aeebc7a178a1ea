"""Which wire format a project uses: by an SDK, by the path of an API, or by the variable of a key.

Nothing is run. Python and Node have SDKs; paths and variables are the same in every language.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

_SDKS: Final[Mapping[str, str]] = {
    "anthropic": r"^\s*(?:from|import)(?: .*,)? anthropic\b|@anthropic-ai/sdk|@ai-sdk/anthropic",
    "gemini": r"^\s*from google import genai|^\s*(?:from|import) google\.genai|@google/genai|@ai-sdk/google\b",
    "ollama": r"^\s*(?:from|import)(?: .*,)? ollama\b|(?:from|require\() ?['\"]ollama['\"]|OLLAMA_HOST"
    r"|(?:[^'\"`]|\+\s*['\"`])/api/chat",
    "openai-realtime": r"\.realtime\.connect\(|OpenAIRealtimeWS\b",
    "openai-responses": r"\.responses\.(?:create|stream|parse)\(|@ai-sdk/openai\b(?!-)|@openai/agents\b"
    r"|^\s*from agents import",
    "openai-chat": r"\.chat\.completions\.|@ai-sdk/openai-compatible\b|ChatOpenAI|OpenAIChatModel",
}
"""What a client in Python or Node has: an SDK's import or call. A path that begins in quotes may be its own route."""
_PATHS: Final[Mapping[str, str]] = {
    "anthropic": r"/v1/messages",
    "ollama": r"\b11434\b",
    "openai-realtime": r"/v1/realtime",
    "openai-responses": r"/v1/responses",
    "openai-chat": r"/chat/completions",
}
"""What a client has in every language: the path or the port of an API."""
_ELSEWHERE: Final[Mapping[str, str]] = {
    "anthropic": r"\banthropic-version\b",
    "gemini": r":(?:stream)?[gG]enerateContent\b",
    "ollama": r"['\"`]/api/chat\b",
    "openai-responses": r"['\"`]/responses\b",
}
"""What shows an API where no SDK does: a path that may be a route of a service too, or a header."""


def _either(*tables: Mapping[str, str]) -> Mapping[str, re.Pattern[str]]:
    """One pattern for each wire format, for what any of these tables has."""
    return {
        wire: re.compile("|".join(table[wire] for table in tables if wire in table), re.MULTILINE) for wire in _SDKS
    }


_IN_CLIENTS: Final = _either(_SDKS, _PATHS)
_IN_TEXTS: Final = _either(_PATHS, _ELSEWHERE)
_VARIABLES: Final[Mapping[str, re.Pattern[str]]] = {
    "anthropic": re.compile(r"\bANTHROPIC_(?:API_KEY|BASE_URL|AUTH_TOKEN)\b"),
    "gemini": re.compile(r"\b(?:GEMINI|GOOGLE_GENAI)_API_KEY\b"),
    "ollama": re.compile(r"\bOLLAMA_HOST\b"),
    "openai-chat": re.compile(r"\bOPENAI_(?:API_KEY|BASE_URL|API_BASE)\b"),
}
"""The variables of the environment with a key or an address."""


def wire_of(sources: Iterable[str], others: Iterable[str], notes: Iterable[str]) -> str:
    """The wire format by the texts of Python and Node, else of other languages, else of settings and notes.

    Empty if none shows one.
    """
    own = [*sources]
    found = Counter(wire for text in own for wire, mark in _IN_CLIENTS.items() if mark.search(text))
    return (found.most_common(1)[0][0] if found else "") or _shown([*own, *others]) or _shown(notes)


def _shown(texts: Iterable[str]) -> str:
    """The wire format that most of these texts show, by a path of its API or else by a variable; empty if none does."""
    read = list(texts)
    for marks in (_IN_TEXTS, _VARIABLES):
        found = Counter(wire for text in read for wire, mark in marks.items() if mark.search(text))
        if found:
            return found.most_common(1)[0][0]
    return ""
