"""The words of a run by which messages, answers and results are known again."""

import random


class RunTokens:
    """Drawn from a run's seed: the same words for the same seed, scenario and agent."""

    def __init__(self, seed: int | str) -> None:
        """`seed` differs between runs, so that what one run says is never taken for another's."""
        draw = random.Random(seed)  # noqa: S311  they must be repeatable, not secret
        letters = "bcdfghjkmnpqrstvwz"
        self.salt = "w" + "".join(draw.choices(letters, k=4))
        self._root = "".join(draw.choices(letters, k=6))
        self._draw_seed = seed

    def marker(self, turn: int) -> str:
        """One alphanumeric word of at most 12 characters."""
        return f"mk{self._root[:4]}{turn}q"

    def nonce(self, turn: int) -> str:
        """A word that cannot be derived from the marker."""
        draw = random.Random(f"{self._draw_seed} nonce {turn}")  # noqa: S311  likewise
        return "".join(draw.choices("bcdfghjkmnpqrstvwz23456789", k=12))
