"""A session's request log: the fake provider's facts, as one entry for each request."""

from collections import deque
from datetime import datetime
from typing import Any, Final

from wedgehog.fake_llm.admin.logged_request import LoggedRequest, RequestSummary
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import RequestSeen
from wedgehog.fake_llm.script.position import MainShape

_MOST_KEPT: Final = 10_000


class RequestLog:
    """The last 10,000 requests of a session, in their order."""

    def __init__(self) -> None:
        """Start empty."""
        self.attempts: deque[LoggedRequest] = deque(maxlen=_MOST_KEPT)
        self._asked: dict[int, tuple[int, int | None]] = {}
        """How often the same request came, and its last call."""
        self._main: MainShape | None = None

    def arrived(self, seen: RequestSeen, now: datetime) -> LoggedRequest:
        """Add a request with its position: user messages count turns, tool rounds count steps."""
        attempt = LoggedRequest(seen.without_words(), arrived=now)
        self.attempts.append(attempt)
        if seen.conversation is not None:
            attempt.gist = RequestSummary.of(seen.conversation)
            self._place(attempt, seen.conversation)
            self._look_at(attempt.gist.shape)
        return attempt

    def as_json(self) -> list[dict[str, Any]]:
        """Return all entries as plain data."""
        return [attempt.as_json(self._main) for attempt in self.attempts]

    def _place(self, attempt: LoggedRequest, talk: Conversation) -> None:
        same = hash((talk.wire, talk.model, talk.messages))
        times, attempt.retry_of = self._asked.get(same, (0, None))
        attempt.attempt = times + 1
        self._asked[same] = attempt.attempt, attempt.seen.call
        users = [index for index, message in enumerate(talk.messages) if message.role == "user"]
        since = talk.messages[users[-1] + 1 if users else 0 :]
        attempt.turn = max(1, len(users))
        attempt.step = 1 + sum(1 for message in since if message.tool_calls)

    def _look_at(self, shape: MainShape) -> None:
        """Treat the calls with the most tools as the main calls."""
        if shape.tools and (self._main is None or len(shape.tools) > len(self._main.tools)):
            self._main = shape
