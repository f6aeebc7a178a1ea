"""Random choices of the search. The same drawing code runs on a seed and inside a Hypothesis test."""

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

Choice = TypeVar("Choice")


class Choices(Protocol):
    """A source of choices. Hypothesis shrinks each choice towards the first option and the least number."""

    def choose(self, options: Sequence[Choice]) -> Choice:
        """One of the options; simple ones stand first."""
        ...

    def between(self, least: int, most: int) -> int:
        """A whole number, both bounds included."""
        ...


class SeededChoices:
    """Choices that follow from a seed alone, in every process."""

    def __init__(self, seed: str) -> None:
        """Equal seeds make equal choices."""
        self._random = random.Random(seed)  # noqa: S311  no secret depends on it

    def choose(self, options: Sequence[Choice]) -> Choice:
        """One of the options."""
        return options[self._random.randrange(len(options))]

    def between(self, least: int, most: int) -> int:
        """A whole number."""
        return self._random.randint(least, most)

    def shuffled(self, options: Sequence[Choice]) -> list[Choice]:
        """All options in another order."""
        return self._random.sample(options, len(options))


class SmallNumbers:
    """Choices whose numbers stay near their least one: a tool that counts to five hundred takes its time."""

    def __init__(self, draw: Choices) -> None:
        """A number is at most 8 above the least one."""
        self._draw = draw

    def choose(self, options: Sequence[Choice]) -> Choice:
        """One of the options."""
        return self._draw.choose(options)

    def between(self, least: int, most: int) -> int:
        """A whole number."""
        return self._draw.between(least, min(most, least + 8))


class SimplestChoices:
    """Always the simplest choice: what Hypothesis tries first, and would shrink to."""

    def choose(self, options: Sequence[Choice]) -> Choice:
        """The first option."""
        return options[0]

    def between(self, least: int, most: int) -> int:
        """The least number."""
        return least


class HypothesisChoices:
    """Choices of a Hypothesis test, which it can shrink and replay."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        """`draw` is what `st.composite` and `st.data()` give."""
        self._draw = draw

    def choose(self, options: Sequence[Choice]) -> Choice:
        """One of the options."""
        return options[self.between(0, len(options) - 1)]

    def between(self, least: int, most: int) -> int:
        """A whole number."""
        return int(self._draw(_integers(least, most))) if least < most else least


@cache
def _integers(least: int, most: int) -> Any:
    """A strategy is made and checked once: a search asks for the same few thousands of times."""
    from hypothesis import strategies as st

    return st.integers(least, most)
