"""What the agent's hang-ups tell of its timers: one of silence, or one of the whole call."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import Call
from wedgehog.reports.calls import place, took_s
from wedgehog.reports.page.answers.history_changes import named
from wedgehog.reports.page.answers.sentences import Sentence, linked
from wedgehog.reports.words import seconds

ALIKE = 0.7
"""Two waits are alike if one is at least this share of the other: on a busy machine the proof of a fault comes late."""
LONGER = 1.2
"""A call is longer than another one by this factor."""
FIRED: Final = re.compile(r"its timer (.+?) fired(?:: | about )")
NAMED: Final = re.compile(r"'([^']+)' \(")


@dataclass(frozen=True, slots=True)
class SlowCall:
    """A call whose bytes kept arriving, slowly, and that did not end whole."""

    call: str
    lived_s: float
    bytes: int
    quiet_s: float
    """The longest time without a byte, at most."""
    hung_up: bool
    """Whether the agent hung up by itself."""


@dataclass(frozen=True, slots=True)
class OtherCall:
    """A slow call in another run of the same agent."""

    scenario: str
    address: str
    """The id of that run's section; empty if it has none."""
    time_scale: float
    call: SlowCall
    fired: frozenset[str]
    """The agent's timers that fired in that run."""


def timers_fired(remarks: Iterable[str]) -> frozenset[str]:
    """The names of the timers that fired in a run, by the judge's remarks.

    >>> sorted(timers_fired(["turn 1: its timer 'idle' (60 s; here 2 s) fired: it ended the turn after 2.05 s"]))
    ['idle']
    """
    said = [it[1] for it in map(FIRED.search, remarks) if it is not None]
    return frozenset(name for names in said for name in NAMED.findall(names))


def slow_call(history: History) -> SlowCall | None:
    """The longest one of a run; None without one."""
    found = [_slow(call) for call in history.calls if _keeps_coming(call)]
    return max(found, key=lambda it: it.lived_s, default=None)


def _slow(call: Call) -> SlowCall:
    ended = call.ended
    size, quiet_s = (ended.bytes_delivered, ended.quiet_s or 0.0) if ended else (0, 0.0)
    hung_up = call.hung_up is not None and not call.stopped_by
    return SlowCall(place(call), took_s(call) or 0.0, size, quiet_s, hung_up)


def _keeps_coming(call: Call) -> bool:
    """Whether bytes still arrived when it ended: no silence in it was nearly as long as it was."""
    quiet_s, lived_s = call.ended.quiet_s if call.ended is not None else None, took_s(call)
    return call.main and quiet_s is not None and lived_s is not None and quiet_s <= ALIKE * lived_s


def hang_ups(history: History, fired: frozenset[str], others: Sequence[OtherCall]) -> Iterator[Sentence]:
    """How long each call lasted on which the agent hung up, and how long nothing had come; `fired`: its timers."""
    mine = [it for it in history.calls if it.hung_up is not None and it.main and not it.stopped_by]
    for slow in [_slow(it) for it in mine if _keeps_coming(it)][:1]:
        yield (
            f"The agent hung up on call {slow.call} {seconds(slow.lived_s)} after the request, while its bytes still "
            f"arrived ({slow.bytes:,} so far, no pause above {seconds(slow.quiet_s)}): that is {_a_timer(fired)} of "
            "the whole call, not one of inactivity."
        )
        if not fired:
            yield "No timer of its spec is known to have fired, so it may be one that the spec does not name."
    if silent := [it for it in mine if not _keeps_coming(it)]:
        yield from _of_silent(silent, history.run.time_scale, fired, others)


def _of_silent(
    mine: Sequence[Call], scale: float, fired: frozenset[str], others: Sequence[OtherCall]
) -> Iterator[Sentence]:
    waits = [_waits_s(call) for call in mine]
    tells = [place(call) for call, (whole_s, quiet_s) in zip(mine, waits, strict=True) if quiet_s < ALIKE * whole_s]
    calls = f"call {place(mine[0])}" if len(mine) == 1 else f"{len(mine):,} calls"
    bodies = [quiet for call, (_, quiet) in zip(mine, waits, strict=True) if _has_body(call)]
    since = f", and at least {_range(bodies)} after the last byte of a body that arrived" if bodies else ""
    empty = (
        f"; no byte of a body had arrived{_in_some(len(mine) - len(bodies), mine)}" if len(bodies) < len(mine) else ""
    )
    yield f"The agent hung up on {calls} {_range(whole for whole, _ in waits)} after the request{since}{empty}."
    if tells:
        yield f"The two times differ in {named(tells)}: compare them with its timers."
        return
    longest_s = max(whole_s for whole_s, _ in waits)
    told = next((it for it in others if _outlives(it.call, it.time_scale, longest_s, scale)), None)
    if told is None:
        alike = "Both times are alike" if bodies else "It had waited for the first byte"
        yield (
            f"{alike}, so a timer of the whole call or one of inactivity fits this run. A reply that trickles would "
            "tell them apart, and no other run of this agent on this page has one that was open for longer."
        )
    else:
        yield _inactivity(told, longest_s, scale, fired)


def _inactivity(other: OtherCall, longest_s: float, scale: float, fired: frozenset[str]) -> Sentence:
    it = other.call
    hung_up = f"until the agent hung up{_by_another(fired, other.fired)}"
    ended = hung_up if it.hung_up else "and the agent did not hang up"
    only_here = ", ".join(f"{name!r}" for name in sorted(fired - other.fired))
    timer = f" Its timer {only_here} fired here, and there is no sign of that there." if only_here else ""
    only_there = ", ".join(f"{name!r}" for name in sorted(other.fired - fired))
    timer += f" There its timer {only_there} fired, which is another one." if only_there else ""
    return [
        f"It is {_a_timer(fired)} of inactivity, not of the whole call. In ",
        linked(other.scenario, other.address),
        f" (the same agent) call {it.call} was open for {_both(it.lived_s, other.time_scale)}, longer than the "
        f"{_both(longest_s, scale)} here, {ended}: its bytes kept arriving ({it.bytes:,}, no pause above "
        f"{seconds(it.quiet_s)}).{timer}",
    ]


def _by_another(here: frozenset[str], there: frozenset[str]) -> str:
    """Why it hung up there although bytes kept coming; without a timer that is known to have fired, it is a guess."""
    if not there:
        return ", so not for inactivity, but perhaps by a timer of the whole call or turn"
    return "" if here & there else " by another timer, one of the whole call"


def _a_timer(fired: frozenset[str]) -> str:
    """The only timer that fired in this run, by its name."""
    return f"its timer {next(iter(fired))!r}, a timer" if len(fired) == 1 else "a timer"


def _outlives(it: SlowCall, its_scale: float, longest_s: float, scale: float) -> bool:
    """Whether it lived longer, in real time and in that of its scenario: a timer may follow the one or the other."""
    real, of_scenario = it.lived_s / longest_s, it.lived_s * its_scale / (longest_s * scale)
    paused = it.quiet_s * its_scale < longest_s * scale and it.quiet_s < longest_s
    return min(real, of_scenario) >= LONGER and paused


def _both(real_s: float, scale: float) -> str:
    return seconds(real_s) + (f" (of the scenario: {seconds(real_s * scale)})" if scale != 1 else "")


def _waits_s(call: Call) -> tuple[float, float]:
    """From the request, and from the last byte that arrived, to the agent's hang-up."""
    over_s = call.hung_up.at_s if call.hung_up is not None else call.at_s
    return over_s - call.at_s, over_s - _last_byte_s(call)


def _range(waits: Iterable[float]) -> str:
    found = list(waits)
    shortest, longest = seconds(min(found)), seconds(max(found))
    return shortest if shortest == longest else f"{shortest} to {longest}"


def _has_body(call: Call) -> bool:
    """Whether a byte of the reply's body arrived."""
    return call.ended is not None and bool(call.ended.bytes_delivered)


def _in_some(empty: int, mine: Sequence[Call]) -> str:
    return "" if empty == len(mine) else f" in {empty:,} of them"


def _last_byte_s(call: Call) -> float:
    """When the last byte of the reply's body that arrived was sent; the request's time if none arrived."""
    if call.ended is None or not call.ended.bytes_delivered:
        return call.at_s
    first_s = call.at_s + (call.ended.first_byte_s or 0.0)
    return max([first_s, *(fired.at_s for fired in call.faults if fired.bytes is not None)])
