"""What a run shows of each timer of the agent's spec: that it fired, that a line of its log names it, or nothing."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from wedgehog.harness.agents.spec_keys import Timeout
from wedgehog.harness.record.events.turn import AgentKilled
from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import Turn
from wedgehog.harness.run.judging.fired_timers import LATE_S, LATE_SHARE, NO_TIME_FITS, named_timer, timers_fired

STAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?")
FRACTION: Final = re.compile(r":\d\d[.,]\d")
STAMP_S: Final = 1.0
"""The time on a line may be cut to a whole second."""


def timer_remarks(timers: Sequence[Timeout], history: History) -> Iterator[str]:
    """A sentence for each sign of a timer, and one for all timers without a sign."""
    said = [
        it
        for turn in history.turns
        for it in (*timers_fired(turn, timers, history), *_front_end(turn, timers, history))
    ]
    stamped = list(_in_the_log(timers, history))
    stamped += list(_not_due(timers, stamped, history))
    told = [name for timer in timers if any((name := named_timer(timer, history)) in it for it in stamped)]
    said = [it for it in said if not (it.endswith(NO_TIME_FITS) and any(name in it for name in told))] + stamped
    yield from said
    names = dict.fromkeys(named_timer(timer, history) for timer in timers)
    silent = [name for name in names if not any(name in it for it in said)]
    if silent:
        yield f"no sign that its timer {' or '.join(silent)} fired in this run"


def _front_end(turn: Turn, timers: Sequence[Timeout], history: History) -> Iterator[str]:
    """The harness plays the front end: its wait may be a timer of the spec."""
    after_s = turn.gave_up.after_s if turn.gave_up is not None else None
    if after_s is None:
        return
    for timer in timers:
        timer_s = timer.s / history.run.time_scale
        if not timer.inside and abs(after_s - timer_s) <= LATE_SHARE * timer_s:
            name = named_timer(timer, history)
            how = f"the front end, which the harness plays, gave up at the end of its wait of {after_s:.2f} s"
            yield f"{turn}: its timer {name} fired: {how}"


def _in_the_log(timers: Sequence[Timeout], history: History) -> Iterator[str]:
    """Lines with a time of their own: how long after which message the agent wrote them."""
    began = _in_utc(datetime.fromisoformat(history.run.started))
    for turn in history.turns:
        for line in turn.end.stderr.splitlines() if turn.end is not None else ():
            stamp = STAMP.search(line)
            written_s = None if stamp is None else _seconds_into(stamp[0], began)
            is_cut = stamp is not None and not FRACTION.search(stamp[0])
            for timer in timers:
                if written_s is not None and timer.says and re.search(timer.says, line):
                    yield from _after_a_message(timer, written_s, history, is_cut=is_cut)


def _after_a_message(timer: Timeout, written_s: float, history: History, *, is_cut: bool) -> Iterator[str]:
    """One sentence; a kill ends the timers of its turn."""
    timer_s = timer.s / history.run.time_scale
    fitting = {
        str(turn): waited_s
        for turn in history.turns
        if turn.stimulus is not None and turn.killed is None
        for waited_s in (written_s - turn.stimulus.at_s,)
        if -STAMP_S <= waited_s - timer_s <= max(LATE_S, LATE_SHARE * timer_s)
    }
    if fitting:
        waited_s = next(iter(fitting.values()))
        which, name = " or ".join(fitting), named_timer(timer, history)
        fired = f"{waited_s:.1f} to {waited_s + STAMP_S:.1f} s" if is_cut else f"about {waited_s:.1f} s"
        yield f"{which}: by the time on its own line, its timer {name} fired {fired} after the message"


def _not_due(timers: Sequence[Timeout], stamped: Sequence[str], history: History) -> Iterator[str]:
    """Of a timer that counts from the message: the messages after which the agent ran for less than its time."""
    for timer in timers:
        name = named_timer(timer, history)
        if not any(name in it for it in stamped):
            continue
        waits = {turn: _ran_s(turn, history) for turn in history.turns if turn.stimulus is not None}
        early = {str(turn): s for turn, s in waits.items() if s < timer.s / history.run.time_scale - STAMP_S}
        if early:
            ran = ", ".join(f"{s:.2f} s" for s in early.values())
            lines = _of_earlier(timer, [turn for turn in waits if str(turn) in early])
            why = f"as the agent ran only {ran} after the message{lines}"
            yield f"{', '.join(early)}: its timer {name} was not due, {why}"


def _of_earlier(timer: Timeout, early: Sequence[Turn]) -> str:
    """That its words stand in the output of such a turn, although their time is that of an earlier message."""
    ended = [(str(turn), turn.end.stderr) for turn in early if turn.end is not None]
    said = ", ".join(turn for turn, stderr in ended if timer.says and re.search(timer.says, stderr))
    return f". The line about it in the output of {said} belongs, by its time, to an earlier message" if said else ""


def _ran_s(turn: Turn, history: History) -> float:
    """From a turn's message to the next kill, else to the end of the run."""
    given = turn.stimulus
    if given is None:
        return 0.0
    kills = (it.at_s for it in history.of(AgentKilled) if it.id > given.id)
    return next(kills, history.events[-1].at_s) - given.at_s


def _seconds_into(stamp: str, began: datetime) -> float | None:
    try:
        written = datetime.fromisoformat(stamp.replace(",", "."))
    except ValueError:
        return None
    return (_in_utc(written) - began).total_seconds()


def _in_utc(moment: datetime) -> datetime:
    """A time without a zone is read as UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def timer_chain(timers: Sequence[Timeout]) -> Iterator[str]:
    """One sentence; none if no timer is inside another one."""
    known = {timer.name: timer for timer in timers}
    inner = [timer for timer in timers if timer.inside in known]
    if not inner:
        return
    depths = sorted(timers, key=lambda timer: len(list(_around(timer, known))))
    chain = ", ".join(_link(timer, known) for timer in depths)
    yield f"Its timers by its spec, outer to inner: {chain}; the spec names no other timer"


def _around(timer: Timeout, known: dict[str, Timeout]) -> Iterator[Timeout]:
    """The timers around one, the nearest first."""
    seen = {timer.name}
    while timer.inside in known and timer.inside not in seen:
        timer = known[timer.inside]
        seen.add(timer.name)
        yield timer


def _link(timer: Timeout, known: dict[str, Timeout]) -> str:
    shorter = next((outer for outer in _around(timer, known) if outer.s <= timer.s), None)
    inverted = f", not shorter than {shorter.name!r} around it" if shorter is not None else ""
    inside = f" inside {timer.inside!r}" if timer.inside in known else ""
    return f"{timer.name!r} ({timer.s:g} s{inside}{inverted})"
