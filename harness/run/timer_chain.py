"""The timers of a spec as a chain, from the outermost inward; those that an outer one ends first are named."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.agents.spec_keys import Timeout


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
