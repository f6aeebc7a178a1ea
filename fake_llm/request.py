"""A request as it arrived, before any dialect has looked at it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any, Final

from wedgehog.fake_llm.conversation import ToolSpec
from wedgehog.fake_llm.memory import Memory
from wedgehog.fake_llm.value import value

_DECODER: Final = json.JSONDecoder()


@value
class Request:
    """One HTTP request; `headers` finds names whatever their case.

    `document` is the JSON object of the body, None where the body holds no such thing. `memory` is what
    the server has kept of earlier replies in this `session`; `path` is the one within it. `key` is the API key that
    came along, "" without one.
    """

    call: int
    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    document: dict[str, Any] | None = field(default=None, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    memory: Memory = field(default_factory=Memory, repr=False, compare=False)
    session: str = ""
    key: str = field(default="", repr=False)


def json_object(body: bytes) -> dict[str, Any] | None:
    """Read a body that should be a JSON object, or return None."""
    try:
        document = _loaded(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _loaded(body: bytes) -> Any:
    """Do what `json.loads` does; where UTF-8 is an object from end to end, a third of its time is enough."""
    if body.startswith(b"{"):
        with suppress(ValueError):
            text = body.decode(errors="surrogatepass")
            document, end = _DECODER.raw_decode(text)
            if end == len(text):
                return document
    return json.loads(body)


def listed(value: object) -> list[Any]:
    """Return a list as it is and anything else as an empty one: histories can hold nonsense."""
    return value if isinstance(value, list) else []


def mapped(value: object) -> dict[str, Any]:
    """Return a mapping as it is and anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def blocks(content: object) -> list[dict[str, Any]]:
    """Return a message's content as blocks: a bare string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [mapped(block) for block in listed(content)]


def text_of(content: object) -> str:
    """Return the text of a content, its blocks joined by line breaks."""
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in blocks(content) if "text" in block)


def counted(value: object) -> int | None:
    """Return a whole number as it is and anything else as None; true and false are no numbers."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def model_asked(request: Request, root: str) -> str | None:
    """Return the model that a GET below `root` asks for: "" is all of them, None that it asks for something else.

    >>> model_asked(Request(1, "GET", "/v1/models/gpt-5", {}), "/v1/models")
    'gpt-5'
    """
    if request.method not in {"GET", "HEAD"} or not f"{request.path}/".startswith(f"{root}/"):
        return None
    return request.path.removeprefix(root).strip("/")


def is_known(name: str, models: Collection[str] | None) -> bool:
    """Tell if a model exists; any does where none are listed."""
    return models is None or name in models


def tool_spec(tool: dict[str, Any], schema: str = "parameters") -> ToolSpec:
    """Read an advertised tool; the JSON Schema of its arguments is in the field `schema`."""
    return ToolSpec(str(tool.get("name", "")), str(tool.get("description", "")), mapped(tool.get(schema)))
