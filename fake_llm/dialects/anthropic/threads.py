"""Message threads: the provider holds the conversation, and a request brings only the messages that are new.

A first request has `thread: {type: create}`; the conversation, with the reply, is kept under the reply's id. The next
one names that id. https://platform.claude.com/docs/en/build-with-claude/message-threads
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Refusal, bad
from wedgehog.fake_llm.frame import encode
from wedgehog.fake_llm.request import Request, listed, mapped

_BETA: Final = "message-threads"
_HELD: Final = ("system", "tools")
"""What only the first request of a thread has."""
_NOT_FOUND: Final = "thread_not_found"


def rebuilt(request: Request) -> Request:
    """Return a request that goes on with a thread as the whole conversation; any other as it is."""
    held, document = _held(request), request.document
    if held is None or document is None:
        return request
    known = {name: held[name] for name in _HELD if name in held}
    whole = document | known | {"messages": [*held["messages"], *listed(document.get("messages"))]}
    return replace(request, document=whole, body=encode(whole))


def is_asked(request: Request) -> bool:
    """Whether the provider shall hold the conversation."""
    return (request.document or {}).get("thread") is not None


def refusals(request: Request) -> Iterator[Refusal]:
    """Yield what is wrong with the thread of a request."""
    if not is_asked(request):
        return
    if _BETA not in request.headers.get("anthropic-beta", ""):
        yield bad("thread: Extra inputs are not permitted")
    if _continued(request) and _held(request) is None:
        yield Refusal(404, f"Thread not found: {_continued(request)}", code=_NOT_FOUND)


def remember(request: Request, id_: str, content: list[dict[str, Any]]) -> None:
    """Keep the conversation of a request, and the reply to it without what no request may carry."""
    document = request.document or {}
    blocks = [_readable(block) for block in content if block["type"] != "text" or block["text"].strip()]
    said = [{"role": "assistant", "content": blocks}] if blocks else []
    held = {name: document[name] for name in _HELD if name in document}
    request.memory.keep(f"thread {id_}", held | {"messages": [*listed(document.get("messages")), *said]})


def _readable(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block with arguments that are an object, whatever the model sent."""
    return block if isinstance(block.get("input", {}), dict) else block | {"input": {}}


def _continued(request: Request) -> str:
    """The id of the reply with which a request goes on, "" if it begins with none."""
    thread = mapped((request.document or {}).get("thread"))
    return str(thread.get("previous_message_id", "")) if thread.get("type") == "continue" else ""


def _held(request: Request) -> dict[str, Any] | None:
    id_ = _continued(request)
    found = request.memory.get(f"thread {id_}") if id_ else None
    return found if isinstance(found, dict) else None
