"""Decides the answer to a request: facts to report, bytes to send, and a delay before them. No I/O.

request ─▶ dialect ─▶ refuse? ─▶ script ─▶ reply ─▶ frames ─▶ edits ─▶ image
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from email.utils import format_datetime
from functools import lru_cache
from html import escape
from typing import Final

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.dialects.base import Dialect, Exchange, Refusal, Response
from wedgehog.fake_llm.edits import edit, edit_whole, joined
from wedgehog.fake_llm.frame import Frame
from wedgehog.fake_llm.limit import within_limit
from wedgehog.fake_llm.observer import Fact, RefusalSent, RequestUnscripted, WriteStarted
from wedgehog.fake_llm.render_cache import CompiledReply, RenderCache
from wedgehog.fake_llm.reply import BALANCE, Answer, Failure, Reply, Script, Text, ToolCall, UnscriptedError
from wedgehog.fake_llm.request import Request
from wedgehog.fake_llm.usage import billed
from wedgehog.fake_llm.value import value
from wedgehog.fake_llm.wire_reply import WireReply, bodiless, chunked, phrase, whole

_OK: Final = 200
_SERVER_ERROR: Final = 500


@value
class RequestOutcome:
    """Report `facts`, wait `delay_s`, then write `image`. `stop`: see WriteEnded."""

    facts: tuple[Fact, ...]
    image: WireReply
    delay_s: float = 0
    stop: str = ""


@value
class Responder:
    """What an answer depends on beside the request; `now` is the date in headers."""

    script: Script
    strict: bool
    models: Sequence[str] | None
    now: datetime
    cache: RenderCache
    closes: bool = False
    http_1_0: bool = False

    def respond(self, request: Request, dialect: Dialect, conversation: Conversation | None) -> RequestOutcome:
        """Decide the answer to `request`; `conversation` is None if it asks for no reply of a model."""
        if not dialect.asks_for_reply(request):
            return self._aside(request, dialect)
        refusal = dialect.refuse(request, self.models)
        noted: tuple[Fact, ...] = ()
        if refusal:
            if self.strict or conversation is None:
                return self.refused(request, dialect, refusal)
            noted = (_refusal_sent(request, dialect.error(refusal, request), refusal.pairing, enforced=False),)
        assert conversation is not None, "a body that cannot be read is always refused"  # noqa: S101
        return self._scripted(request, dialect, conversation, noted)

    def _scripted(
        self, request: Request, dialect: Dialect, conversation: Conversation, noted: tuple[Fact, ...]
    ) -> RequestOutcome:
        try:
            answer: Answer = self.script.answer(request.call, conversation)
        except UnscriptedError as nothing:
            why = str(nothing)
        except Exception as bug:
            why = f"the script failed: {bug!r}"
        else:
            if isinstance(answer, Failure):
                return self._failed(request, dialect, answer, noted)
            return self._replied(request, dialect, conversation, answer, noted)
        noted = (*noted, RequestUnscripted(request.call, why))
        return self._failed(request, dialect, Failure(_SERVER_ERROR, f"unscripted: {why}"), noted)

    def _replied(
        self,
        request: Request,
        dialect: Dialect,
        conversation: Conversation,
        reply: Reply,
        noted: tuple[Fact, ...],
    ) -> RequestOutcome:
        said = within_limit(reply, conversation)
        counts = billed(said, conversation)
        exchange = Exchange(request, conversation, counts, int(self.now.timestamp()))
        compile_ = self._streamed if conversation.stream else self._in_one_piece
        kind = (self.closes, self.http_1_0)
        compiled = self.cache.compiled(reply, exchange, kind, lambda: compile_(said, dialect, exchange))
        started = WriteStarted(request.call, _OK, counts.input_tokens, conversation.stream, compiled.edited)
        return RequestOutcome((*noted, started), compiled.image, reply.delay_s, said.stop_reason)

    def _streamed(self, reply: Reply, dialect: Dialect, exchange: Exchange) -> CompiledReply:
        framing = dialect.framing(exchange)
        edited = edit(tuple(dialect.stream(reply, exchange)), reply.edits, dialect, exchange)
        frames = joined(edited.frames, framing, ends=edited.endless is None)
        image = chunked(
            frames,
            self._headers(exchange.request, dialect),
            content_type=framing.content_type,
            endless=edited.endless,
            closes=self.closes,
            http_1_0=self.http_1_0,
        )
        return CompiledReply(image, edited.names)

    def _in_one_piece(self, reply: Reply, dialect: Dialect, exchange: Exchange) -> CompiledReply:
        content = any(isinstance(item, Text | ToolCall) for item in reply.items)
        frame = Frame(b"", tokens=exchange.billed.output_tokens, completes=content, terminal=True)
        body, names = edit_whole(dialect.render(reply, exchange), reply.edits)
        image = whole(_OK, body, self._headers(exchange.request, dialect), frame=frame, closes=self.closes)
        return CompiledReply(image, names)

    def _failed(self, request: Request, dialect: Dialect, failure: Failure, noted: tuple[Fact, ...]) -> RequestOutcome:
        told = _told(failure, request, dialect)
        retry_after = _retry_after(failure.retry_after, self.now)
        fact = RefusalSent(request.call, told.status, told.kind, told.message, False, True, failure.retry_after)
        headers = [("Retry-After", retry_after)] if retry_after else []
        return RequestOutcome((*noted, fact), self._whole(request, dialect, told, headers), failure.delay_s)

    def refused(self, request: Request, dialect: Dialect, refusal: Refusal) -> RequestOutcome:
        """Refuse in the provider's words."""
        told = dialect.error(refusal, request)
        return RequestOutcome((_refusal_sent(request, told, refusal.pairing),), self._whole(request, dialect, told))

    def _aside(self, request: Request, dialect: Dialect) -> RequestOutcome:
        told = dialect.aside(request, self.models)
        if told is None:
            return self.refused(request, dialect, Refusal(404, f"Not found: {request.method} {request.path}"))
        facts = (_refusal_sent(request, told),) if told.status >= 400 else ()
        return RequestOutcome(facts, self._whole(request, dialect, told))

    def _whole(
        self, request: Request, dialect: Dialect, told: Response, headers: Sequence[tuple[str, str]] = ()
    ) -> WireReply:
        all_headers = [*self._headers(request, dialect), *headers]
        image = whole(told.status, told.body, all_headers, content_type=told.content_type, closes=self.closes)
        return bodiless(image) if request.method == "HEAD" else image

    def _headers(self, request: Request, dialect: Dialect) -> list[tuple[str, str]]:
        return [("Date", _date(self.now.replace(microsecond=0))), *dialect.headers(request)]


@lru_cache(maxsize=8)
def _date(now: datetime) -> str:
    return format_datetime(now, usegmt=True)


def _refusal_sent(request: Request, told: Response, pairing: bool = False, *, enforced: bool = True) -> RefusalSent:
    return RefusalSent(request.call, told.status, told.kind, told.message, pairing, scripted=False, enforced=enforced)


def _told(failure: Failure, request: Request, dialect: Dialect) -> Response:
    """Write a scripted failure in the provider's shape, or as a gateway's page."""
    if failure.html:
        return _page(failure.status, failure.message)
    if failure.kind == BALANCE:
        return dialect.error(replace(dialect.BROKE, message=failure.message or dialect.BROKE.message), request)
    return dialect.error(Refusal(failure.status, failure.message or "", failure.kind or ""), request)


def _retry_after(value: float | str | None, now: datetime) -> str:
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith("date:"):
        return format_datetime(now + timedelta(seconds=float(value.removeprefix("date:"))), usegmt=True)
    return value if isinstance(value, str) else f"{value:g}"


def _page(status: int, message: str | None = None) -> Response:
    """Write a gateway's HTML page; with status 200 it is a bot check."""
    title = message or ("Just a moment..." if status == 200 else f"{status} {phrase(status)}")
    text = escape(title)
    body = (
        f"<!DOCTYPE html>\n<html>\n<head><title>{text}</title></head>\n"
        f"<body>\n<center><h1>{text}</h1></center>\n<hr><center>nginx</center>\n</body>\n</html>\n"
    )
    return Response(status, body.encode(), "html", title, "text/html")
