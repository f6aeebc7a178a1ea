"""The effect of a busy machine on a run: all bounds on time, and all counts of calls, are judged with these functions.

A bound is stretched by one second, and a turn within that is in time. Later by no more than the harness's own lag and
the waits for a processor is inconclusive. So overload never makes a pass, and what it can't explain stays red.
"""

import re
from collections.abc import Callable, Iterable

from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.run import CpuWait
from wedgehog.harness.record.events.turn import DeadlineHit, StartMissed
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import told_of
from wedgehog.harness.record.verdict import Verdict, fail, inconclusive, passed
from wedgehog.harness.record.views import Call, Turn

SHORTEST_TIMER_S = 0.5
STARVED_SHARE = 0.2
"""An agent that waits for a processor for this share of a time may see its own timers fire because of that.

In a stall the agent sleeps, and waits for no processor: there a timer measures the stall.
"""
OF_A_TIMER = re.compile(r"time[ds]?[ -]?out|deadline|abort|cancel|too (long|slow)|no (answer|response|reply)", re.I)
"""Words of an agent whose timer has fired."""
WORTH_SAYING_S = 0.05


def too_late(
    history: History, says: str, evidence: Iterable[Event], *, over_s: float, since_s: float, until_s: float
) -> Verdict:
    """A time bound was exceeded by `over_s` between these times: red, unless overload explains it."""
    waited = history.cpu_wait(since_s, until_s)
    if history.too_slow_to_judge_time:
        return inconclusive(f"{says}, but {_why(CpuWait(0, 0, 0), history.lag_s)}", evidence, overload=True)
    if over_s <= min(until_s - since_s, history.lag_s + waited.of_all_s):
        return inconclusive(f"{says}, but {_why(waited, history.lag_s)}", evidence, overload=True)
    return fail(says, evidence)


def stopped_too_late(
    history: History, says: str, evidence: Iterable[Event], stop: DeadlineHit | StartMissed | None
) -> Verdict:
    """A turn was stopped after its time, plus what it had waited for processors."""
    if stop is not None and stop.cpu_wait_s:
        return inconclusive(
            f"{says}, but it and the harness waited {stop.cpu_wait_s:.1f} s for a processor", evidence, overload=True
        )
    return too_late(history, says, evidence, over_s=float("inf"), since_s=0.0, until_s=0.0)  # lag was granted as well


def unless_starved(history: History, says: str, evidence: Iterable[Event], since_s: float, until_s: float) -> Verdict:
    """An error between these times; inconclusive if the agent waited so long that its own timers may be the cause."""
    waited = history.cpu_wait(since_s, until_s)
    if _starved(waited, since_s, until_s):
        return inconclusive(f"{says}, but {_why(waited)}", evidence, overload=True)
    return fail(says, evidence)


def passed_unless_starved(
    history: History, says: str, evidence: Iterable[Event], since_s: float, until_s: float
) -> Verdict:
    """A pass because something was rare; inconclusive if it may be so only because the agent waited for a processor."""
    waited = history.cpu_wait(since_s, until_s)
    if _starved(waited, since_s, until_s):
        return inconclusive(f"{says}, but {_why(waited)}", evidence, overload=True)
    return passed(because=says)


def unless_slowed(history: History, says: str, evidence: Iterable[Event], since_s: float, until_s: float) -> Verdict:
    """An error between these times, in which no fault acted: a timer of the agent measures the harness's waits too.

    No agent has a timer that is as short as `SHORTEST_TIMER_S`.
    """
    waited = history.cpu_wait(since_s, until_s)
    may_be_a_timers = until_s - since_s >= SHORTEST_TIMER_S / history.run.time_scale
    if may_be_a_timers and _is_much(waited.of_all_s, since_s, until_s):
        return inconclusive(f"{says}, but {_why(waited)}", evidence, overload=True)
    return fail(says, evidence)


def unless_timed_out(history: History, turn: Turn, says: str, evidence: Iterable[Event]) -> Verdict:
    """A turn ended in an error, perhaps of a timer of the agent."""
    if turn.end is None or not _may_be_a_timers(turn):
        return fail(says, evidence)
    if late := answered_late(history, turn.calls):
        return inconclusive(f"{says}, but {late}", evidence, overload=True)
    return unless_starved(history, says, evidence, turn.start_s, turn.end.at_s)


def _may_be_a_timers(turn: Turn) -> bool:
    """By its words, or because the agent hung up; not where a refusal or a fault on the last call explains it."""
    refused = any(call.refused is not None and call.refused.pairing for call in turn.main_calls)
    struck = any(call.faults and not call.hung_up for call in turn.main_calls[-1:])
    if turn.end is None or refused or struck or told_of(turn) is not None:
        return False
    said = (turn.end.answer, turn.end.error, turn.end.stderr, turn.end.raised or "")
    return any(call.hung_up for call in turn.main_calls) or bool(OF_A_TIMER.search("\n".join(said)))


def counted(history: History, found: Verdict, check: Callable[[History], Verdict]) -> Verdict:
    """A verdict on the number of calls: red also without those that a waiting agent gave up, green if it had time."""
    if found.status == "pass":
        return _unless_cut_short(history, found)
    starved = {call.number for call in history.calls if _gave_up_starved(history, call)}
    if not starved or found.status != "fail":
        return found
    others = [event for event in history.events if getattr(event, "call", None) not in starved]
    if check(History(events=others).seal()).status == "fail":
        return found
    numbers = ", ".join(map(str, sorted(starved)))
    says = f"{found.says}, but the agent hung up on request {numbers} while it waited for a processor"
    return Verdict("inconclusive", says, found.evidence, found.name, overload=True)


def _unless_cut_short(history: History, found: Verdict) -> Verdict:
    """An agent that waited for a processor until it was stopped might have made more calls."""
    for turn in history.turns:
        # A front end that leaves at an event, such as a tool's start, leaves at the same call on any machine.
        by_the_clock = turn.gave_up if turn.gave_up and turn.gave_up.after_s is not None else None
        stop = by_the_clock or turn.deadline
        waited = history.cpu_wait(turn.start_s, stop.at_s) if stop else None
        if stop and waited and _starved(waited, turn.start_s, stop.at_s):
            says = f"{turn} was stopped after {stop.at_s - turn.start_s:.1f} s, but {_why(waited)}"
            return inconclusive(f"{says}: it might have made more calls", (stop,), overload=True).named(found.name)
    return found


def _gave_up_starved(history: History, call: Call) -> bool:
    """Whether the agent hung up on a call without a fault, while it waited for a processor."""
    if call.hung_up is None or call.faults:
        return False
    until_s = call.hung_up.at_s
    return _starved(history.cpu_wait(call.at_s, until_s), call.at_s, until_s)


def answered_late(history: History, calls: Iterable[Call]) -> str:
    """Says which call the agent gave up although only the harness, on a busy machine, was late; empty for none."""
    for call in calls:
        if call.hung_up is not None and not _was_told_to(history, call):
            since_s, until_s = call.at_s, call.hung_up.at_s
            began_s = min(call.started.at_s, until_s) if call.started is not None else until_s
            waited_s = min(began_s - since_s, history.cpu_wait(since_s, began_s).harness_s)
            if _is_much(waited_s, since_s, until_s):
                return f"the harness began its reply to request {call.number} {waited_s:.1f} s late, on a busy machine"
    return ""


def _was_told_to(history: History, call: Call) -> bool:
    """Whether the agent hung up after its user had stopped the turn, or a kill had ended it: no timer of its own."""
    stops = (stop for turn in history.turns if turn.number == call.arrived.turn for stop in (turn.aborted, turn.killed))
    return call.hung_up is not None and any(stop is not None and stop.id < call.hung_up.id for stop in stops)


def _starved(waited: CpuWait, since_s: float, until_s: float) -> bool:
    return _is_much(waited.total_s, since_s, until_s)


def _is_much(waited_s: float, since_s: float, until_s: float) -> bool:
    return waited_s >= max(STARVED_SHARE * (until_s - since_s), WORTH_SAYING_S)


def _why(waited: CpuWait, lag_s: float = 0.0) -> str:
    """`the harness waited 3.9 s for a processor (the agent 0.8 s), and lagged by 0.1 s`: the longest wait first."""
    parties = {"the agent": waited.agent_s, "Toxiproxy": waited.network_s, "the harness": waited.harness_s}
    waits = sorted(((s, name) for name, s in parties.items() if s >= WORTH_SAYING_S), reverse=True)
    others = ", ".join(f"{name} {s:.1f} s" for s, name in waits[1:])
    said = [f"{name} waited {s:.1f} s for a processor{f' ({others})' if others else ''}" for s, name in waits[:1]]
    if lag_s >= WORTH_SAYING_S or not said:
        said.append(f"the harness itself lagged by {lag_s:.1f} s")
    return ", and ".join(said)
