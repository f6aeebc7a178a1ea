"""Replies compiled before: the same words to the same kind of request differ in their ids alone, letter for letter.

So what was compiled once is kept, with the ids that were made up for it; the next one puts its own in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from wedgehog.fake_llm.dialects.base import Exchange
from wedgehog.fake_llm.ids import MadeUp, made_up, overheard
from wedgehog.fake_llm.image import Body
from wedgehog.fake_llm.reply import Reply

Filled: TypeAlias = tuple[tuple[bytes, bytes], ...]

_MOST_KEPT: Final = 128
_LARGEST_KEPT: Final = 256 * 2**10
_SAID: Final = frozenset({"messages", "contents", "input", "prompt", "system", "systemInstruction", "tools"})
"""What a request says. The rest of it is how it wants its answer, and may change the bytes."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A body, its type, and the names of the edits that apply to it."""

    body: Body
    content_type: str
    edited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Plate:
    """What is kept; the reply with it, so that its identity is nobody else's."""

    reply: Reply
    compiled: Compiled
    ids: tuple[MadeUp, ...]


class Press:
    """Compiles replies, and remembers the last 128 that can be used again."""

    def __init__(self) -> None:
        """Nothing has been compiled."""
        self._plates: dict[object, _Plate] = {}

    def compiled(
        self, reply: Reply, exchange: Exchange, kind: object, compile_: Callable[[], Compiled]
    ) -> tuple[Compiled, Filled]:
        """Return a compiled reply and the ids to put in place of its own; `kind`: what else changes its bytes."""
        key = (id(reply), kind, _manner(exchange))
        plate = self._plates.get(key)
        if plate is not None and plate.reply is reply:
            return plate.compiled, _filled(plate, exchange.request.call)
        with overheard() as ids:
            compiled = compile_()
        if _can_be_used_again(compiled, ids, exchange.request.call):
            self._plates[key] = _Plate(reply, compiled, tuple(dict.fromkeys(ids)))
            if len(self._plates) > _MOST_KEPT:
                del self._plates[next(iter(self._plates))]
        return compiled, ()


def _manner(exchange: Exchange) -> object:
    request = exchange.request
    rest = {name: value for name, value in (request.document or {}).items() if name not in _SAID}
    manner = (request.path, tuple(request.query.items()), exchange.conversation.model, exchange.conversation.wire)
    return (*manner, exchange.billed, exchange.created_s, repr(rest))


def _can_be_used_again(compiled: Compiled, ids: list[MadeUp], call: int) -> bool:
    """Tell if the ids stand in the body as they were made up, and can be told from everything else."""
    data = compiled.body.data
    own = {id_ for parts, _, id_ in ids if _is_of_call(parts, call)}
    return len(data) <= _LARGEST_KEPT and all(len(id_) >= 8 and id_.encode() in data for id_ in own)


def _is_of_call(parts: tuple[object, ...], call: int) -> bool:
    return len(parts) > 1 and parts[1] == call


def _filled(plate: _Plate, call: int) -> Filled:
    return tuple(
        (id_.encode(), made_up(parts[0], call, *parts[2:], length=length).encode())
        for parts, length, id_ in plate.ids
        if len(parts) > 1 and isinstance(parts[1], int)
    )
