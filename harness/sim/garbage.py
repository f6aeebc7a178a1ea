"""How often Python searches for garbage."""

GARBAGE = 20_000
"""So many new objects begin a search; with Python's own number a tenth of an import, or of a run, is such searches."""
