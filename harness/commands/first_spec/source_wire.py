"""Which wire format a project uses: by an SDK, by the path of an API, or by the variable of a key.

Nothing is run. Python and Node have SDKs; paths and variables are the same in every language.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

MARKS: Final[dict[str, re.Pattern[str]]] = {
    "anthropic": re.compile(
        r"^\s*(?:from|import)(?: .*,)? anthropic\b|@anthropic-ai/sdk|@ai-sdk/anthropic|/v1/messages", re.MULTILINE
    ),
    "gemini": re.compile(
        r"^\s*from google import genai|^\s*(?:from|import) google\.genai|@google/genai|@ai-sdk/google\b", re.MULTILINE
    ),
    "ollama": re.compile(
        r"^\s*(?:from|import)(?: .*,)? ollama\b|(?:from|require\() ?['\"]ollama['\"]|OLLAMA_HOST|\b11434\b"
        r"|(?:[^'\"`]|\+\s*['\"`])/api/chat",
        re.MULTILINE,
    ),
    "openai-realtime": re.compile(r"\.realtime\.connect\(|/v1/realtime|OpenAIRealtimeWS\b", re.MULTILINE),
    "openai-responses": re.compile(
        r"\.responses\.(?:create|stream|parse)\(|/v1/responses|@ai-sdk/openai\b|^\s*from agents import", re.MULTILINE
    ),
    "openai-chat": re.compile(r"\.chat\.completions\.|/chat/completions|ChatOpenAI|OpenAIChatModel", re.MULTILINE),
}
"""What a program has that uses a wire format: an SDK's import or call, or the path of the API."""
_PATHS: Final[Mapping[str, re.Pattern[str]]] = {
    "anthropic": re.compile(r"/v1/messages\b|\banthropic-version\b"),
    "gemini": re.compile(r":(?:stream)?[gG]enerateContent\b"),
    "ollama": re.compile(r"\b11434\b|['\"`]/api/chat\b"),
    "openai-realtime": re.compile(r"/v1/realtime\b"),
    "openai-responses": re.compile(r"/v1/responses\b|['\"`]/responses\b"),
    "openai-chat": re.compile(r"/chat/completions\b"),
}
"""The paths of the APIs."""
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
    found = Counter(wire for text in own for wire, mark in MARKS.items() if mark.search(text))
    return (found.most_common(1)[0][0] if found else "") or _shown([*own, *others]) or _shown(notes)


def _shown(texts: Iterable[str]) -> str:
    """The wire format that most of these texts show, by a path of its API or else by a variable; empty if none does."""
    read = list(texts)
    for marks in (_PATHS, _VARIABLES):
        found = Counter(wire for text in read for wire, mark in marks.items() if mark.search(text))
        if found:
            return found.most_common(1)[0][0]
    return ""
