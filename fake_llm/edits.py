"""Applies reply faults to compiled frames, for all dialects.

frames ─▶ edit ─▶ edit ─▶ joined ─▶ HTTP chunks        `event` counts frames from 1
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Dialect, Exchange, Framing, Refusal
from wedgehog.fake_llm.edit_kinds import (
    MIDDLE,
    ClosedSocket,
    Duplicated,
    EarlyEnd,
    Edit,
    ErrorEvent,
    Malformed,
    Misnumbered,
    NoUsage,
    OpenEnd,
    OtherForm,
    PingsOnly,
    Reordered,
)
from wedgehog.fake_llm.frame import Frame, encode
from wedgehog.fake_llm.other_form import in_other_form
from wedgehog.fake_llm.websocket import NORMAL

_NAMES: Final = {
    EarlyEnd: "early_end",
    ClosedSocket: "ws_close",
    PingsOnly: "pings_only",
    ErrorEvent: "error_event",
    Duplicated: "duplicated_event",
    Reordered: "reordered_events",
    Malformed: "malformed_json",
    NoUsage: "no_usage",
    OtherForm: "other_form",
    OpenEnd: "open_end",
    Misnumbered: "misnumbered",
}
_USAGE: Final = ("usage", "usageMetadata", "prompt_eval_count", "eval_count")
_AROUND_USAGE: Final = ("message", "response")


@dataclass(frozen=True, slots=True)
class Edited:
    """An edited stream: its frames, the frame that repeats without end after them, and the applied edits."""

    frames: tuple[Frame, ...]
    endless: Frame | None = None
    names: tuple[str, ...] = ()
    closing: tuple[int, str] | None = None
    """Code and reason with which a WebSocket is closed after the last frame; None: it stays open."""


def edit(frames: tuple[Frame, ...], edits: Iterable[Edit], dialect: Dialect, exchange: Exchange) -> Edited:
    """Apply edits one after the other; an edit at or behind the last frame changes nothing."""
    edited = Edited(frames)
    for change in edits:
        applied = None if edited.endless or edited.closing else _apply(change, edited.frames, dialect, exchange)
        if applied is not None:
            edited = replace(applied, names=(*edited.names, _NAMES[type(change)]))
    return edited


def edit_whole(body: bytes, edits: Iterable[Edit]) -> tuple[bytes, tuple[str, ...]]:
    """Apply edits to the body of a reply that is not streamed; return it with the names of the applied edits."""
    names: list[str] = []
    for change in edits:
        edited = _on_json(change, body)
        if edited is not None:
            body = edited
            names.append(_NAMES[type(change)])
    return body, tuple(names)


def joined(frames: tuple[Frame, ...], framing: Framing, *, ends: bool = True) -> tuple[Frame, ...]:
    """Add the framing around and between events; a body that never `ends` gets no closing."""
    if not framing.opening:
        return frames
    closing = framing.closing if ends else b""
    if not frames:
        return (Frame(framing.opening + closing),)
    lead = (framing.opening, *[framing.between] * (len(frames) - 1))
    tail = (*[b""] * (len(frames) - 1), closing)
    return tuple(replace(f, data=a + f.data + b) for a, f, b in zip(lead, frames, tail, strict=True))


def _apply(change: Edit, frames: tuple[Frame, ...], dialect: Dialect, exchange: Exchange) -> Edited | None:
    """Return the stream after one edit, or None if the edit does not apply."""
    if not isinstance(change, NoUsage | OtherForm | OpenEnd | Misnumbered) and change.event == MIDDLE:
        change = replace(change, event=max(0, len(frames) - 1) // 2)
    match change:
        case EarlyEnd() | PingsOnly() | ErrorEvent() | ClosedSocket():
            return _broken_off(change, frames, dialect, exchange) if change.event < len(frames) else None
        case NoUsage() | OtherForm() | OpenEnd() | Misnumbered():
            return _throughout(change, frames, exchange)
    # Without an event it is the first one that delivers tokens.
    at = (change.event or next((n for n, frame in enumerate(frames, start=1) if frame.tokens), 1)) - 1
    if at + isinstance(change, Reordered) >= len(frames):
        return None
    before, frame, after = frames[:at], frames[at], frames[at + 1 :]
    match change:
        case Duplicated():
            return Edited((*before, frame, replace(frame, delay_s=0), *after))
        case Reordered():
            return Edited((*before, *_swapped(frame, after[0]), *after[1:]))
        case Malformed():
            data = _on_json(change, frame.data)
            return None if data is None else Edited((*before, replace(frame, data=data, completes=False), *after))


def _throughout(
    change: NoUsage | OtherForm | OpenEnd | Misnumbered, frames: tuple[Frame, ...], exchange: Exchange
) -> Edited | None:
    changed: tuple[Frame, ...] | None
    match change:
        case OtherForm() | OpenEnd() | Misnumbered():
            form = change.numbers if isinstance(change, Misnumbered) else change.form
            changed = in_other_form(form, frames, exchange.conversation.wire)
        case NoUsage():
            changed = tuple([replace(frame, data=_on_json(change, frame.data) or frame.data) for frame in frames])
    return Edited(changed) if changed is not None and changed != frames else None


def _broken_off(
    change: EarlyEnd | ClosedSocket | PingsOnly | ErrorEvent,
    frames: tuple[Frame, ...],
    dialect: Dialect,
    exchange: Exchange,
) -> Edited | None:
    kept = frames[: change.event]
    tokens = kept[-1].tokens if kept else 0
    match change:
        case EarlyEnd():
            return Edited(kept, closing=(NORMAL, ""))
        case ClosedSocket():
            return Edited(kept, closing=(change.code, change.reason)) if exchange.request.websocket else None
        case PingsOnly():
            ping = dialect.framing(exchange).ping
            return Edited(kept, Frame(ping, delay_s=change.every_s, tokens=tokens))
        case ErrorEvent():
            refusal = Refusal(change.status, change.message or "")
            write = dialect.gateway_error if change.by == "gateway" else dialect.error_event
            told = write(refusal, exchange, len(kept))
            return Edited((*kept, Frame(told, tokens=tokens, terminal=True)))


def _swapped(first: Frame, second: Frame) -> tuple[Frame, Frame]:
    """Exchange two frames; tokens and delay stay at their position."""
    return (
        replace(second, delay_s=first.delay_s, tokens=first.tokens),
        replace(first, delay_s=second.delay_s, tokens=second.tokens),
    )


def _on_json(change: Edit, data: bytes) -> bytes | None:
    """Edit the JSON object inside an event or a body; None if there is nothing to edit."""
    start, end = data.find(b"{"), data.rfind(b"}") + 1
    if not -1 < start < end:
        return None
    match change:
        case Malformed():
            return data[: start + (end - start) // 2] + data[end:]
        case NoUsage():
            try:
                document = json.loads(data[start:end])
            except ValueError:  # another edit has made it malformed
                return None
            told = encode(_without_usage(document))
            return data[:start] + told + data[end:] if told != data[start:end] else None
    return None


def _without_usage(document: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in document.items() if name not in _USAGE}
    inner = {name: _without_usage(kept[name]) for name in _AROUND_USAGE if isinstance(kept.get(name), dict)}
    return kept | inner
