"""The same stream in another form: other lines, other fields and events, calls in turns, wrong numbers.

`lines`: what server-sent events allow (https://html.spec.whatwg.org/multipage/server-sent-events.html): a comment, no
space behind a colon, CR LF, an `id` field. `fields`: a first chunk without choices, as Azure OpenAI sends it
(https://github.com/pydantic/pydantic-ai/issues/164), fields that are null or empty in each chunk, and events of a type
that is new, which Anthropic (https://docs.anthropic.com/en/docs/build-with-claude/streaming) and OpenAI say may come.
`turns`: the pieces of several tool calls come in turns (https://github.com/continuedev/continue/issues/13223), which
the index of each piece allows. `open`: the last event has no empty line behind it, so that a reader which keeps to the
standard drops it (https://github.com/openai/openai-node/issues/2725, https://github.com/earendil-works/pi/issues/9047).

Wrong numbers are those of gateways. `index`: every tool call has the index 0 (https://github.com/ollama/ollama/issues/15457,
https://github.com/0xPlaygrounds/rig/pull/1443). `ids`: each event has another id of its item
(https://github.com/BerriAI/litellm/pull/30072). `again`: each reply numbers its tool calls from 0, so that two replies
have the same ids (https://github.com/NousResearch/hermes-agent/pull/88324, https://github.com/openclaw/openclaw/pull/109447).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final, Literal

from wedgehog.fake_llm.frame import Frame, encode, event
from wedgehog.fake_llm.ids import made_up

Form = Literal["lines", "fields", "turns", "open", "index", "ids", "again"]
Frames = tuple[Frame, ...]
_NOTE: Final = {"note": "a kind of event that is new"}
_ID_OF_A_CALL: Final = re.compile(rb"w[a-z]{4}\d+x\d+x(\d+)a\d+")
"""As the script writes it behind the wire's own prefix; the number of the call in its reply."""
_UNFILTERED: Final = [{"prompt_index": 0, "content_filter_results": {}}]


def in_other_form(form: Form, frames: Frames, wire: str) -> Frames | None:
    """Return the stream in another form; None for a wire without it."""
    change = FORMS[form].get(wire)
    return tuple(change(frames)) if change is not None and frames else None


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


def _in_turns(frames: Frames) -> Iterator[Frame]:
    """Yield one piece of each tool call after the other; the calls end in their order."""
    told = [(frame, _index(frame)) for frame in frames]
    places = sorted({index for _, index in told if index is not None})
    calls = [[frame for frame, index in told if index == place] for place in places]
    rounds = zip_longest(*[pieces[:-1] for pieces in calls])
    mixed = [piece for pieces in rounds for piece in pieces if piece is not None] + [pieces[-1] for pieces in calls]
    turns = iter(mixed)
    for frame, index in told:
        yield frame if index is None else _at_its_place(next(turns), frame)


def _at_its_place(piece: Frame, place: Frame) -> Frame:
    return replace(piece, delay_s=place.delay_s, tokens=place.tokens)


def _index(frame: Frame) -> tuple[int, int] | None:
    """Return the choice and the index of the tool call to which a chunk belongs; None for another chunk."""
    found = [
        (choice["index"], call["index"])
        for choice in _document(frame).get("choices", ())
        for call in choice["delta"].get("tool_calls", ())
    ]
    return found[0] if found else None


def _open_end(frames: Frames) -> Iterator[Frame]:
    """Yield the frames up to the last one with a document, which ends with its text."""
    last = max(number for number, frame in enumerate(frames) if _document(frame))
    yield from frames[:last]
    yield _with(frames[last], frames[last].data.rstrip(b"\n"))


def _one_index(frames: Frames) -> Iterator[Frame]:
    for frame in frames:
        document = _document(frame)
        for choice in document.get("choices", ()):
            for call in choice["delta"].get("tool_calls", ()):
                call["index"] = 0
        yield _with(frame, event(encode(document))) if document else frame


def _other_ids(frames: Frames) -> Iterator[Frame]:
    """Yield the events with an id of its own in each; an item's last event and the whole response have the true one."""
    for number, frame in enumerate(frames):
        document = _document(frame)
        if "item_id" in document:
            document["item_id"] = _other_id(document["item_id"], number)
        if document["type"] == "response.output_item.added":
            document["item"]["id"] = _other_id(document["item"]["id"], number)
        yield _with(frame, event(encode(document), document["type"]))


def _other_id(id_: str, number: int) -> str:
    return f"{id_.partition('_')[0]}_{made_up('item', id_, number, length=50, small=True)}"


def _numbered_again(frames: Frames) -> Iterator[Frame]:
    for frame in frames:
        yield _with(frame, _ID_OF_A_CALL.sub(lambda found: b"%d" % (int(found[1]) - 1), frame.data))


def _document(frame: Frame) -> dict[str, Any]:
    """Return the JSON of a frame; empty for `[DONE]`."""
    start = frame.data.find(b"{")
    return dict(json.loads(frame.data[start:])) if start >= 0 else {}


def _with(frame: Frame, data: bytes) -> Frame:
    return replace(frame, data=data)


_Change = Callable[[Frames], Iterator[Frame]]
_CHAT: Final = "openai-chat"
_RESPONSES: Final = "openai-responses"
FORMS: Final[Mapping[Form, Mapping[str, _Change]]] = {
    "lines": dict.fromkeys(("anthropic", _CHAT, _RESPONSES), _other_lines),
    "fields": {"anthropic": _new_messages_event, _CHAT: _chat_chunks, _RESPONSES: _new_response_event},
    "turns": {_CHAT: _in_turns},
    "open": dict.fromkeys(("anthropic", _CHAT, _RESPONSES), _open_end),
    "index": {_CHAT: _one_index},
    "ids": {_RESPONSES: _other_ids},
    "again": dict.fromkeys(("anthropic", _CHAT), _numbered_again),
}
"""The wires that have each form, and what makes it."""
