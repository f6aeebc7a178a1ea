"""What a break is: something wrong, told into a run, and the bounds under which it is red."""

from collections.abc import Callable, Mapping

from hypothesis import strategies as st

from wedgehog.harness.testing.valid_runs import Play

Number = int | float | bool
Break = Callable[[Play], Mapping[str, Number]]


def pick(play: Play, *ways: Break) -> Mapping[str, Number]:
    """Break it in one of these ways."""
    chosen: Break = play.draw(st.sampled_from(ways))
    return chosen(play)
