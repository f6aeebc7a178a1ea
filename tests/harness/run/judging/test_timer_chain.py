"""The timers that a spec states, as one sentence of the report."""

from wedgehog.harness.agents.spec_keys import Timeout
from wedgehog.harness.run.judging.timer_remarks import timer_chain


def test_the_chain_is_told_from_the_outermost_inward():
    """A timer that is not shorter than one around it, however far out, is named: the outer one ends first."""
    timers = [
        Timeout(name="idle", s=95, inside="client"),
        Timeout(name="client", s=120, inside="front-end"),
        Timeout(name="budget", s=75, inside="front-end"),
        Timeout(name="front-end", s=90),
    ]
    assert list(timer_chain(timers)) == [
        "Its timers by its spec, outer to inner: 'front-end' (90 s), "
        "'client' (120 s inside 'front-end', not shorter than 'front-end' around it), "
        "'budget' (75 s inside 'front-end'), "
        "'idle' (95 s inside 'client', not shorter than 'front-end' around it); the spec names no other timer"
    ]


def test_timers_beside_each_other_are_no_chain():
    """Nor are none."""
    assert not list(timer_chain([Timeout(name="idle", s=60), Timeout(name="typing", s=120)]))
    assert not list(timer_chain([]))
