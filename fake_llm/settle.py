"""Decides what a request gets: facts to tell, a wire image to send, and how long to wait before it. No I/O.

request ─▶ dialect ─▶ refuse? ─▶ script ─▶ reply ─▶ frames ─▶ edits ─▶ image
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Final

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.dialects import anthropic, openai_chat
from wedgehog.fake_llm.dialects.base import Dialect, Exchange, Refusal, Response, stop_of
from wedgehog.fake_llm.edits import edit
from wedgehog.fake_llm.frame import Frame
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.image import Image, bodiless, chunked, whole
from wedgehog.fake_llm.listing import side_answer
from wedgehog.fake_llm.observer import Fact, Refused, ReplyStarted
from wedgehog.fake_llm.observer import Unscripted as UnscriptedSeen
from wedgehog.fake_llm.reply import Answer, Failure, Reply, Text, ToolCall
from wedgehog.fake_llm.request import Request, copies
from wedgehog.fake_llm.script import Script, Unscripted
from wedgehog.fake_llm.usage import billed

DIALECTS: Final[tuple[Dialect, ...]] = (anthropic, openai_chat)

_OK: Final = 200
_SERVER_ERROR: Final = 500


@dataclass(frozen=True, slots=True)
class Settled:
    """All that is left to do is to wait `delay_s`, tell `facts` first, and write `image`. `stop`: see ReplyEnded."""

    facts: tuple[Fact, ...]
    image: Image
    delay_s: float = 0
    stop: str = ""


@dataclass(frozen=True, slots=True)
class Settler:
    """What decisions depend on beside the request; `now` is the date that headers tell."""

    script: Script
    strict: bool
    models: Sequence[str] | None
    now: datetime
    closes: bool = False
    http_1_0: bool = False

    def settle(self, request: Request, dialect: Dialect, conversation: Conversation | None) -> Settled:
        """Decide what `request` gets; `conversation` is None where it is none for a reply."""
        if not asks_for_reply(request, dialect):
            return self._aside(request, dialect)
        refusal = dialect.refuse(request, self.models)
        noted: tuple[Fact, ...] = ()
        if refusal:
            if self.strict or conversation is None:
                return self.refused(request, dialect, refusal)
            told = dialect.error(refusal, "")
            pairing = refusal.pairing
            noted = (Refused(request.call, told.status, told.kind, told.message, pairing, False, enforced=False),)
        assert conversation is not None, "a body that cannot be read is always refused"  # noqa: S101
        return self._scripted(request, dialect, conversation, noted)

    def _scripted(
        self, request: Request, dialect: Dialect, conversation: Conversation, noted: tuple[Fact, ...]
    ) -> Settled:
        try:
            answer: Answer = self.script.answer(request.call, conversation)
        except Unscripted as nothing:
            why = str(nothing)
        except Exception as bug:
            why = f"the script failed: {bug!r}"
        else:
            if isinstance(answer, Failure):
                return self._failed(request, dialect, answer, noted)
            return self._replied(request, dialect, conversation, answer, noted)
        noted = (*noted, UnscriptedSeen(request.call, why))
        return self._failed(request, dialect, Failure(_SERVER_ERROR, f"unscripted: {why}"), noted)

    def _replied(
        self,
        request: Request,
        dialect: Dialect,
        conversation: Conversation,
        reply: Reply,
        noted: tuple[Fact, ...],
    ) -> Settled:
        counts = billed(reply, conversation, copies(request.document or {}))
        exchange = Exchange(request, conversation, counts, int(self.now.timestamp()))
        headers = self._headers(request, dialect)
        names: tuple[str, ...] = ()
        if conversation.stream:
            frames = tuple(dialect.stream(reply, exchange))
            edited = edit(frames, reply.edits, dialect, _request_id(request))
            names = edited.names
            image = chunked(edited.frames, headers, endless=edited.endless, closes=self.closes, http_1_0=self.http_1_0)
        else:
            content = any(isinstance(item, Text | ToolCall) for item in reply.items)
            frame = Frame(b"", tokens=counts.output_tokens, completes=content, terminal=True)
            image = whole(_OK, dialect.render(reply, exchange), headers, frame=frame, closes=self.closes)
        started = ReplyStarted(request.call, _OK, counts.input_tokens, conversation.stream, names)
        return Settled((*noted, started), image, reply.delay_s, stop_of(reply))

    def _failed(self, request: Request, dialect: Dialect, failure: Failure, noted: tuple[Fact, ...]) -> Settled:
        refusal = Refusal(failure.status, failure.message or "", failure.kind or "")
        told = dialect.error(refusal, _request_id(request))
        retry_after = _retry_after(failure.retry_after, self.now)
        fact = Refused(request.call, told.status, told.kind, told.message, False, True, failure.retry_after)
        headers = [("Retry-After", retry_after)] if retry_after else []
        return Settled((*noted, fact), self._whole(request, dialect, told, headers), failure.delay_s)

    def refused(self, request: Request, dialect: Dialect, refusal: Refusal) -> Settled:
        """Refuse in the provider's words."""
        told = dialect.error(refusal, _request_id(request))
        fact = Refused(request.call, told.status, told.kind, told.message, refusal.pairing, False)
        return Settled((fact,), self._whole(request, dialect, told))

    def _aside(self, request: Request, dialect: Dialect) -> Settled:
        told = side_answer(request, dialect, self.models, _request_id(request))
        if told is None:
            unknown = Refusal(404, f"Not found: {request.method} {request.path}")
            return self.refused(request, dialect, unknown)
        if told.kind:
            fact = Refused(request.call, told.status, told.kind, told.message, False, False)
            return Settled((fact,), self._whole(request, dialect, told))
        return Settled((), self._whole(request, dialect, told))

    def _whole(
        self, request: Request, dialect: Dialect, told: Response, headers: Sequence[tuple[str, str]] = ()
    ) -> Image:
        all_headers = [*self._headers(request, dialect), *headers]
        image = whole(told.status, told.body, all_headers, closes=self.closes)
        return bodiless(image) if request.method == "HEAD" else image

    def _headers(self, request: Request, dialect: Dialect) -> list[tuple[str, str]]:
        date = format_datetime(self.now, usegmt=True)
        return [("Date", date), (dialect.REQUEST_ID, _request_id(request))]


def asks_for_reply(request: Request, dialect: Dialect) -> bool:
    """Tell if a request is one for a model's reply."""
    return request.method == "POST" and request.path == dialect.PATH


def dialect_of(request: Request) -> Dialect:
    """Find the dialect that a request is written in: by its path, else by its headers."""
    for dialect in DIALECTS:
        if request.path == dialect.PATH or request.path.startswith(f"{dialect.PATH}/"):
            return dialect
    named = "anthropic-version" in request.headers or "x-api-key" in request.headers
    return anthropic if named else openai_chat


def _request_id(request: Request) -> str:
    return f"req_01{made_up('request', request.call, length=22)}"


def _retry_after(value: float | str | None, now: datetime) -> str:
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith("date:"):
        return format_datetime(now + timedelta(seconds=float(value.removeprefix("date:"))), usegmt=True)
    return value if isinstance(value, str) else f"{value:g}"
