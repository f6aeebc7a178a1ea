"""Replies compiled before: the same words to the same kind of request differ in their ids alone, letter for letter.

So what was compiled once is kept, head and body, as a stencil: the ids that were made up for it are cut out, and the
next one puts its own in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wedgehog.fake_llm.dialects.base import Exchange
from wedgehog.fake_llm.ids import MadeUp, for_other_calls, overheard
from wedgehog.fake_llm.reply import Reply
from wedgehog.fake_llm.value import value
from wedgehog.fake_llm.wire_reply import Stencil, WireReply

_MOST_KEPT: Final = 128
_LARGEST_KEPT: Final = 256 * 2**10
_SHORTEST_ID: Final = 8
_SAID: Final = frozenset({"messages", "contents", "input", "prompt", "system", "systemInstruction", "tools"})
"""What a request says. The rest of it is how it wants its answer, and may change the bytes."""


@value
class CompiledReply:
    """A reply's wire image, and the names of the edits that apply to it."""

    image: WireReply
    edited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Plate:
    """What is kept; the reply with it, so that its identity is nobody else's."""

    reply: Reply
    compiled: CompiledReply
    ids: tuple[Callable[[int], bytes], ...]
    head: Stencil
    body: Stencil

    def printed(self, call: int) -> CompiledReply:
        """Return it with the ids of another call."""
        ids = tuple([make_up(call) for make_up in self.ids])
        image = self.compiled.image
        return CompiledReply(
            WireReply(self.head.filled(ids), image.told, image.closes, self.body, ids), self.compiled.edited
        )


class RenderCache:
    """Compiles replies, and remembers the last 128 that can be used again."""

    def __init__(self) -> None:
        """Nothing has been compiled."""
        self._plates: dict[object, _Plate] = {}

    def compiled(
        self, reply: Reply, exchange: Exchange, kind: object, compile_: Callable[[], CompiledReply]
    ) -> CompiledReply:
        """Return a compiled reply with ids of its own; `kind`: what changes its bytes beside reply and exchange."""
        key = (id(reply), kind, _manner(exchange))
        plate = self._plates.get(key)
        if plate is not None and plate.reply is reply:
            return plate.printed(exchange.request.call)
        kept = exchange.request.memory.writes
        with overheard() as heard:
            compiled = compile_()
        plate = _plate(reply, compiled, heard, exchange.request.call)
        # A reply that the provider keeps is compiled each time: each is kept under its own ids.
        if plate is not None and exchange.request.memory.writes == kept:
            self._plates[key] = plate
            if len(self._plates) > _MOST_KEPT:
                del self._plates[next(iter(self._plates))]
        return compiled


def _manner(exchange: Exchange) -> object:
    request, conversation, billed = exchange.request, exchange.conversation, exchange.billed
    rest = {name: value for name, value in (request.document or {}).items() if name not in _SAID}
    asked = (request.path, tuple(request.query.items()), conversation.model, conversation.wire, repr(rest))
    return (*asked, billed.input_tokens, billed.output_tokens, exchange.created_s)


def _plate(reply: Reply, compiled: CompiledReply, heard: list[MadeUp], call: int) -> _Plate | None:
    """Keep a reply whose ids stand in it as they were made up, and can be told from everything else; else None."""
    own = tuple(made for made in dict.fromkeys(heard) if _is_of_call(made[0], call))
    ids = [id_.encode() for *_, id_ in own]
    image = compiled.image
    data = image.head + image.told.data
    if len(data) > _LARGEST_KEPT or any(len(id_) < _SHORTEST_ID or id_ not in data for id_ in ids):
        return None
    makers = tuple(map(for_other_calls, own))
    return _Plate(reply, compiled, makers, Stencil.of(image.head, ids), Stencil.of(image.told.data, ids))


def _is_of_call(parts: tuple[object, ...], call: int) -> bool:
    return len(parts) > 1 and parts[1] == call
