"""Many sessions on one server: each has its own script, request log, gates and balance.

request ─▶ session (by path prefix, else by key) ─▶ balance? ─▶ script ─▶ gates ─▶ request log
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from wedgehog.fake_llm.admin.breakpoints import Breakpoints
from wedgehog.fake_llm.admin.request_log import LoggedRequest, RequestLog
from wedgehog.fake_llm.balance import Balance, BalanceConfig, Price
from wedgehog.fake_llm.clock import ProviderClock, RealClock
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import ConnectionClosed, ConnectionOpened, Fact, Point, WriteEnded, WriteStarted
from wedgehog.fake_llm.observer import RequestSeen as Seen
from wedgehog.fake_llm.reply import BALANCE, Answer, Failure

_MOST_SESSIONS: Final = 1_000


class SessionScript(Protocol):
    """What a session plays: a script, the faults on its replies, and a balance."""

    @property
    def text(self) -> str:
        """The text of its file."""

    @property
    def balance(self) -> BalanceConfig | None:
        """What each session may spend; None: no limit."""

    def answer(self, session: "ProviderSession", attempt: LoggedRequest, conversation: Conversation) -> Answer:
        """Return the answer to a request, or raise UnscriptedError(why)."""

    async def gate(self, attempt: LoggedRequest, point: Point) -> Sequence[int]:
        """Apply faults to a reply at an observer's gate while `attempt.pending` is set; set `attempt.struck`."""


@dataclass(slots=True)
class ProviderSession:
    """The state of one client or test.

    `times` counts the uses of lines with a limited number of uses; `kept` is what the fault of a line has written down.
    """

    name: str
    script: SessionScript
    balance: Balance | None
    request_log: RequestLog = field(default_factory=RequestLog)
    times: Counter[object] = field(default_factory=Counter)
    kept: defaultdict[object, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        balance = self.balance.as_json() if self.balance else None
        return {"session": self.name, "calls": len(self.request_log.attempts), "balance": balance}


class ProviderSessions:
    """The fake provider's script and observer, with the last 1,000 sessions."""

    def __init__(
        self,
        script: SessionScript,
        *,
        price: Price | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        """Start every session with this script; raise ValueError if its balance in dollars has no prices.

        `log` gets one line for each finished request.
        """
        self._log = log
        self.gates = Breakpoints()
        self._price = price
        self._clock: ProviderClock = RealClock()
        self._sessions: dict[str, ProviderSession] = {}
        self._open: dict[int, tuple[ProviderSession, LoggedRequest]] = {}
        self._last_on: dict[int, LoggedRequest] = {}
        self.put(script)

    # ---- for the fake provider

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """Return the session's scripted answer, or a refusal if its balance is used up."""
        session, attempt = self._open[call]
        if session.balance is not None and session.balance.is_spent:
            return Failure(402, kind=BALANCE)
        return session.script.answer(session, attempt, conversation)

    def saw(self, fact: Fact) -> None:
        """Add a fact to its session's request log."""
        match fact:
            case Seen():
                session = self.session(fact.session)
                attempt = self._last_on[fact.conn.id] = session.request_log.arrived(fact, self._clock.wall())
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
                    if self._log is not None:
                        self._log(attempt.line())

    def passes(self, call: int) -> bool:
        """Return True if a reply has no gate and no pending fault."""
        session, attempt = self._open[call]
        return attempt.pending is None and not self.gates.all(session.name)

    async def gate(self, point: Point) -> Sequence[int]:
        """Hold a reply at its gates, then apply its scripted fault."""
        session, attempt = self._open[point.call]
        ahead = await self.gates.passed(session.name, point)
        return ahead if attempt.pending is None else (*ahead, *await session.script.gate(attempt, point))

    # ---- for tests and the admin API

    @property
    def calls_under_way(self) -> int:
        """The number of requests whose reply is not complete."""
        return len(self._open)

    def session(self, name: str) -> ProviderSession:
        """Return the session of this name; create it if there is none."""
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = ProviderSession(name, self._script, self._fresh_balance(self._script))
            if len(self._sessions) > _MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return session

    def all(self, name: str | None = None) -> list[ProviderSession]:
        """Return all sessions, or the one of this name."""
        return list(self._sessions.values()) if name is None else [self.session(name)]

    def script(self, name: str | None = None) -> SessionScript:
        """Return the script of new sessions, or that of one session."""
        return self._script if name is None else self.session(name).script

    def put(self, script: SessionScript, name: str | None = None) -> None:
        """Play another script from the next request on, with a full balance; raise ValueError as `__init__` does."""
        self._fresh_balance(script)
        if name is None:
            self._script = script
        for session in self.all(name):
            session.script, session.balance = script, self._fresh_balance(script)
            session.times.clear()
            session.kept.clear()

    def ledger(self, name: str | None = None) -> list[dict[str, Any]]:
        """Return the requests of all sessions or of one in their order, as plain data."""
        entries = [entry for session in self.all(name) for entry in session.request_log.as_json()]
        return sorted(entries, key=lambda entry: int(entry["call"]))

    def body(self, call: int) -> bytes | None:
        """The body of a request; None if there is no such call, or if it is not one of its session's last 100."""
        found = (session.request_log.body(call) for session in self.all())
        return next((body for body in found if body is not None), None)

    def reset(self, name: str | None = None) -> None:
        """Clear the request log and all positions, open the gates and refill balances; scripts stay."""
        for gate in self.gates.all():
            if name in (None, gate.session):
                self.gates.open(gate)
        for session in self.all(name):
            session.request_log, session.balance = RequestLog(), self._fresh_balance(session.script)
            session.times.clear()
            session.kept.clear()

    def _fresh_balance(self, script: SessionScript) -> Balance | None:
        return script.balance.balance(self._price) if script.balance else None


def _charge(balance: Balance, attempt: LoggedRequest, fact: Fact) -> None:
    """Subtract what a fact bills: input tokens on acceptance, output tokens when they are generated."""
    summary = attempt.summary
    if summary is None or not attempt.accepted:
        return
    if isinstance(fact, WriteStarted):
        balance.spend(summary.model, fact.input_tokens, 0)
    elif isinstance(fact, WriteEnded):
        balance.spend(summary.model, 0, fact.output_tokens)
