"""Requests and responses of Telegram's bot API as values."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from wedgehog.harness.faults.chat_fault import ChatRefusal

CHAT_ID = 7
AGENT = {"id": 42, "is_bot": True, "first_name": "Wedgehog", "username": "wedgehog_bot"}


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of the agent as its user reads it, and when it came or was changed last."""

    words: str
    at_s: float


def message(text: str, sender: Mapping[str, Any] | None = None, id_: int = 1) -> dict[str, Any]:
    """A message of the one chat; of its user if no sender is named."""
    whose = sender or {"id": CHAT_ID, "is_bot": False, "first_name": "Someone"}
    return {"message_id": id_, "date": 0, "chat": {"id": CHAT_ID, "type": "private"}, "from": whose, "text": text}


def refused(refusal: ChatRefusal) -> dict[str, Any]:
    """The response to a request that is refused."""
    wait = {} if refusal.retry_after is None else {"parameters": {"retry_after": refusal.retry_after}}
    return {"ok": False, "error_code": refusal.code, "description": refusal.description, **wait}


def sent_id(params: Mapping[str, Any]) -> int:
    """The id of the message that a request is about; 0 if it names none."""
    given = str(params.get("message_id", ""))
    return int(given) if given.isdecimal() else 0


async def parameters(request: web.BaseRequest) -> dict[str, Any]:
    """Read parameters from the query string, a form or JSON."""
    params: dict[str, Any] = dict(request.query)
    if request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        return params | dict(await request.post())
    with contextlib.suppress(ValueError):
        found = json.loads(await request.text() or "{}")
        params |= found if isinstance(found, dict) else {}
    return params
