"""A request as it arrived, and helpers that read fields of any dialect."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any, Final

from wedgehog.fake_llm.api_key import fingerprint
from wedgehog.fake_llm.conversation import Message, ToolCallSeen, ToolSpec
from wedgehog.fake_llm.value import value

_DECODER: Final = json.JSONDecoder()
_IMAGES: Final = ("image", "image_url", "input_image")
_MOST_KEPT: Final = 10_000
_MOST_SESSIONS: Final = 1_000


class Memory:
    """Up to 10,000 values by id; the oldest is dropped first. `writes` counts all values ever stored."""

    def __init__(self) -> None:
        self.writes = 0
        self._kept: dict[str, Any] = {}

    def keep(self, id_: str, value: object) -> None:
        """Store a value."""
        self.writes += 1
        self._kept[id_] = value
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    def keep_here(self, id_: str, value: object) -> None:
        """Store a value until the connection ends; a connection that has no memory of its own stores nothing."""

    def get(self, id_: str) -> Any:
        """Return the value of an id, else None."""
        return self._kept.get(id_)

    def drop(self, id_: str) -> bool:
        """Drop a value; return True if there was one."""
        return self._kept.pop(id_, None) is not None


class ConnectionMemory(Memory):
    """The memory of a WebSocket: that of its session, and what ends with the connection."""

    def __init__(self, session: Memory) -> None:
        super().__init__()
        self._session = session

    def keep(self, id_: str, value: object) -> None:
        """Store a value in the session."""
        self.writes += 1
        self._session.keep(id_, value)

    def keep_here(self, id_: str, value: object) -> None:
        """Store a value until the connection ends."""
        super().keep(id_, value)

    def get(self, id_: str) -> Any:
        """Return the value of an id, else None."""
        here = super().get(id_)
        return self._session.get(id_) if here is None else here


class Memories:
    """A memory for each of up to 1,000 sessions; the oldest is dropped first."""

    def __init__(self) -> None:
        self._of: dict[str, Memory] = {}

    def of(self, session: str) -> Memory:
        """Return a session's memory."""
        memory = self._of.get(session)
        if memory is None:
            memory = self._of[session] = Memory()
            if len(self._of) > _MOST_SESSIONS:
                del self._of[next(iter(self._of))]
        return memory


@value
class Request:
    """One HTTP request, or one message of a WebSocket with the head of its handshake.

    The names of `headers` are in small letters.

    `document` is the body's JSON object, None if the body is no object. `path` is the path within the `session`, whose
    stored replies are in `memory`. `key` is the API key, "" without one.
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
    websocket: bool = False
    """Whether it came as a message of a WebSocket."""


def json_object(body: bytes) -> dict[str, Any] | None:
    """Return a body's JSON object, None if it is no object."""
    try:
        document = _loaded(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _loaded(body: bytes) -> Any:
    """Do what `json.loads` does, in a third of its time if the body is one UTF-8 object from end to end."""
    if body.startswith(b"{"):
        with suppress(ValueError):
            text = body.decode(errors="surrogatepass")
            document, end = _DECODER.raw_decode(text)
            if end == len(text):
                return document
    return json.loads(body)


def listed(value: object) -> list[Any]:
    """Return a list as it is, and anything else as an empty list."""
    return value if isinstance(value, list) else []


def mapped(value: object) -> dict[str, Any]:
    """Return a mapping as it is, and anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def blocks(content: object) -> list[dict[str, Any]]:
    """Return a message's content as blocks; a string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [mapped(block) for block in listed(content)]


def text_of(content: object) -> str:
    """Return a content's text, its blocks joined by line breaks."""
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in blocks(content) if "text" in block)


def images_in(content: object) -> tuple[str, ...]:
    """Return a fingerprint of each image among a content's blocks, and in the content of each block."""
    if not isinstance(content, list):
        return ()
    found: list[str] = []
    for block in map(mapped, content):
        found += [image_mark(block)] if block.get("type") in _IMAGES else images_in(block.get("content"))
    return tuple(found)


def image_mark(image: object) -> str:
    """Return a fingerprint of an image as it was sent, whether or not a client caches it."""
    known = {key: value for key, value in image.items() if key != "cache_control"} if isinstance(image, dict) else image
    return fingerprint(json.dumps(known, sort_keys=True))


def stops_in(value: object) -> tuple[str, ...]:
    """Return the stop sequences that a request gives as a text or as a list of texts."""
    given = [value] if isinstance(value, str) else listed(value)
    return tuple([stop for stop in given if isinstance(stop, str) and stop])


def counted(value: object) -> int | None:
    """Return an integer as it is, and anything else (true and false too) as None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def model_asked(request: Request, root: str) -> str | None:
    """Return the model that a GET below `root` asks for: "" is all models, None is another request.

    >>> model_asked(Request(1, "GET", "/v1/models/gpt-5", {}), "/v1/models")
    'gpt-5'
    """
    if request.method not in {"GET", "HEAD"} or not f"{request.path}/".startswith(f"{root}/"):
        return None
    return request.path.removeprefix(root).strip("/")


def is_known(name: str, models: Collection[str] | None) -> bool:
    """Return True if a model exists; `models` of None are any."""
    return models is None or name in models


def tool_spec(tool: dict[str, Any], schema: str = "parameters") -> ToolSpec:
    """Read an advertised tool; the JSON Schema of its arguments is in the field `schema`."""
    return ToolSpec(str(tool.get("name", "")), str(tool.get("description", "")), mapped(tool.get(schema)))


def system_first(system: str, messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return a conversation's messages after its system text, if there is one."""
    return (*([Message("system", system)] if system else []), *messages)


def call_answered(waiting: list[ToolCallSeen], fits: Callable[[ToolCallSeen], bool]) -> ToolCallSeen | None:
    """Remove and return the first unanswered call that fits."""
    call = next(filter(fits, waiting), None)
    if call is not None:
        waiting.remove(call)
    return call
