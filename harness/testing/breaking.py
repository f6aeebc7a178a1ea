"""What a break is: something wrong, told into a run, and the bounds under which it is red."""

from collections.abc import Callable, Mapping

from hypothesis import strategies as st

from wedgehog.harness.testing.valid_runs import RunDraw

BoundValue = int | float | bool
Violation = Callable[[RunDraw], Mapping[str, BoundValue]]


def pick(play: RunDraw, *ways: Violation) -> Mapping[str, BoundValue]:
    """Break it in one of these ways."""
    chosen: Violation = play.draw(st.sampled_from(ways))
    return chosen(play)
