"""Describes an agent's nested timers in words, and finds defects in them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.spec_keys import Timeout
from wedgehog.harness.commands.timers.taken import Taken, Turned, same

NEVER_SHARE = 0.9
"""A timer above this share of the look-out time may fire after it."""
_MOST_LISTED = 8
ENDS: Mapping[str, str] = {
    "surfaced": "an error",
    "hidden": "an end without a message",
    "truncated": "half a reply as if it were the answer",
    "answered": "an answer",
    "stopped at its limit": "its own text",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """All measurements of one agent."""

    agent: AgentSpec
    look_out_s: float
    takens: tuple[Taken, ...]
    turned: tuple[Turned, ...] = ()

    def of(self, name: str) -> Taken | None:
        """Return the measurement of a probe, if it was played."""
        return next((it for it in self.takens if it.probe.name == name and not it.skipped), None)

    @property
    def outermost(self) -> Taken | None:
        """The total timer's probe: endless, or a trickle without streaming; None if several replies were complete."""
        it = self.of("total") or self.of("trickle")
        return it if it is not None and (len(it.attempts) == 1 or it.last_cut) else None

    @property
    def total_s(self) -> float | None:
        """The total timer; None: there is none, or no probe shows it."""
        return self.outermost.total_s if self.outermost is not None else None


def lines(measured: Measured) -> Iterator[str]:
    """Yield a line per probe, outermost first, then a line per knob that has an effect."""
    for it in measured.takens:
        yield f"{'' if it.probe.name == 'total' else '  '}{it.probe.name}: {words(it, measured)}"
    for knob in measured.turned:
        if moves := knob.moves(measured.takens):
            yield f"{_turn(knob)}, moves {', '.join(moves)}"


def _turn(knob: Turned) -> str:
    return f"knob {knob.timer.name!r}, turned from {knob.timer.s:g} to {knob.s:g} s"


def words(it: Taken, measured: Measured) -> str:
    """`4.0 s x 3 attempts, waits 0.5 and 1.0 s; 13.6 s in all, then an error [idle]`."""
    if it.skipped:
        return f"not measured: {it.skipped}"
    fired = [timer.name for timer in measured.agent.timeouts if timer.says and re.search(timer.says, it.said)]
    named = f" [{', '.join(fired)}]" if fired and it.total_s is not None else ""
    if it.total_s is None:
        seen = f"; until then {_attempts(it)}" if len(it.attempts) > 1 else ""
        return f"no end within {measured.look_out_s:g} s{seen}"
    then = ENDS.get(it.outcome, it.outcome)
    if not it.attempts:
        return f"about {it.total_s:.1f} s, then {then}{named}"
    return f"{_attempts(it)}{_outer(it, measured)}, then {then}{named}"


def _attempts(it: Taken) -> str:
    count = len(it.attempts)
    many = f"{count} attempt{'s' if count > 1 else ''}"
    size = it.round_size
    shown = it.waits_s if size is None else it.waits_s[: size - 1]
    waits = f", wait{'s' if len(shown) > 1 else ''} {_listed(shown)}" if shown else ""
    if it.overlaps:
        waits = f", {_listed(it.apart_s)} apart"
    if size is not None:
        waits = f" ({count // size} rounds of {size}{waits}, and {_listed(it.waits_s[size - 1 :: size])} between them)"
    if it.about and count > 1:
        return f"{many}, {_listed(it.apart_s)} apart"
    if it.repeats_only:
        return f"{many}{waits}"
    if count == 1:
        return f"{it.lasted_s[0]:.1f} s" if it.lasted_s else f"{it.total_s or 0.0:.1f} s"
    alike = all(same(it.lasted_s[0], other) for other in it.lasted_s)
    lasted = f"{it.lasted_s[0]:.1f} s" if alike else _listed(it.lasted_s)
    return f"{lasted} x {many}{waits}"


def _outer(it: Taken, measured: Measured) -> str:
    total_s = measured.total_s
    in_all = f", {it.total_s:.1f} s in all" if len(it.attempts) > 1 else ""
    if it.probe.repeats or it is measured.outermost or not it.total_s or not total_s or not same(total_s, it.total_s):
        return in_all
    if len(it.attempts) == 1:
        return f" (no timer of its own: the total of {total_s:.1f} s ends it)"
    return f", inside the total of {total_s:.1f} s"


def _listed(seconds: Sequence[float]) -> str:
    first = [f"{s:.1f}" for s in seconds[:_MOST_LISTED]]
    if len(seconds) > _MOST_LISTED:
        return f"{', '.join(first)}, … s"
    return f"{', '.join(first[:-1])} and {first[-1]} s" if len(first) > 1 else f"{first[0]} s"


# ---- defects


def findings(measured: Measured) -> Iterator[str]:
    """Yield the defects: stalls without an end, timers without effect, inner timers that outlive the outer one."""
    yield from _endless(measured)
    yield from _claims(measured)
    yield from _knobs(measured)
    yield from _nested(measured)
    yield from _outliving(measured)


def _endless(measured: Measured) -> Iterator[str]:
    endless = [it for it in measured.takens if not it.skipped and it.total_s is None]
    if endless:
        names = ", ".join(it.probe.name for it in endless)
        yield f"no end within {measured.look_out_s:g} s: {names}"
    idle, pings = measured.of("idle"), measured.of("pings")
    if idle and pings and idle.total_s is not None and pings.total_s is None:
        yield "keep-alives keep it waiting: the timer that ends a silent reply does not end one with pings"


def _claims(measured: Measured) -> Iterator[str]:
    """Yield the timers of the spec that were not seen."""
    turned = {it.timer.name for it in measured.turned}
    for timer in measured.agent.timeouts:
        if timer.name in turned or _seen(timer, measured):
            continue
        if timer.s > NEVER_SHARE * measured.look_out_s:
            yield f"{_named(timer)} was not reached: each stall was observed for {measured.look_out_s:g} s only"
        else:
            yield f"{_named(timer)} has no effect here: nothing ended at {timer.s:g} s{_instead(measured)}"


def _named(timer: Timeout) -> str:
    return f"{timer.name!r} ({timer.s:g} s)"


def _seen(timer: Timeout, measured: Measured) -> bool:
    if timer.says and any(re.search(timer.says, it.said) for it in measured.takens):
        return True
    return any(same(timer.s, s) for it in measured.takens for s in _times(it))


def _times(it: Taken) -> Iterator[float]:
    """Yield the times that a timer can explain: ends, waits, and intervals between attempts."""
    yield from it.waits_s
    if it.about or it.overlaps:
        yield from it.apart_s
    if not it.probe.repeats:
        yield from it.lasted_s
        yield from () if it.total_s is None else (it.total_s,)


def _instead(measured: Measured) -> str:
    ends = [f"{it.probe.name} {it.first_s:.1f} s" for it in measured.takens if it.first_s and not it.probe.repeats]
    return f" ({', '.join(ends)})" if ends else ""


def _knobs(measured: Measured) -> Iterator[str]:
    """Yield the knobs without an effect."""
    for knob in measured.turned:
        looked, unclear = ", ".join(knob.looked(measured.takens)), ", ".join(knob.unclear(measured.takens))
        if knob.moves(measured.takens):
            continue
        if unclear:
            looked = looked or "none"
            yield f"{_turn(knob)}, moves none of the compared probes: {looked}; unclear: {unclear}"
        else:
            turn = f"turned from {knob.timer.s:g} to {knob.s:g} s"
            yield f"knob {knob.timer.name!r} has no effect: {turn}, {looked} stay"


def _nested(measured: Measured) -> Iterator[str]:
    """Yield inner timers that can never fire because the outer one is shorter."""
    timers = {timer.name: timer for timer in measured.agent.timeouts}
    for inner in timers.values():
        outer = timers.get(inner.inside or "")
        if outer is not None and inner.s >= outer.s:
            yield f"{_named(inner)} outlives {_named(outer)}, which contains it: it can never fire"
    for it in measured.takens:
        if it.last_cut and not it.probe.repeats:
            fit = f"{len(it.attempts)} attempts do not fit into {it.total_s:.1f} s"
            yield f"{it.probe.name}: {fit}: the last one was ended after {it.lasted_s[-1]:.1f} s"


OUTLIVES = "its inner timer outlives the outer one"


def _outliving(measured: Measured) -> Iterator[str]:
    """Yield probes where a request stayed open after the agent stopped to wait for it: it is paid without use."""
    for it in measured.takens:
        if it.overlaps:
            yield f"{it.probe.name}: the next attempt began while the one before it was open: {OUTLIVES}"
        elif it.outlived:
            yield f"{it.probe.name}: its request was still open when the turn was over: {OUTLIVES}"
