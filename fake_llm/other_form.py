"""The same stream in another form that services of its wire use: other lines, or other fields and events.

`lines`: what server-sent events allow (https://html.spec.whatwg.org/multipage/server-sent-events.html): a comment, no
space behind a colon, CR LF, an `id` field. `fields`: a first chunk without choices, as Azure OpenAI sends it
(https://github.com/pydantic/pydantic-ai/issues/164), fields that are null or empty in each chunk, and events of a type
that is new, which Anthropic (https://docs.anthropic.com/en/docs/build-with-claude/streaming) and OpenAI say may come.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

from wedgehog.fake_llm.frame import Frame, encode, event

Form = Literal["lines", "fields"]
Frames = tuple[Frame, ...]
_NOTE: Final = {"note": "a kind of event that is new"}
_UNFILTERED: Final = [{"prompt_index": 0, "content_filter_results": {}}]


def in_other_form(form: Form, frames: Frames, wire: str) -> Frames | None:
    """Return the stream in another form; None for a wire that has one form only."""
    if wire not in OTHER_FORMS or not frames:
        return None
    return tuple(_other_lines(frames) if form == "lines" else OTHER_FORMS[wire](frames))


def _other_lines(frames: Frames) -> Iterator[Frame]:
    for number, frame in enumerate(frames, start=1):
        named = (line.partition(b": ") for line in frame.data.rstrip(b"\n").split(b"\n"))
        lines = [name + b":" + value for name, _, value in named]
        comment = b": PROCESSING\r\n\r\n" if number == 1 else b""
        yield _with(frame, comment + b"\r\n".join([b"id:%d" % number, *lines, b"", b""]))


def _chat_chunks(frames: Frames) -> Iterator[Frame]:
    """Yield the chunks with a first one that has no choices, and with fields that say nothing."""
    opening = _document(frames[0]) | {"choices": [], "prompt_filter_results": _UNFILTERED}
    yield Frame(event(encode(opening)))
    for frame in frames:
        document = _document(frame)
        for choice in document.get("choices", ()):
            choice["delta"] = _filled(choice["delta"])
        yield _with(frame, event(encode({"usage": None} | document))) if document else frame


def _filled(delta: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {"id": "", "type": "function"} | call | {"function": {"name": None} | call["function"]}
        for call in delta.get("tool_calls", ())
    ]
    return {"content": None, "role": "assistant"} | delta | ({"tool_calls": calls} if calls else {})


def _new_messages_event(frames: Frames) -> Iterator[Frame]:
    yield from _with_an_event(frames, event(encode({"type": "message_note"} | _NOTE), "message_note"))


def _new_response_event(frames: Frames) -> Iterator[Frame]:
    numbered = {"type": "response.note.added", "sequence_number": _document(frames[0])["sequence_number"]}
    yield from _with_an_event(frames, event(encode(numbered | _NOTE), "response.note.added"))


def _with_an_event(frames: Frames, new: bytes) -> Iterator[Frame]:
    """Yield the frames with a new event behind the first one, and behind each that completes an item."""
    for number, frame in enumerate(frames):
        yield frame
        if number == 0 or frame.completes:
            yield Frame(new, tokens=frame.tokens)


def _document(frame: Frame) -> dict[str, Any]:
    """Return the JSON of a frame; empty for `[DONE]`."""
    start = frame.data.find(b"{")
    return dict(json.loads(frame.data[start:])) if start >= 0 else {}


def _with(frame: Frame, data: bytes) -> Frame:
    return Frame(data, frame.delay_s, frame.tokens, frame.completes, frame.terminal)


OTHER_FORMS: Final[dict[str, Callable[[Frames], Iterator[Frame]]]] = {
    "anthropic": _new_messages_event,
    "openai-chat": _chat_chunks,
    "openai-responses": _new_response_event,
}
