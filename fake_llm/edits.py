"""Reply faults on compiled frames, so that they exist once for all dialects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from wedgehog.fake_llm.dialects.base import Dialect, Refusal
from wedgehog.fake_llm.frame import Frame
from wedgehog.fake_llm.reply import EarlyEnd, Edit, ErrorEvent, PingsOnly
from wedgehog.fake_llm.sse import event

_NAMES: Final = {EarlyEnd: "early_end", PingsOnly: "pings_only", ErrorEvent: "error_event"}


@dataclass(frozen=True, slots=True)
class Edited:
    """What is left of a stream: its frames, the one that repeats for ever after them, and which edits applied."""

    frames: tuple[Frame, ...]
    endless: Frame | None = None
    names: tuple[str, ...] = ()


def edit(frames: tuple[Frame, ...], edits: Iterable[Edit], dialect: Dialect, request_id: str) -> Edited:
    """Apply edits one after the other; one that starts at or behind the last frame has nothing left to change."""
    edited = Edited(frames)
    for change in edits:
        if change.event < len(edited.frames) and edited.endless is None:
            edited = _apply(change, edited, dialect, request_id)
    return edited


def _apply(change: Edit, edited: Edited, dialect: Dialect, request_id: str) -> Edited:
    kept, names = edited.frames[: change.event], (*edited.names, _NAMES[type(change)])
    tokens = kept[-1].tokens if kept else 0
    if isinstance(change, PingsOnly):
        return Edited(kept, Frame(dialect.PING, delay_s=change.every_s, tokens=tokens), names)
    if isinstance(change, ErrorEvent):
        told = dialect.error(Refusal(change.status, change.message or ""), request_id)
        kept = (*kept, Frame(event(told.body, dialect.ERROR_EVENT), tokens=tokens, terminal=True))
    return Edited(kept, None, names)
