"""A cache of compiled replies: the same reply to the same kind of request differs only in its ids."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wedgehog.fake_llm.dialects.base import Exchange
from wedgehog.fake_llm.ids import MadeUp, for_other_calls, recorded_ids
from wedgehog.fake_llm.reply import Reply
from wedgehog.fake_llm.wire_reply import Stencil, WireReply

_MOST_KEPT: Final = 128
_LARGEST_KEPT: Final = 256 * 2**10
_SHORTEST_ID: Final = 8
_SAID: Final = frozenset({"messages", "contents", "input", "prompt", "system", "systemInstruction", "tools"})
"""Fields that hold the conversation. All other fields may change the bytes of the answer."""


@dataclass(frozen=True, slots=True)
class _CacheEntry:
    """One compiled reply; it keeps a reference to the reply so that `id(reply)` is not reused."""

    reply: Reply
    compiled: WireReply
    ids: tuple[Callable[[int], bytes], ...]
    head: Stencil
    body: Stencil

    def filled(self, call: int) -> WireReply:
        """Return the reply with the ids of another call."""
        ids = tuple([make_up(call) for make_up in self.ids])
        return WireReply(self.head.filled(ids), self.compiled.told, self.compiled.closes, self.body, ids)


class RenderCache:
    """Compiles replies and keeps the last 128 that can be used again."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[object, _CacheEntry] = {}

    def compiled(self, reply: Reply, exchange: Exchange, kind: object, compile_: Callable[[], WireReply]) -> WireReply:
        """Return a compiled reply with ids of its own; `kind` is what else its bytes depend on."""
        key = (id(reply), kind, _key_of(exchange))
        entry = self._entries.get(key)
        if entry is not None and entry.reply is reply:
            return entry.filled(exchange.request.call)
        kept = exchange.request.memory.writes
        with recorded_ids() as made:
            compiled = compile_()
        entry = _entry(reply, compiled, made, exchange.request.call)
        # A reply that the provider stores is compiled each time: each is stored under its own ids.
        if entry is not None and exchange.request.memory.writes == kept:
            self._entries[key] = entry
            if len(self._entries) > _MOST_KEPT:
                del self._entries[next(iter(self._entries))]
        return compiled


def _key_of(exchange: Exchange) -> object:
    request, conversation, billed = exchange.request, exchange.conversation, exchange.billed
    rest = {name: value for name, value in (request.document or {}).items() if name not in _SAID}
    asked = (request.path, tuple(request.query.items()), conversation.model, conversation.wire, repr(rest))
    return (*asked, billed.input_tokens, billed.output_tokens, exchange.created_s)


def _entry(reply: Reply, compiled: WireReply, made_ids: list[MadeUp], call: int) -> _CacheEntry | None:
    """Return an entry if every id is in the bytes and is long enough to be replaced safely; else None."""
    own = tuple(made for made in dict.fromkeys(made_ids) if made[0][1:2] == (call,))
    ids = [id_.encode() for *_, id_ in own]
    data = compiled.head + compiled.told.data
    if len(data) > _LARGEST_KEPT or any(len(id_) < _SHORTEST_ID or id_ not in data for id_ in ids):
        return None
    makers = tuple(map(for_other_calls, own))
    return _CacheEntry(reply, compiled, makers, Stencil.of(compiled.head, ids), Stencil.of(compiled.told.data, ids))
