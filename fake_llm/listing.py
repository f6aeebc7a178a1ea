"""What a provider answers beside replies: its list of models, and the token count of a request. Both cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from wedgehog.fake_llm.dialects import anthropic, openai_chat
from wedgehog.fake_llm.dialects.base import Dialect, Refusal, Response
from wedgehog.fake_llm.request import Request
from wedgehog.fake_llm.sse import encode
from wedgehog.fake_llm.usage import input_tokens

_MODELS: Final = "/v1/models"
_COUNT: Final = f"{anthropic.PATH}/count_tokens"
_SINCE: Final = "2025-01-01T00:00:00Z"
_SINCE_S: Final = 1735689600
_OK: Final = 200
_STOCK: Final = {anthropic.WIRE: ("claude-sonnet-4-6",), openai_chat.WIRE: ("gpt-5",)}


def side_answer(request: Request, dialect: Dialect, models: Sequence[str] | None, request_id: str) -> Response | None:
    """Answer a request that is none for a reply, or return None where the path is unknown."""
    if request.path == _COUNT and request.method == "POST":
        return _count(request, models, request_id)
    if request.path.partition(_MODELS)[0] or request.method not in {"GET", "HEAD"}:
        return None
    if not request.key:
        return dialect.error(Refusal(401), request_id)
    if request.path.rstrip("/") == _MODELS:
        return Response(_OK, _list(dialect, models or _STOCK[dialect.WIRE]))
    name = request.path.removeprefix(f"{_MODELS}/")
    if name == request.path or (models is not None and name not in models):
        return None
    return Response(_OK, encode(_model(dialect, name)))


def _count(request: Request, models: Sequence[str] | None, request_id: str) -> Response:
    document = request.document
    counted = None if document is None else {"max_tokens": 1} | document
    asked = Request(request.call, request.method, request.path, request.headers, request.body, counted)
    refusal = anthropic.refuse(asked, models)
    if refusal or document is None:
        return anthropic.error(refusal or Refusal(400), request_id)
    return Response(_OK, encode({"input_tokens": input_tokens(anthropic.parse(document))}))


def _list(dialect: Dialect, models: Sequence[str]) -> bytes:
    data = [_model(dialect, name) for name in models]
    if dialect.WIRE == anthropic.WIRE:
        return encode({"data": data, "has_more": False, "first_id": models[0], "last_id": models[-1]})
    return encode({"object": "list", "data": data})


def _model(dialect: Dialect, name: str) -> dict[str, Any]:
    if dialect.WIRE == anthropic.WIRE:
        return {"type": "model", "id": name, "display_name": name, "created_at": _SINCE}
    return {"id": name, "object": "model", "created": _SINCE_S, "owned_by": "wedgehog"}
