"""A program of the simulated world: the tasks that it began, and its signal handlers."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any


class Program:
    """What a process would be."""

    def __init__(self) -> None:
        self.handlers: dict[int, Callable[[], Any]] = {}


PROGRAM: ContextVar[Program | None] = ContextVar("PROGRAM", default=None)
"""The program whose code runs."""
BEGUN_ON: ContextVar[object] = ContextVar("BEGUN_ON", default=None)
"""The event loop of a blocking function on which the code runs, if it does."""
