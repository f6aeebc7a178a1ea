"""OpenAI's moderations: `POST /v1/moderations`. The fake model finds nothing to flag.

Source: OpenAI's API reference, "The moderation object", for `omni-moderation-latest`.
"""

from collections.abc import Iterator
from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Refusal
from wedgehog.fake_llm.dialects.openai_common import missing, unreadable
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.request import Request

PATH: Final = "/v1/moderations"
_MODEL: Final = "omni-moderation-latest"
_CATEGORIES: Final = (
    "harassment",
    "harassment/threatening",
    "hate",
    "hate/threatening",
    "illicit",
    "illicit/violent",
    "self-harm",
    "self-harm/instructions",
    "self-harm/intent",
    "sexual",
    "sexual/minors",
    "violence",
    "violence/graphic",
)
_SCORE: Final = 1e-6


def unmoderated(request: Request) -> Iterator[Refusal]:
    """Yield why a request cannot be answered."""
    yield from unreadable(request)
    if not (request.document or {}).get("input"):
        yield missing("input")


def moderations(request: Request) -> dict[str, Any]:
    """Return a result for each text; the parts of a message with images are one."""
    document = request.document or {}
    given = document["input"]
    texts = isinstance(given, list) and all(isinstance(text, str) for text in given)
    return {
        "id": f"modr-{made_up('moderation', request.call, length=29)}",
        "model": document.get("model") or _MODEL,
        "results": [_result() for _ in (given if texts else [given])],
    }


def _result() -> dict[str, Any]:
    return {
        "flagged": False,
        "categories": dict.fromkeys(_CATEGORIES, False),
        "category_scores": dict.fromkeys(_CATEGORIES, _SCORE),
        "category_applied_input_types": {category: ["text"] for category in _CATEGORIES},
    }
