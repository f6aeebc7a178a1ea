"""What the fake provider saw, into the history: facts of bytes and calls become events of turns and steps.

How much of a reply was *delivered* is the network's to say: the recorder asks `ReplyLimits` (the injector) whether a
fault lets only a part of a reply through, and writes the end of such a reply when that has been decided.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal, Protocol

from wedgehog.fake_llm import observer as fact
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Reply, Text, ToolCall
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.fake_llm.usage import output_tokens
from wedgehog.harness.inject import LimitKind, PartialDelivery
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.event import (
    CallUnscripted,
    HungUp,
    ReplyEnded,
    ReplyStarted,
    RequestArrived,
    RequestRefused,
    ToolCallOffered,
    ToolResult,
)
from wedgehog.harness.record.history import History


class ReplyLimits(Protocol):
    """What the recorder asks the nemesis."""

    async def gate(self, point: fact.Point) -> Sequence[int]:
        """Hold a reply, and say where to ask again."""
        ...

    def limits(self, call: int) -> LimitKind | None:
        """How a fault lets only a part of this reply through, if it does (the end is told by `Recorder.delivered`)."""
        ...

    def refused(self, call: int) -> None:
        """Our validator refused the request of this call."""
        ...

    def edited(self, call: int, names: Sequence[str]) -> None:
        """These edits apply to the reply that starts now."""
        ...

    def ended(self, call: int, paid: bool) -> None:
        """The reply has been written, or will not be."""
        ...

    def dropped(self, call: int) -> bool:
        """Whether a fault, or the end of one, closed the connection of this reply."""
        ...

    def closed(self, call: int) -> None:
        """The connection of a limited reply is gone, and no cut closed it: the agent hung up."""
        ...


class Placing(Protocol):
    """What the recorder asks the script."""

    def place(self, call: int, conversation: Conversation) -> CallPosition:
        """The place of a request."""
        ...

    def token_of_result(self, call_id: str, text: str) -> str:
        """turn.step.call of the tool call that a result answers, or empty."""
        ...


@dataclass
class _Open:
    """A call whose end is not yet written."""

    conn: int
    reply: Reply | None = None
    offers: tuple[tuple[str, str, bool], ...] = ()
    tokens_needed: int = 0
    edited: tuple[str, ...] = ()
    ended: fact.WriteEnded | None = None
    cut: PartialDelivery | None = None
    """Where the network ended it, decided while the fake still wrote it."""
    ended_s: float = -1.0
    written: bool = False
    whole: bool = False
    paid: bool = False


class Recorder:
    """The fake provider's observer: records, and passes the gate on to the nemesis."""

    def __init__(
        self, history: History, clock: Clock, placing: Placing, harm: ReplyLimits, keep_body: Callable[[bytes], str]
    ) -> None:
        """`keep_body` stores a request's body and returns its hash."""
        self._history, self._clock, self._placing, self._harm = history, clock, placing, harm
        self._keep_body = keep_body
        self._calls: dict[int, _Open] = {}
        self._last_on: dict[int, int] = {}
        self._unplaced: set[int] = set()
        self._hung_up: set[int] = set()
        self.look: Callable[[], None] = lambda: None
        """Called before a request is written down: what its agent's tools have done by then comes first."""
        self.requests = 0
        """Requests for the model so far."""

    async def gate(self, point: fact.Point) -> Sequence[int]:
        """Ask the nemesis."""
        return await self._harm.gate(point)

    def saw(self, seen: fact.Fact) -> None:
        """Write the event that a fact stands for, if any."""
        match seen:
            case fact.RequestSeen():
                self._arrived(seen)
            case fact.RefusalSent() if seen.call not in self._unplaced:
                self._refused(seen)
            case fact.WriteStarted() if seen.call not in self._unplaced:
                self._started(seen)
            case fact.WriteEnded() if seen.call not in self._unplaced:
                self._ended(seen)
            case fact.RequestUnscripted():
                self._history.add(CallUnscripted(call=seen.call, why=seen.why))
            case fact.ConnectionClosed(by_us=False):
                self._closed(seen.conn.id)
            case _:
                pass

    def answering(
        self, call: int, reply: Reply, offers: Sequence[tuple[str, str, bool]], tokens_needed: int = 0
    ) -> None:
        """The script answers a call with this; `offers` are (turn.step.call, tool name, whole) of its tool calls.

        `tokens_needed`: what the whole of it takes, where the agent's own limit ended it.
        """
        open_ = self._calls[call]
        open_.reply, open_.offers, open_.tokens_needed = reply, tuple(offers), tokens_needed

    def delivered(self, call: int, cut: PartialDelivery | None) -> None:
        """The network has decided: a struck reply passed up to `cut` only (None: it passed whole after all)."""
        open_ = self._calls[call]
        if open_.ended is not None:
            self._write_end(call, open_, cut)
        elif cut is not None and cut.how != "slowed":
            open_.cut = cut

    def flush(self) -> None:
        """Write the ends that are still open; the run is over."""
        for call, open_ in self._calls.items():
            if open_.paid and not open_.written and open_.ended is not None:
                self._write_end(call, open_, None)

    def _arrived(self, seen: fact.RequestSeen) -> None:
        if seen.conversation is None and seen.method != "POST":
            self._unplaced.add(seen.call)
            return
        self._calls[seen.call] = _Open(seen.conn.id)
        self._last_on[seen.conn.id] = seen.call
        self.requests += 1
        self.look()
        talk = seen.conversation
        place = self._placing.place(seen.call, talk) if talk else CallPosition(0, 0, 1, "unreadable")
        self._history.add(
            RequestArrived(
                call=seen.call,
                conn=seen.conn.id,
                wire=seen.wire,
                path=seen.path,
                model=talk.model if talk else "",
                stream=talk.stream if talk else False,
                turn=place.turn,
                step=place.step,
                attempt=place.attempt,
                background=place.background,
                max_tokens=talk.max_tokens if talk else None,
                key=seen.key,
                body_hash=self._keep_body(seen.body),
                body_bytes=seen.size,
                messages=len(talk.messages) if talk else 0,
                tools=tuple(tool.name for tool in talk.tools) if talk else (),
                results=self._results(talk) if talk else (),
                turns_seen=place.turns_seen,
            )
        )

    def _results(self, talk: Conversation) -> tuple[ToolResult, ...]:
        return tuple(
            ToolResult(
                r.call_id,
                len(r.text),
                r.is_error,
                self._placing.token_of_result(r.call_id, r.text),
                bool(self._placing.token_of_result("", r.text)),
            )
            for message in talk.messages
            for r in message.tool_results
        )

    def _refused(self, seen: fact.RefusalSent) -> None:
        wait, is_date = retry_after_s(seen.retry_after, self._clock.wall())
        if not seen.enforced:
            return
        if not seen.scripted:
            self._harm.refused(seen.call)
        self._history.add(
            RequestRefused(
                call=seen.call,
                status=seen.status,
                error=seen.kind,
                message=seen.message,
                pairing=seen.pairing,
                scripted=seen.scripted,
                retry_after_s=wait,
                retry_after_is_date=is_date,
            )
        )

    def _started(self, seen: fact.WriteStarted) -> None:
        open_ = self._calls[seen.call]
        open_.edited, open_.paid = seen.edited, True
        self._harm.edited(seen.call, seen.edited)
        scripted = open_.reply is not None and open_.reply.usage is not None
        self._history.add(ReplyStarted(call=seen.call, input_tokens=seen.input_tokens, scripted=scripted))

    def _ended(self, seen: fact.WriteEnded) -> None:
        open_ = self._calls[seen.call]
        open_.ended, open_.ended_s = seen, self._clock.now()
        lost = seen.how == "hung_up" and self._harm.dropped(seen.call)
        if open_.paid and not self._harm.limits(seen.call):
            self._write_end(seen.call, open_, open_.cut or PartialDelivery(seen.body_bytes, "cut") if lost else None)
        if seen.how == "hung_up" and open_.paid and not lost and self._harm.limits(seen.call) != "cut":
            self._hang_up(seen.call)
            if self._harm.limits(seen.call) == "slowed":
                self._harm.closed(seen.call)
        self._harm.ended(seen.call, open_.paid)

    def _write_end(self, call: int, open_: _Open, cut: PartialDelivery | None) -> None:
        ended = open_.ended
        if open_.written or ended is None:
            return
        if cut is not None and cut.how == "slowed" and cut.at >= ended.body_bytes:
            cut = None  # what is slow is not lost: all of it has arrived by now
        open_.written, open_.whole = True, cut is None and ended.how == "complete"
        at = ended.body_bytes if cut is None else max(0, min(cut.at, ended.body_bytes))
        arrived = [mark for mark in ended.frames if mark.end <= at]
        reply = open_.reply or Reply()
        whole = cut is None and ended.how == "complete" and not open_.edited
        tokens = ended.output_tokens if whole else max((mark.tokens for mark in arrived), default=0)
        blocks = len(_blocks(reply)) if whole else sum(mark.completes for mark in arrived)
        self._history.add(
            ReplyEnded(
                # A cut is proved some time after it: the agent knew of it when the last byte had been written.
                at_s=open_.ended_s if cut is not None and cut.how == "cut" else -1.0,
                call=call,
                how=_how(ended, cut, open_.edited),
                stop=ended.stop,
                output_tokens=ended.output_tokens,
                tokens_delivered=min(tokens, ended.output_tokens),
                body_bytes=ended.body_bytes,
                bytes_delivered=at,
                blocks_delivered=blocks,
                text_delivered=_text(reply, tokens, _in_all(reply, ended)),
                tool_calls=_offered(reply, open_.offers, blocks),
                tokens_needed=open_.tokens_needed,
            )
        )

    def _closed(self, conn: int) -> None:
        call = self._last_on.get(conn)
        open_ = self._calls.get(call) if call is not None else None
        if call is None or open_ is None or not open_.paid:
            return
        if self._harm.limits(call) in ("stalled", "slowed") and call not in self._hung_up:
            self._harm.closed(call)
            if not open_.whole:
                self._hang_up(call)

    def _hang_up(self, call: int) -> None:
        if call not in self._hung_up:
            self._hung_up.add(call)
            self._history.add(HungUp(call=call))


def _how(
    ended: fact.WriteEnded, cut: PartialDelivery | None, edited: Sequence[str]
) -> Literal["complete", "hung up", "stalled", "cut", "ended early"]:
    if cut is not None:
        return "cut" if cut.how == "cut" else "stalled"
    if ended.how == "hung_up":
        return "hung up"
    return "ended early" if {"early_end", "error_event"} & set(edited) else "complete"


def _blocks(reply: Reply) -> list[Text | ToolCall]:
    return [item for item in reply.items if isinstance(item, Text | ToolCall)]


def _in_all(reply: Reply, ended: fact.WriteEnded) -> int:
    """The tokens of the whole reply; of one that was hung up on, only those until then were generated."""
    return max(ended.output_tokens, output_tokens(reply.items) if ended.how == "hung_up" else 0)


def _text(reply: Reply, tokens: int, generated: int) -> str:
    """The reply's text as far as it was delivered, in proportion to the tokens (a fragment to look for, no record)."""
    text = "".join(item.text for item in reply.items if isinstance(item, Text))
    if tokens >= generated:
        return text
    return text[: len(text) * tokens // max(1, generated)]


def _offered(reply: Reply, offers: Sequence[tuple[str, str, bool]], blocks: int) -> tuple[ToolCallOffered, ...]:
    """The reply's tool calls; those behind the last block that arrived whole were cut."""
    places = [index for index, item in enumerate(_blocks(reply)) if isinstance(item, ToolCall)]
    return tuple(
        ToolCallOffered(token, name, whole and place < blocks)
        for place, (token, name, whole) in zip(places, offers, strict=False)
    )


def retry_after_s(value: float | str | None, now: datetime) -> tuple[float | None, bool]:
    """Retry-After in seconds from `now`, and whether it was a date. Unreadable values ask for nothing."""
    if value is None:
        return None, False
    with contextlib.suppress(ValueError):
        seconds = float(value)
        return (seconds, False) if math.isfinite(seconds) else (None, False)
    with contextlib.suppress(ValueError):
        date = parsedate_to_datetime(str(value))
        return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds(), True
    return None, False
