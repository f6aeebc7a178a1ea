"""The request that the provider refused, as the agent sent it: its last messages, without keys."""

import json
import re
from pathlib import Path
from typing import Any, Final

from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import Call
from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.words import many, one_line

_MESSAGES: Final = ("messages", "input", "contents")
"""The key of the conversation in each provider's request."""
_KEY: Final = re.compile(r"\b(?:sk|pk|rk|ghp|gho|xox[abp]|AKIA|AIza)[-_]?[A-Za-z0-9_-]{16,}|(?<=Bearer )[^\s\"\\]{8,}")
"""A word that looks like a secret key of a well-known service."""
_LAST, _LENGTH, _LARGEST = 12, 400, 4_000_000


def refused_request(history: History, bodies: Path) -> Markup | None:
    """The first request of each reason for which our validator refused one; None if there is none, or no body of it.

    `bodies` is the campaign's folder of request bodies, by hash.
    """
    first: dict[str, Call] = {}
    for call in history.calls:
        if call.refused and not call.refused.scripted:
            first.setdefault(call.refused.message, call)
    shown = [one for call in first.values() if (one := _one(call, bodies)) is not None]
    return tag("div", tag("h4", "What was refused"), shown) if shown else None


def _one(call: Call, bodies: Path) -> Markup | None:
    named = re.fullmatch(r"[0-9a-f]{16}", call.arrived.body_hash)
    messages = _messages(bodies / named[0]) if named else []
    if not messages or call.refused is None:
        return None
    left = len(messages) - _LAST
    more = tag("p", f"{many(left, 'message')} before these", class_="soft") if left > 0 else None
    items = [tag("li", tag("code", _words(message))) for message in messages[-_LAST:]]
    said = f"Call {call.number}, {call.refused.status}: {one_line(call.refused.message, _LENGTH)}"
    body = tag("p", "The whole request: ", tag("code", f"bodies/{call.arrived.body_hash}"), class_="soft")
    return tag("details", tag("summary", said), more, tag("ol", items, start=max(0, left) + 1), body)


def _messages(path: Path) -> list[Any]:
    """The messages of a stored body; none if it holds none."""
    try:
        body = json.loads(path.read_bytes()) if path.stat().st_size <= _LARGEST else None
    except (OSError, ValueError):
        return []
    found: Any = next((body[key] for key in _MESSAGES if key in body), []) if isinstance(body, dict) else []
    return found if isinstance(found, list) else [found]


def _words(message: Any) -> str:
    """One line of JSON. Keys are left out before it is cut, because a part of a key does not look like one."""
    return one_line(_KEY.sub("[key]", json.dumps(message, ensure_ascii=False)), _LENGTH)
