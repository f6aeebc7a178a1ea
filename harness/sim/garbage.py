"""How often Python searches for garbage."""

import gc

GARBAGE = 20_000
"""This many new objects begin a search; with Python's own number a tenth of a run is such searches."""


def search_rarely() -> None:
    """Begin a search only after so many new objects."""
    young, *older = gc.get_threshold()
    gc.set_threshold(max(young, GARBAGE), *older)
