"""A cache of compiled replies: the same reply to the same kind of request differs only in its ids."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from wedgehog.fake_llm.clock import http_date
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
    created_s: int
    movable: bool
    """Whether its time can be replaced like an id: no text of the reply or of the request looks like it."""

    def fits(self, reply: Reply, created_s: int) -> bool:
        """Return True if it can be filled for the same reply at this time."""
        if self.reply is not reply or created_s == self.created_s:
            return self.reply is reply
        return self.movable and len(str(created_s)) == len(str(self.created_s))

    def at(self, created_s: int) -> "_CacheEntry":
        """Return the entry at another time, whose stamps are as long."""
        times = tuple(zip(_stamps(self.created_s), _stamps(created_s), strict=True))
        return replace(self, head=self.head.moved(times), body=self.body.moved(times), created_s=created_s)

    def filled(self, call: int) -> WireReply:
        """Return the reply with the ids of another call."""
        ids = tuple([make_up(call) for make_up in self.ids])
        return WireReply(self.head.filled(ids), self.compiled.told, self.compiled.closes, self.body, ids)


class RenderCache:
    """Compiles replies and keeps the last 128 that can be used again."""

    def __init__(self) -> None:
        self._entries: dict[object, _CacheEntry] = {}

    def compiled(self, reply: Reply, exchange: Exchange, kind: object, compile_: Callable[[], WireReply]) -> WireReply:
        """Return a compiled reply with ids of its own; `kind` is what else its bytes depend on."""
        key = (id(reply), kind, _key_of(exchange))
        entry = self._entries.get(key)
        if entry is not None and entry.fits(reply, exchange.created_s):
            if entry.created_s != exchange.created_s:
                entry = self._entries[key] = entry.at(exchange.created_s)
            return entry.filled(exchange.request.call)
        kept = exchange.request.memory.writes
        with recorded_ids() as made:
            compiled = compile_()
        entry = _entry(reply, compiled, made, exchange, repr(key))
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
    return (*asked, billed.input_tokens, billed.output_tokens)


def _entry(
    reply: Reply, compiled: WireReply, made_ids: list[MadeUp], exchange: Exchange, asked: str
) -> _CacheEntry | None:
    """Return an entry if every id is in the bytes and is long enough to be replaced safely; else None."""
    own = tuple(made for made in dict.fromkeys(made_ids) if made[0][1:2] == (exchange.request.call,))
    ids = [id_.encode() for *_, id_ in own]
    data = compiled.head + compiled.told.data
    if len(data) > _LARGEST_KEPT or any(len(id_) < _SHORTEST_ID or id_ not in data for id_ in ids):
        return None
    makers, stamps = tuple(map(for_other_calls, own)), _stamps(exchange.created_s)
    words = repr(reply) + asked
    movable = all(len(stamp) >= _SHORTEST_ID and stamp.decode() not in words for stamp in stamps)
    head, body = Stencil.of(compiled.head, ids), Stencil.of(compiled.told.data, ids)
    return _CacheEntry(reply, compiled, makers, head, body, exchange.created_s, movable)


@lru_cache(maxsize=1024)
def _stamps(created_s: int) -> tuple[bytes, ...]:
    """Return a reply's time in each form in which a provider writes it: a header's, a number, ISO 8601."""
    iso = datetime.fromtimestamp(created_s, UTC).isoformat().partition("+")[0]
    return http_date(created_s).encode(), b"%d" % created_s, iso.encode()
