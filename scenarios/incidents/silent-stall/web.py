"""The specimen's HTTP: one function with one timer, for all requests. (The original's `web.js`.)"""

import contextlib
import http.client
import math
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import urljoin, urlsplit

INACTIVITY_S = 60.0
FETCH_S = 30.0
PAGE_CHARS = 50_000

NETWORK_ERRORS = (OSError, http.client.HTTPException)
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Pace:
    """The incident's time: durations are in its seconds, and `scale` of them pass in one real second."""

    scale: float

    def now_s(self) -> float:
        """Seconds on a monotonic clock; only differences have a meaning."""
        return time.monotonic() * self.scale

    def real_s(self, duration_s: float) -> float:
        """`duration_s` in real seconds."""
        return duration_s / self.scale


@dataclass(frozen=True, slots=True)
class Response:
    """A complete HTTP response; nothing is streamed."""

    status: int
    headers: Message
    body: bytes


@contextlib.contextmanager
def wall_clock(real_s: float) -> Iterator[None]:
    """A timer that arriving data does not reset; an infinite one is not armed."""

    def expire(_number: int, _frame: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, 0 if math.isinf(real_s) else real_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Http:
    """Raw HTTP/1.1, one connection per request, and the timer that model calls and pages share."""

    def __init__(self, fixes: frozenset[str], pace: Pace) -> None:
        """The fixes here are honour-timeout and total-deadline."""
        self.pace = pace
        self._honours_timeout = "honour-timeout" in fixes
        self._has_total = "total-deadline" in fixes

    def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        total_s: float = math.inf,
    ) -> Response:
        """Send, and read the whole response. `timeout_s` is `options.timeout`, which the original ignores."""
        asked_s = timeout_s if self._honours_timeout else None
        if asked_s and self._has_total:
            total_s = min(total_s, asked_s)
        try:
            with wall_clock(self.pace.real_s(total_s)):
                return self._exchange(method, url, body, headers or {}, asked_s or INACTIVITY_S)
        except TimeoutError:
            raise TimeoutError("Timeout") from None

    def _exchange(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], inactivity_s: float
    ) -> Response:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        link = kind(parts.hostname or "", parts.port)
        try:
            link.connect()
            # Armed only now, like the inactivity timer of a socket: connecting may take forever,
            # and every byte that arrives resets the timer.
            link.sock.settimeout(self.pace.real_s(inactivity_s))
            link.request(method, parts.path or "/", body, {**headers, "Connection": "close"})
            response = link.getresponse()
            return Response(response.status, response.headers, response.read())
        finally:
            link.close()


def web_fetch(web: Http, url: str) -> dict[str, Any]:
    """The tool: a page's text after its redirects. A network error becomes an error *result*, and the turn goes on."""
    try:
        response = _follow(web, url)
    except NETWORK_ERRORS as error:
        return {"error": str(error)}
    return {"status": response.status, "content": response.body.decode(errors="replace")[:PAGE_CHARS]}


def _follow(web: Http, url: str) -> Response:
    """Follow redirects. The deadline is checked between hops; within a hop it is only an option."""
    deadline_s = web.pace.now_s() + FETCH_S
    while (remaining_s := deadline_s - web.pace.now_s()) > 0:
        response = web.request("GET", url, timeout_s=min(remaining_s, FETCH_S))
        if response.status not in REDIRECTS:
            return response
        url = urljoin(url, response.headers["Location"])
    raise TimeoutError("Request timeout (redirect chain)")
