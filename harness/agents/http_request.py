"""One HTTP request to a service, and its reply."""

import codecs
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import aiohttp

from wedgehog.harness.agents.service_spec import Http, HttpCall
from wedgehog.harness.agents.templates import expand_all
from wedgehog.harness.sandbox.arrivals import Arrivals

LOOK_WITHIN_S = 2.0
"""A service that does not answer within this time is not ready yet."""
NO_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)
"""The scenario sets the time limits, not the client library."""
STREAMS = frozenset({"application/jsonl", "application/x-ndjson", "text/event-stream"})
"""Content types of replies that begin before the answer is known."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """Status and body of a reply."""

    status: int
    text: str
    whole_s: float | None = None
    """When the last byte of its text came, but for blank ones, by the time of the event loop."""
    streamed: bool = False
    """Whether it is a stream of events or lines, whose status comes first."""


async def ask(
    url: str, request: HttpCall | Http, values: Mapping[str, str], patience: aiohttp.ClientTimeout
) -> HttpReply:
    """Send a request on its own connection. `values` fill its templates, and have the message.

    The HTTP client never repeats a POST. Errors: aiohttp.ClientError, OSError, TimeoutError.
    """
    values = {**values, "message_id": _id_of(values["message"])}
    method = request.method if isinstance(request, HttpCall) else "POST"
    body, headers = expand_all(request.body, values), expand_all(request.headers, values)
    given: dict[str, Any] = {} if body is None else {"json": body}
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), timeout=patience) as client,
        client.request(method, url, headers=headers, **given) as reply,
    ):
        arrived = Arrivals()
        async for piece in reply.content.iter_any():
            arrived.add(piece)
        text = arrived.data.decode(_encoding(reply), "replace")
        return HttpReply(reply.status, text, arrived.words_s, reply.content_type in STREAMS)


async def why_not_ready(base: str, path: str) -> str:
    """What is missing, empty if nothing is: not every service has a health page, or knows GET (501)."""
    patience = aiohttp.ClientTimeout(total=LOOK_WITHIN_S)
    try:
        async with aiohttp.ClientSession(timeout=patience) as client, client.get(base + path) as reply:
            is_up = reply.status < 500 or reply.status == 501
            return "" if is_up else f" (GET {path} answered {reply.status})"
    except (aiohttp.ClientError, OSError, TimeoutError):
        return " (no answer)"


def described(bad: BaseException) -> str:
    """An exception in one line."""
    return f"{type(bad).__name__}: {bad}" if str(bad) else type(bad).__name__


def _id_of(text: str) -> str:
    """The id of a message: no two messages of a run have the same words."""
    return str(uuid5(NAMESPACE_OID, text))


def _encoding(reply: aiohttp.ClientResponse) -> str:
    """What its head says, if Python knows that; else UTF-8."""
    with suppress(LookupError):
        return codecs.lookup(reply.charset or "utf-8").name
    return "utf-8"
