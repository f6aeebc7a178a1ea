"""Turns the fake provider's facts about bytes and calls into events of turns and steps.

The network decides how much of a reply was *delivered*: the recorder asks the injector whether a fault limits a reply,
and writes the end of such a reply when that has been decided.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wedgehog.fake_llm import observer as fact
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.harness.faults.reply_fault import end_the_body, leave_the_words
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.inject.limited_reply import PartialDelivery
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.call import (
    CallUnscripted,
    HungUp,
    ReplyEnded,
    ReplyEnding,
    ReplyStarted,
    RequestArrived,
    RequestRefused,
)
from wedgehog.harness.record.events.service import TokenAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.run.recording.carried_results import CarriedResults
from wedgehog.harness.run.recording.instructions import Instructions
from wedgehog.harness.run.recording.notices import loss_notices_in, notices_in, notices_lead_on, tool_notices_in
from wedgehog.harness.run.recording.placing import Placing, SentReply
from wedgehog.harness.run.recording.retry_after import retry_after_s

UNREADABLE = Conversation("", "", False, ())
HEADER_CHARS = 200
"""So many characters of a header are recorded."""
CALLS_BETWEEN_LOOKS = 25
"""In virtual time, thousands of calls fit between two ticks of the runner."""


@dataclass(slots=True)
class _RecordedCall(fact.RequestFacts):
    """A request for the model, and what was delivered of its reply."""

    arrived_s: float = 0.0
    """The time of the request's event, so that no time from the request begins at another one."""
    sent_s: float | None = None
    """When the first byte of the reply was sent."""
    ended_s: float = -1.0
    cut: PartialDelivery | None = None
    """Where the network ended the reply, decided while the fake provider still wrote it."""
    end_recorded: bool = False
    whole: bool = False
    hung_up: bool = False

    def first_byte_s(self, delivered: int) -> float | None:
        """Seconds from the request to the first byte, if any byte of the body was delivered."""
        return None if self.sent_s is None or not delivered else max(0.0, self.sent_s - self.arrived_s)


class Recorder:
    """The fake provider's observer: records its facts, and passes its gate on to the injector."""

    def __init__(
        self,
        history: History,
        clock: Clock,
        placing: Placing,
        injector: Injector,
        keep_body: Callable[[bytes], str],
        look: Callable[[], None] = lambda: None,
        *,
        has_tools: bool = False,
        harms_summaries: bool = False,
        rules: str = "",
    ) -> None:
        """`keep_body` stores a request's body and returns its hash; `look` records new beacons before each request.

        `has_tools`: the scenario has tools of our host. `harms_summaries`: a fault strikes requests for a summary.
        `rules` are the project's.
        """
        self._history, self._clock, self._placing, self._injector = history, clock, placing, injector
        self._keep_body, self._look = keep_body, look
        self._calls: dict[int, _RecordedCall] = {}
        self._last_on: dict[int, _RecordedCall] = {}
        self._carried = CarriedResults(placing)
        self._delegated, self._has_tools, self._harms_summaries = False, has_tools, harms_summaries
        self._instructions = Instructions(rules)

    async def gate(self, point: fact.Point) -> Sequence[int]:
        """Ask the injector; what it lets pass is sent at once."""
        stops = await self._injector.gate(point)
        if point.at == fact.BEFORE_HEAD and (call := self._calls.get(point.call)) is not None:
            call.sent_s = self._clock.now()
        return stops

    def saw(self, seen: fact.Fact) -> None:
        """Write the event that a fact stands for, if any."""
        match seen:
            case fact.RequestSeen():
                self._arrived(seen)
            case fact.RequestUnscripted():
                self._history.add(CallUnscripted(call=seen.call, why=seen.why))
            case fact.TokenRequestAnswered():
                self._history.add_unless_sealed(
                    TokenAsked(
                        turn=self._injector.turn,
                        grant=seen.grant,
                        status=seen.status,
                        error=seen.error,
                        token=seen.token,
                    )
                )
            case fact.ConnectionClosed(by_us=False):
                self._closed(seen.conn.id)
            case fact.RefusalSent() | fact.WriteStarted() | fact.WriteEnded() if call := self._calls.get(seen.call):
                call.saw(seen)
                if isinstance(seen, fact.RefusalSent):
                    self._refused(seen)
                elif isinstance(seen, fact.WriteStarted):
                    self._started(seen)
                else:
                    self._ended(call, seen)

    def delivered(self, number: int, cut: PartialDelivery | None) -> None:
        """The network has decided: a faulty reply passed up to `cut` only (None: it passed whole after all)."""
        call = self._calls[number]
        if call.ended is not None:
            self._record_end(call, cut)
        elif cut is not None and cut.how != "slowed":
            call.cut = cut

    def sent(self, call: int) -> SentReply | None:
        """The scripted reply to a request; None if the script has none for it."""
        return self._placing.sent(call)

    def flush(self) -> None:
        """Write the ends that are still open; the run is over."""
        for call in self._calls.values():
            if call.accepted:
                self._record_end(call, None)

    def _arrived(self, seen: fact.RequestSeen) -> None:
        if seen.conversation is None and seen.method != "POST":
            return
        self._calls[seen.call] = self._last_on[seen.conn.id] = _RecordedCall(seen.without_words())
        self._look()
        place, talk = CallPosition(0, 0, 1, "unreadable"), seen.conversation or UNREADABLE
        if seen.conversation is not None:
            place = self._placing.place(seen.call, talk)
        self._delegated = self._delegated or place.side is not None
        read = self._placing.read(talk)
        arrived = self._history.add(
            RequestArrived(
                call=seen.call,
                conn=seen.conn.id,
                wire=seen.wire,
                path=seen.path,
                method=seen.method,
                host=seen.host[:HEADER_CHARS],
                user_agent=seen.user_agent[:HEADER_CHARS],
                model=talk.model,
                stream=talk.stream,
                websocket=seen.websocket,
                turn=place.turn,
                step=place.step,
                attempt=place.attempt,
                background=place.background,
                side=str(place.side or ""),
                quotes=self._placing.quotes(talk),
                notices=self._notices(talk) if self._delegated and not place.background else (),
                notices_lead=notices_lead_on(talk) if self._delegated and not place.background else None,
                tool_notices=tool_notices_in(talk) if self._has_tools and not place.background else None,
                loss_notices=loss_notices_in(talk) if self._harms_summaries and not place.background else None,
                max_tokens=talk.max_tokens,
                key=seen.key,
                body_hash=self._keep_body(seen.body),
                body_bytes=seen.size,
                messages=len(talk.messages),
                system_chars=len(talk.system) if seen.conversation is not None else None,
                system_shared=None if place.background else self._instructions.share_of_system(talk),
                rules_seen=None if place.background else self._instructions.has_rules(talk),
                tools=tuple(tool.name for tool in talk.tools),
                results=self._carried.results(read) + (() if place.background else self._carried.in_text(read)),
                open_calls=self._carried.open_calls(talk),
                turns_seen=place.turns_seen,
                turns_doubled=place.turns_doubled,
                turns_repeated=place.turns_repeated,
                replies_seen=self._placing.replies_in(talk),
                replies_begun=self._placing.replies_begun(talk),
                replies_doubled=self._placing.replies_twice(talk),
            )
        )
        self._calls[seen.call].arrived_s = arrived.at_s
        if seen.call % CALLS_BETWEEN_LOOKS == 0:
            self._injector.demands.put_nowait(("look", None))

    def _notices(self, talk: Conversation) -> tuple[str, ...]:
        return notices_in(talk, self._placing.token_of_result)

    def _refused(self, seen: fact.RefusalSent) -> None:
        if not seen.enforced:
            return
        if not seen.scripted:
            self._injector.refused(seen.call)
        wait, is_date = retry_after_s(seen.retry_after, self._clock.wall())
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
        self._injector.edited(seen.call, seen.edited)
        sent = self._placing.sent(seen.call)
        scripted = sent is not None and sent.reply.usage is not None
        self._history.add(ReplyStarted(call=seen.call, input_tokens=seen.input_tokens, scripted=scripted))

    def _ended(self, call: _RecordedCall, seen: fact.WriteEnded) -> None:
        call.ended_s = self._clock.now()
        number, limits, hung_up = seen.call, self._injector.limits, seen.how == "hung_up"
        lost = hung_up and self._injector.dropped(number)
        if (call.accepted or hung_up) and not limits(number):
            self._record_end(call, call.cut or PartialDelivery(seen.body_bytes, "cut") if lost else None)
        if hung_up and not lost and limits(number) != "cut":
            self._hang_up(call)
            if limits(number) == "slowed":
                self._injector.closed(number)
        self._injector.ended(number, call.accepted)

    def _record_end(self, call: _RecordedCall, cut: PartialDelivery | None) -> None:
        ended = call.ended
        if call.end_recorded or ended is None:
            return
        if cut is not None and cut.how == "slowed" and cut.at >= ended.body_bytes:
            cut = None  # what is slow is not lost: all of it has arrived by now
        edited = call.started.edited if call.started else ()
        call.end_recorded, call.whole = True, cut is None and ended.how == "complete"
        at = ended.body_bytes if cut is None else max(0, min(cut.at, ended.body_bytes))
        arrived = call.marks_within(at)
        sent = self._placing.sent(ended.call) or SentReply()
        # The one mark of a reply in one piece counts all its blocks as one; an edit changes its text, and cuts none.
        whole = call.whole and (not edited or len(ended.frames) == 1)
        tokens = ended.output_tokens if whole else max((mark.tokens for mark in arrived), default=0)
        blocks = len(sent.blocks) if whole else sum(mark.completes for mark in arrived)
        how = _how(ended, cut, edited)
        broken_off = ended.how == "hung_up" or how == "ended early"
        self._history.add(
            ReplyEnded(
                # A cut is proved some time after it: the agent saw it when the last byte had been written.
                at_s=call.ended_s if cut is not None and cut.how == "cut" else -1.0,
                call=ended.call,
                how=how,
                stop="end" if sent.last_words and ended.stop == "tool" else ended.stop,
                output_tokens=ended.output_tokens,
                tokens_delivered=min(tokens, ended.output_tokens),
                body_bytes=ended.body_bytes,
                bytes_delivered=at,
                blocks_delivered=blocks,
                text_delivered=sent.text_within(tokens, ended, broken_off=broken_off),
                tool_calls=sent.offered(blocks),
                tokens_needed=sent.tokens_needed,
                first_byte_s=call.first_byte_s(at),
                damaged=bool(edited),
                says_all=bool(edited) and leave_the_words(edited),
                slowed=cut is not None and cut.how == "slowed",
                headers_delivered=_headers_delivered(ended, cut),
                quiet_s=None if cut is None or cut.quiet_s is None else round(cut.quiet_s, 3),
            )
        )

    def _closed(self, conn: int) -> None:
        call = self._last_on.get(conn)
        if call is None:
            return
        number = call.seen.call
        if self._injector.limits(number) in ("stalled", "slowed") and not call.hung_up:
            self._injector.closed(number)
            if not call.whole:
                self._hang_up(call)

    def _hang_up(self, call: _RecordedCall) -> None:
        if call.accepted and not call.hung_up:
            call.hung_up = True
            self._history.add(HungUp(call=call.seen.call))


def _how(ended: fact.WriteEnded, cut: PartialDelivery | None, edited: Sequence[str]) -> ReplyEnding:
    if cut is not None:
        return "cut" if cut.how == "cut" else "stalled"
    if ended.how == "hung_up":
        return "hung up"
    return "ended early" if end_the_body(edited) else "complete"


def _headers_delivered(ended: fact.WriteEnded, cut: PartialDelivery | None) -> bool | None:
    """Whether status line and headers have certainly arrived; None if that is unknown."""
    if cut is not None:
        return cut.headers and ended.head_bytes > 0
    return True if ended.how == "complete" else None
