"""Many sessions on one server: each has a story, a ledger, gates and a balance of its own.

request ─▶ session (by path prefix, else by key) ─▶ balance? ─▶ story ─▶ gates ─▶ ledger

>>> sessions = Sessions(Told(script))  # doctest: +SKIP
>>> async with FakeLLM(sessions, sessions) as llm: ...  # doctest: +SKIP
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from wedgehog.fake_llm.admin.balance import Balance, BalanceConfig, Price
from wedgehog.fake_llm.admin.breakpoints import Breakpoints
from wedgehog.fake_llm.admin.logged_request import LoggedRequest
from wedgehog.fake_llm.admin.request_log import RequestLog
from wedgehog.fake_llm.clock import ProviderClock, RealClock
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import ConnectionClosed, ConnectionOpened, Fact, Point, WriteEnded, WriteStarted
from wedgehog.fake_llm.observer import RequestSeen as Seen
from wedgehog.fake_llm.reply import BALANCE, Answer, Failure
from wedgehog.fake_llm.script.protocol import Script

_MOST_SESSIONS: Final = 1_000


class Story(Protocol):
    """What sessions play: a script, what harms its replies, and what may be spent."""

    @property
    def text(self) -> str:
        """The file that it was read from."""

    @property
    def balance(self) -> BalanceConfig | None:
        """What each session may spend; None: as much as it likes."""

    def answer(self, session: ProviderSession, attempt: LoggedRequest, conversation: Conversation) -> Answer:
        """Say what a request gets, or raise Unscripted(why)."""

    async def gate(self, attempt: LoggedRequest, point: Point) -> Sequence[int]:
        """Harm a reply, as an observer's gate does; what was done is noted in `attempt.struck`.

        Asked as long as there is something in `attempt.pending`.
        """


@dataclass(frozen=True, slots=True)
class SessionScript:
    """A story without harm: a script alone."""

    script: Script
    text: str = ""
    balance: BalanceConfig | None = None

    def answer(self, session: ProviderSession, attempt: LoggedRequest, conversation: Conversation) -> Answer:
        """Say what the script says."""
        return self.script.answer(attempt.seen.call, conversation)

    async def gate(self, attempt: LoggedRequest, point: Point) -> Sequence[int]:
        """Let it pass."""
        return ()


@dataclass(slots=True)
class ProviderSession:
    """What one client, or one test, has for itself; `times` counts what the story did only so often."""

    name: str
    story: Story
    balance: Balance | None
    books: RequestLog = field(default_factory=RequestLog)
    times: Counter[object] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        balance = self.balance.as_json() if self.balance else None
        return {"session": self.name, "calls": len(self.books.attempts), "balance": balance}


class ProviderSessions:
    """The fake provider's script and its observer; the oldest session goes where there would be over 1,000."""

    def __init__(self, story: Story, *, price: Price | None = None, clock: ProviderClock | None = None) -> None:
        """Every session begins with this story; `price` knows what models cost.

        Raises:
            ValueError: the story has a balance in dollars, and there are no prices for it.
        """
        self.gates = Breakpoints()
        self._price = price
        self._clock = clock or RealClock()
        self._sessions: dict[str, ProviderSession] = {}
        self._open: dict[int, tuple[ProviderSession, LoggedRequest]] = {}
        self._last_on: dict[int, LoggedRequest] = {}
        self.put(story)

    # ---- what the fake provider asks

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """Say what the session's story says, as long as it can pay."""
        session, attempt = self._open[call]
        if session.balance is not None and session.balance.is_spent:
            return Failure(402, kind=BALANCE)
        return session.story.answer(session, attempt, conversation)

    def saw(self, fact: Fact) -> None:
        """Enter it into the ledger of the session that it belongs to."""
        match fact:
            case Seen():
                session = self.session(fact.session)
                attempt = self._last_on[fact.conn.id] = session.books.arrived(fact, self._clock.wall())
                self._open[fact.call] = session, attempt
            case ConnectionClosed(conn=conn):
                last = self._last_on.pop(conn.id, None)
                if last is not None:
                    last.saw_by(self._clock, fact)
            case ConnectionOpened():
                pass
            case _ if fact.call in self._open:
                session, attempt = self._open[fact.call]
                attempt.saw_by(self._clock, fact)
                if session.balance is not None:
                    _charge(session.balance, attempt, fact)
                if isinstance(fact, WriteEnded):
                    del self._open[fact.call]

    def passes(self, call: int) -> bool:
        """Tell if a reply meets no gate, and its story does nothing to it."""
        session, attempt = self._open[call]
        return attempt.pending is None and not self.gates.all(session.name)

    async def gate(self, point: Point) -> Sequence[int]:
        """Hold a reply at the gates that it meets, then harm it as its story wants."""
        session, attempt = self._open[point.call]
        ahead = await self.gates.passed(session.name, point)
        return ahead if attempt.pending is None else (*ahead, *await session.story.gate(attempt, point))

    # ---- what tests and people ask

    @property
    def calls_under_way(self) -> int:
        """How many requests have no whole reply yet."""
        return len(self._open)

    def session(self, name: str) -> ProviderSession:
        """Return a session, a new one where there is none of this name."""
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = ProviderSession(name, self._story, self._fresh_balance(self._story))
            if len(self._sessions) > _MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return session

    def all(self, name: str | None = None) -> list[ProviderSession]:
        """Return the sessions that there are, or the one of this name."""
        return list(self._sessions.values()) if name is None else [self.session(name)]

    def story(self, name: str | None = None) -> Story:
        """Return the story that sessions begin with, or that of one session."""
        return self._story if name is None else self.session(name).story

    def put(self, story: Story, name: str | None = None) -> None:
        """Play another story from the next request on, in all sessions or in one; its balance is whole again.

        Raises:
            ValueError: it has a balance in dollars, and there are no prices for it.
        """
        self._fresh_balance(story)
        if name is None:
            self._story = story
        for session in self.all(name):
            session.story, session.balance = story, self._fresh_balance(story)
            session.times.clear()

    def ledger(self, name: str | None = None) -> list[dict[str, Any]]:
        """Return an entry for each request of all sessions or of one, in their order, as plain data."""
        entries = [entry for session in self.all(name) for entry in session.books.as_json()]
        return sorted(entries, key=lambda entry: int(entry["call"]))

    def reset(self, name: str | None = None) -> None:
        """Forget the ledger and all positions, open the gates and make balances whole; stories stay."""
        for gate in self.gates.all():
            if name in (None, gate.session):
                self.gates.open(gate)
        for session in self.all(name):
            session.books, session.balance = RequestLog(), self._fresh_balance(session.story)
            session.times.clear()

    def _fresh_balance(self, story: Story) -> Balance | None:
        return story.balance.balance(self._price) if story.balance else None


def _charge(balance: Balance, attempt: LoggedRequest, fact: Fact) -> None:
    """Draw what a fact bills: the input once a request is accepted, the output once it is generated."""
    gist = attempt.gist
    if gist is None or not attempt.accepted:
        return
    if isinstance(fact, WriteStarted):
        balance.spend(gist.model, fact.input_tokens, 0)
    elif isinstance(fact, WriteEnded):
        balance.spend(gist.model, 0, fact.output_tokens)
