"""For tests of users: `HistoryBuilder` makes the history of a run; `faults` has the suite for wire faults."""

from wedgehog.harness.testing.history_builder import HistoryBuilder

__all__ = ["HistoryBuilder"]
