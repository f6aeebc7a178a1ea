"""Finds which of a spec's timers has fired: the one whose time fits the measured time.

The agent's words are not enough: an outer timer may end a call whose error names the inner one, and an agent may hide
the error. So each act of the agent (it hangs up on a call, or ends a turn without an answer) is measured first. If
several timers fit, its words decide, then `inside`: after an outer timer the turn does not go on.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wedgehog.harness.agents.spec_keys import Timeout
from wedgehog.harness.record.error_words import uncoloured
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.views import Call, Turn

EARLY_S = 0.1
"""A timer may seem this early: its request was under way before the provider saw it."""
NO_TIME_FITS = "but no call and no turn ended at a time that fits it"
PROMPT_S = 0.15
"""A timer that is at most so late fits better than a later one."""
LATE_SHARE, LATE_S = 0.1, 0.5
"""A timer may be late by this share of its time or by so many seconds: a busy machine acts late."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something that the agent ended by itself, and its possible waiting times, one for each possible beginning."""

    waited_s: tuple[float, ...]
    """The first one is reported."""
    place: str = ""
    """turn.step.attempt of the call on which it hung up; empty for the end of the turn."""
    turn_s: float = 0.0
    """How long the turn had lasted."""
    goes_on: bool = False
    """Whether the turn went on after it."""


def timers_fired(turn: Turn, timers: Sequence[Timeout], history: History) -> Iterator[str]:
    """A sentence for each timer that fired in this turn, or for timers that cannot be told apart."""
    said = _said(turn)
    groups: dict[tuple[str, ...], list[Act]] = {}
    for act in _acts(turn, history):
        chosen = _chosen(act, timers, said, history)
        if chosen:
            groups.setdefault(tuple(named_timer(timer, history) for timer in chosen), []).append(act)
    for names, acts in groups.items():
        unsure = "; which of them cannot be told" if len(names) > 1 else ""
        yield f"{turn}: its timer {' or '.join(names)} fired: {_measured(acts)}{unsure}"
    for timer in timers:
        name = named_timer(timer, history)
        if timer.says and re.search(timer.says, said) and not any(name in names for names in groups):
            yield f"{turn}: its words name its timer {name}, {NO_TIME_FITS}"


def _said(turn: Turn) -> str:
    end = turn.end
    return "" if end is None else uncoloured(f"{end.error}\n{end.stderr}\n{end.raised or ''}\n{end.answer}")


def named_timer(timer: Timeout, history: History) -> str:
    """A timer with its time in the spec and in this run."""
    return f"{timer.name!r} ({timer.s:g} s; here {timer.s / history.run.time_scale:g} s)"


def _measured(acts: Sequence[Act]) -> str:
    waits = sorted(act.waited_s[0] for act in acts)
    after = f"after {waits[0]:.2f} s" + (f" to {waits[-1]:.2f} s" if len(waits) > 1 else "")
    if not acts[0].place:
        return f"it ended the turn {after}"
    if len(acts) > 1:
        return f"it hung up on {len(acts):,} calls {after}"
    return f"it hung up on call {acts[0].place} {after}, {acts[0].turn_s:.2f} s into the turn"


# ---- what was measured


def _acts(turn: Turn, history: History) -> Iterator[Act]:
    calls = [call for call in turn.main_calls if _its_own(call, turn)]
    for call in calls:
        yield _hang_up(call, turn)
    end = turn.end
    if end is None or end.ended != "by itself" or outcome_of(turn, history).kind == "answered":
        return
    if not any(call.hung_up and abs(end.at_s - call.hung_up.at_s) <= LATE_S for call in calls):
        last = [call.ended.at_s for call in turn.main_calls if call.ended][-1:]
        last += [call.at_s for call in turn.main_calls[-1:]]  # its hang-up may be seen after the turn's healing, or not
        tools = [start.at_s for use in turn.tool_uses for start in use.started][-1:]
        yield Act(tuple(end.at_s - since_s for since_s in (*_of_the_turn(turn), *last, *tools)))


def _its_own(call: Call, turn: Turn) -> bool:
    stop = turn.stopped or turn.deadline or turn.killed
    return call.hung_up is not None and not call.stopped_by and (stop is None or call.hung_up.id < stop.id)


def _hang_up(call: Call, turn: Turn) -> Act:
    assert call.hung_up is not None  # noqa: S101  `_its_own` has asked
    over_s, ended_id = call.hung_up.at_s, call.hung_up.id
    goes_on = any(other.arrived.id > ended_id for other in turn.main_calls)
    since = [call.at_s, *(event.at_s for event in (call.started, *call.faults) if event is not None)]
    if not goes_on and turn.end is not None and over_s <= turn.end.at_s + LATE_S:
        since += _of_the_turn(turn)
    at = call.arrived
    place, turn_s = f"{at.turn}.{at.step}.{at.attempt}", over_s - turn.start_s
    return Act(tuple(over_s - it for it in since), place, turn_s, goes_on)


def _of_the_turn(turn: Turn) -> tuple[float, ...]:
    return (turn.start_s, turn.stimulus.at_s) if turn.stimulus is not None else (turn.start_s,)


# ---- which timer that is


def _chosen(act: Act, timers: Sequence[Timeout], said: str, history: History) -> list[Timeout]:
    """The timers that fit; one that fits only with our own lag must also be in the agent's words."""
    prompt, close, loose = (
        [timer for timer in timers if _fits(timer.s / history.run.time_scale, act, least_s, share, lag_s)]
        for least_s, share, lag_s in ((PROMPT_S, 0, 0), (LATE_S, LATE_SHARE, 0), (LATE_S, LATE_SHARE, history.lag_s))
    )
    spoken = [timer for timer in loose if timer.says and re.search(timer.says, said)]
    fitting = [timer for timer in close if timer in spoken] or [*(prompt or close), *spoken]
    if len(fitting) > 1 and act.goes_on:
        names = {timer.name for timer in fitting}
        fitting = [timer for timer in fitting if timer.inside in names] or fitting
    return fitting


def _fits(timer_s: float, act: Act, least_s: float, share: float, lag_s: float) -> bool:
    """Whether the timer may have ended one of the act's waits: late by a share of it or `least_s`, plus our lag."""
    late_s = max(least_s, share * timer_s) + lag_s
    return any(-EARLY_S <= waited_s - timer_s <= late_s for waited_s in act.waited_s)
