"""A session works on while another one of the same agent stalls, fails or dies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from wedgehog.harness.invariants.overload import stopped_too_late, too_late
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends
from wedgehog.harness.invariants.user.turn_answered import answered
from wedgehog.harness.record.by_session import strikes_all
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, passed
from wedgehog.harness.record.views import Call, Turn

SOON_S = 1.5
"""A session that waited for another one goes on so soon after that one's call or turn."""


@invariant("session_unharmed", unscaled=("wait_s",), across=True)
def session_unharmed(history: History, *, wait_s: float = 2) -> Iterator[Verdict]:
    """A session that no fault strikes is answered, and waits at most `wait_s` for another session.

    Judged where a run has two sessions, on those that no fault struck. A fault on a server, or on every connection of a
    link, strikes all. A session waits for another one if it does nothing (no call is open, no tool runs, its last call
    did not fail) and goes on as soon as a call or the turn of the other one has ended. The time that the agent took in
    its control run until its first request does not count. Not judged where both are conversations of one user: some
    pages let a user have one answer at a time.

    Fix: Hold no lock that all sessions share while you wait for the model or for a tool: only while a file is written.
    Let such a lock end with its process (`flock`, or a file with the pid that is checked), and give each session its
    own connection, queue and worker.
    """
    if len(history.sessions) < 2 or any(it.end and it.end.stood_before is not None for it in history.turns):
        return
    for name, session in history.sessions.items():
        turns = _unstruck(history, session)
        yield from (_named(name, it) for it in answered(session, turns))
        for turn in turns:
            yield from (_named(name, it) for it in (*_silent(session, turn), *_waited(history, turn, wait_s)))


def _unstruck(history: History, session: History) -> list[Turn]:
    """The turns of a session that no fault struck before their end; none if one was aimed at any of them."""
    mine, first = {turn.number for turn in session.turns}, session.turns[0]
    if any(fired.turn in mine for fired in history.of(FaultFired)) or any(map(_harmed, session.calls)):
        return []
    began = first.stimulus.id if first.stimulus is not None else 0
    beside_first = {turn.number for turn in history.in_parallel(first)}
    of_all = [it for it in history.of(FaultFired) if strikes_all(it) and (it.turn in beside_first or it.id > began)]
    until = min((fired.id for fired in of_all), default=history.end_id)
    over = (turn for turn in session.turns if turn.end is not None and turn.end.id < until)
    return [turn for turn in over if outcome_of(turn, session).kind != "stopped at its limit"]


def _harmed(call: Call) -> bool:
    """Whether the provider refused the call as it was told to, or its reply was cut or changed."""
    refused = call.refused is not None and call.refused.scripted
    return refused or call.damaged or (call.ended is not None and call.ended.how not in ("complete", "hung up"))


def _named(session: str, verdict: Verdict) -> Verdict:
    says = f"session {session}, which no fault struck: {verdict.says}" if verdict.says else ""
    return replace(verdict, says=says)


def _silent(session: History, turn: Turn) -> Iterator[Verdict]:
    """A turn that ended neither with an answer nor with an error; also where it is the first one of its session."""
    came = outcome_of(turn, session)
    if came.kind == "silent":
        stop = turn.deadline or turn.start_missed
        yield stopped_too_late(session, f"{turn} was not answered: {came.how}", ends(turn), stop)


@dataclass(frozen=True, slots=True)
class _Idle:
    """A time in which a session did nothing that can be seen; `usual_s` of it the agent takes anyway."""

    since: Event
    until: Event
    what: str
    usual_s: float = 0.0

    @property
    def seconds(self) -> float:
        """How long it was, without what is usual."""
        return self.until.at_s - self.since.at_s - self.usual_s


def _waited(history: History, turn: Turn, wait_s: float) -> Iterator[Verdict]:
    others = [it for it in history.in_parallel(turn) if it.session != turn.session]
    for idle in _idle(history, turn) if others else ():
        over_s = idle.seconds - history.frozen_s(idle.since.at_s, idle.until.at_s) - history.stretched(wait_s)
        other = _goes_on_after(idle, others)
        if over_s <= 0 or other is None:
            yield passed(because=f"{turn} did not wait longer than allowed for another session")
            continue
        says = f"{turn} waited {idle.seconds:.1f} s {idle.what}, until {other.in_session} let it go on"
        since_s, until_s = idle.since.at_s, idle.until.at_s
        yield too_late(history, says, (idle.since, idle.until), over_s=over_s, since_s=since_s, until_s=until_s)


def _idle(history: History, turn: Turn) -> Iterator[_Idle]:
    """The times in which this turn did nothing."""
    calls, given = turn.main_calls, turn.stimulus
    if given is None or not calls:
        return
    yield _Idle(given, turn.calls[0].arrived, "with its first request", history.run.start_up_s)
    for call, following in pairwise(calls):
        if (since := _done(turn, call)) is not None and since.id < following.arrived.id:
            yield _Idle(since, following.arrived, f"after request {call.number}")
    last = calls[-1].ended
    if turn.end is not None and last is not None and calls[-1].final and turn.deadline is None:
        yield _Idle(last, turn.end, "with its end", history.run.exit_s)


def _done(turn: Turn, call: Call) -> Event | None:
    """The end of a call that came whole, and of the tools that it asked for; None if that is not known."""
    if not call.ok or call.ended is None:
        return None
    tools = [use for use in turn.tool_uses if use.reply is call.ended]
    if any(not use.done for use in tools):
        return None
    return max((call.ended, *(use.done[-1] for use in tools)), key=lambda event: event.id)


def _goes_on_after(idle: _Idle, others: Sequence[Turn]) -> Turn | None:
    """The turn of another session that was under way all the time, and of which something ended just before this."""
    for other in others:
        if other.stimulus is None or other.stimulus.id > idle.since.id:
            continue
        if any(idle.since.id < end.id < idle.until.id and idle.until.at_s - end.at_s <= SOON_S for end in _ends(other)):
            return other
    return None


def _ends(turn: Turn) -> Iterator[Event]:
    """The ends of a turn, of its calls and of its tools."""
    yield from (event for event in (turn.end,) if event is not None)
    for call in turn.calls:
        yield from (event for event in (call.ended, call.hung_up, call.refused) if event is not None)
    for use in turn.tool_uses:
        yield from use.done
