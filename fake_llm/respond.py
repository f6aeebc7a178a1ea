"""Decides the answer to a request: facts to report, bytes to send, and a delay before them. No I/O.

request ─▶ dialect ─▶ refuse? ─▶ script ─▶ reply ─▶ frames ─▶ edits ─▶ wire reply
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from html import escape
from typing import Final

from wedgehog.fake_llm import over_websocket
from wedgehog.fake_llm.clock import http_date
from wedgehog.fake_llm.continuation import continued
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.dialects import azure
from wedgehog.fake_llm.dialects.base import Dialect, Exchange, Refusal, Response
from wedgehog.fake_llm.edits import edit, edit_whole, joined
from wedgehog.fake_llm.error_form import in_form
from wedgehog.fake_llm.frame import Frame
from wedgehog.fake_llm.observer import Fact, RefusalSent, RequestUnscripted, WriteStarted
from wedgehog.fake_llm.render_cache import RenderCache
from wedgehog.fake_llm.reply import BALANCE, EXPIRED, Answer, Failure, Reply, Script, Text, ToolCall, UnscriptedError
from wedgehog.fake_llm.request import Request
from wedgehog.fake_llm.stop_sequences import before_stop
from wedgehog.fake_llm.usage import billed, within_limit
from wedgehog.fake_llm.value import value
from wedgehog.fake_llm.wire_reply import WireReply, bodiless, chunked, phrase, whole

_OK: Final = 200
_SERVER_ERROR: Final = 500


@value
class RequestOutcome:
    """Report `facts`, wait `delay_s`, then write `wire_reply`. `stop`: see WriteEnded."""

    facts: tuple[Fact, ...]
    wire_reply: WireReply
    delay_s: float = 0
    stop: str = ""


@value
class Responder:
    """Answers one request; `now` is the date in headers."""

    request: Request
    dialect: Dialect
    script: Script
    strict: bool
    models: Sequence[str] | None
    now: datetime
    cache: RenderCache
    closes: bool = False
    http_1_0: bool = False
    gateway: bool = False

    def respond(self, conversation: Conversation | None) -> RequestOutcome:
        """Decide the answer; `conversation` is None if the request asks for no reply of a model."""
        if not self.dialect.asks_for_reply(self.request):
            return self._aside()
        refusal = self.dialect.refuse(self.request, self.models, gateway=self.gateway)
        noted: tuple[Fact, ...] = ()
        if refusal:
            if self.strict or conversation is None:
                return self.refused(refusal)
            noted = (self._refusal_sent(self.dialect.error(refusal, self.request), refusal.pairing, enforced=False),)
        if self.request.websocket and over_websocket.warms(self.request.document):
            return self._warmed()
        assert conversation is not None, "a body that cannot be read is always refused"  # noqa: S101
        return self._scripted(conversation, noted)

    def _warmed(self) -> RequestOutcome:
        """Answer a request that asks for no reply of the model: an empty response, which the next one may name."""
        nothing, conversation = Reply(), self.dialect.parse(self.request)
        exchange = Exchange(self.request, conversation, billed(nothing, conversation), int(self.now.timestamp()))
        return RequestOutcome((), self._streamed(nothing, exchange))

    def _scripted(self, conversation: Conversation, noted: tuple[Fact, ...]) -> RequestOutcome:
        try:
            answer: Answer = self.script.answer(self.request.call, conversation)
        except UnscriptedError as nothing:
            why = str(nothing)
        except Exception as bug:
            why = f"the script failed: {bug!r}"
        else:
            if isinstance(answer, Failure):
                return self._failed(answer, noted)
            return self._replied(conversation, answer, noted)
        noted = (*noted, RequestUnscripted(self.request.call, why))
        return self._failed(Failure(_SERVER_ERROR, f"unscripted: {why}"), noted)

    def _replied(self, conversation: Conversation, reply: Reply, noted: tuple[Fact, ...]) -> RequestOutcome:
        reply = continued(reply, conversation)
        said = within_limit(before_stop(reply, conversation), conversation)
        counts = billed(said, conversation)
        exchange = Exchange(self.request, conversation, counts, int(self.now.timestamp()))
        compile_ = self._streamed if conversation.stream else self._in_one_piece
        kind = (self.closes, self.http_1_0, self.request.websocket)
        wire_reply = self.cache.compiled(reply, exchange, kind, lambda: compile_(said, exchange))
        started = WriteStarted(self.request.call, _OK, counts.input_tokens, conversation.stream, wire_reply.told.edited)
        return RequestOutcome((*noted, started), wire_reply, reply.delay_s, said.stop_reason)

    def _streamed(self, reply: Reply, exchange: Exchange) -> WireReply:
        framing = self.dialect.framing(exchange)
        edited = edit(tuple(self.dialect.stream(reply, exchange)), reply.edits, self.dialect, exchange)
        if self.request.websocket:
            return over_websocket.streamed(edited, closes=self.closes)
        return chunked(
            joined(edited.frames, framing, ends=edited.endless is None),
            self._headers(),
            content_type=framing.content_type,
            endless=edited.endless,
            edited=edited.names,
            closes=self.closes,
            http_1_0=self.http_1_0,
        )

    def _in_one_piece(self, reply: Reply, exchange: Exchange) -> WireReply:
        content = any(isinstance(item, Text | ToolCall) for item in reply.items)
        frame = Frame(b"", tokens=exchange.billed.output_tokens, completes=content, terminal=True)
        body, names = edit_whole(self.dialect.render(reply, exchange), reply.edits)
        return whole(_OK, body, self._headers(), frame=frame, edited=names, closes=self.closes)

    def _failed(self, failure: Failure, noted: tuple[Fact, ...]) -> RequestOutcome:
        told, call = self._told(failure), self.request.call
        retry_after = _retry_after(failure.retry_after, self.now)
        fact = RefusalSent(call, told.status, told.kind, told.message, False, True, failure.retry_after)
        wait_s = _wait_s(retry_after, self.now)
        of_no_limit = failure.html or failure.as_success or failure.kind == BALANCE
        headers = [] if of_no_limit else self.dialect.failure_headers(told.status, wait_s, self.now)
        if retry_after:
            told = told if of_no_limit or failure.form != "provider" else self.dialect.with_wait(told, wait_s)
            headers += [("Retry-After", retry_after), *azure.in_milliseconds(self.request.headers, wait_s)]
        sent = replace(told, status=_OK) if failure.as_success else told
        return RequestOutcome((*noted, fact), self._whole(sent, headers), failure.delay_s)

    def _told(self, failure: Failure) -> Response:
        """Write a scripted failure in the provider's shape, or as a gateway's page."""
        if failure.html:
            return _page(failure.status, failure.message)
        if failure.kind in (BALANCE, EXPIRED):
            known = self.dialect.BROKE if failure.kind == BALANCE else self.dialect.EXPIRED
            return self.dialect.error(replace(known, message=failure.message or known.message), self.request)
        if failure.overflow:
            return self.dialect.error(self.dialect.too_long(failure.overflow, self.request), self.request)
        if failure.item:
            unusable = self.dialect.unusable(failure.item, self.request)
            return self.dialect.error(replace(unusable, message=failure.message or unusable.message), self.request)
        told = self.dialect.error(Refusal(failure.status, failure.message or "", failure.kind or ""), self.request)
        return in_form(told, failure.form)

    def refused(self, refusal: Refusal) -> RequestOutcome:
        """Refuse in the provider's words."""
        told = self.dialect.error(refusal, self.request)
        return RequestOutcome((self._refusal_sent(told, refusal.pairing),), self._whole(told))

    def _refusal_sent(self, told: Response, pairing: bool = False, *, enforced: bool = True) -> RefusalSent:
        call = self.request.call
        return RefusalSent(call, told.status, told.kind, told.message, pairing, scripted=False, enforced=enforced)

    def _aside(self) -> RequestOutcome:
        told = self.dialect.aside(self.request, self.models)
        if told is None:
            return self.refused(Refusal(404, f"Not found: {self.request.method} {self.request.path}"))
        return RequestOutcome((self._refusal_sent(told),) if told.status >= 400 else (), self._whole(told))

    def _whole(self, told: Response, more: Sequence[tuple[str, str]] = ()) -> WireReply:
        if self.request.websocket:
            events = self.dialect.error_messages(told, dict(more), self.request)
            return over_websocket.refused(events, closes=self.closes)
        headers = [*self._headers(), *more]
        wire_reply = whole(told.status, told.body, headers, content_type=told.content_type, closes=self.closes)
        return bodiless(wire_reply) if self.request.method == "HEAD" else wire_reply

    def _headers(self) -> list[tuple[str, str]]:
        return [("Date", http_date(int(self.now.timestamp()))), *self.dialect.headers(self.request)]


def _retry_after(value: float | str | None, now: datetime) -> str:
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith("date:"):
        return format_datetime(now + timedelta(seconds=float(value.removeprefix("date:"))), usegmt=True)
    return value if isinstance(value, str) else f"{value:g}"


def _wait_s(retry_after: str, now: datetime) -> float:
    """Return the seconds for which a Retry-After asks; without one, or with another text, it is one."""
    with suppress(ValueError):
        return float(retry_after)
    with suppress(ValueError, TypeError):
        return max(0.0, (parsedate_to_datetime(retry_after) - now).total_seconds())
    return 1.0


def _page(status: int, message: str | None = None) -> Response:
    """Write a gateway's HTML page; with status 200 it is a bot check."""
    title = message or ("Just a moment..." if status == 200 else f"{status} {phrase(status)}")
    text = escape(title)
    body = (
        f"<!DOCTYPE html>\n<html>\n<head><title>{text}</title></head>\n"
        f"<body>\n<center><h1>{text}</h1></center>\n<hr><center>nginx</center>\n</body>\n</html>\n"
    )
    return Response(status, body.encode(), "html", title, "text/html")
