"""Shared by the commands: stdout and stderr, prompts, and the exit on a user's mistake."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import Annotated, Literal

import typer
from rich.console import Console

from wedgehog.harness.scenario.document import BadFileError

BAD_USAGE, INTERRUPTED = 2, 130
NetworkOption = Annotated[
    Literal["auto", "toxiproxy", "embedded"],
    typer.Option(envvar="WEDGEHOG_NETWORK", help="The network between agent and provider; it makes the wire faults."),
]
WorldOption = Annotated[
    Literal["live", "sim"],
    typer.Option(help="`sim`: virtual time, for agents that are async functions; ten minutes pass in milliseconds."),
]
JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Runs at the same time (default: one per processor, 6 at most)."),
]


class Stdout(Console):
    """A console for tables. A closed pipe (`| head`) does not change verdicts or the exit code."""

    def __init__(self, *, stderr: bool = False, soft_wrap: bool = False) -> None:
        """Disable highlighting."""
        super().__init__(highlight=False, stderr=stderr, soft_wrap=soft_wrap)

    def data(self, text: str) -> None:
        """Print text unchanged, for programs."""
        self.out(text, highlight=False)

    def on_broken_pipe(self) -> None:
        """Discard further output."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


err = Stdout(stderr=True, soft_wrap=True)
"""The console for messages to the user."""


@contextlib.contextmanager
def user_mistakes() -> Iterator[None]:
    """Turn a user's mistake into one line and exit code 2, without a traceback."""
    from wedgehog.harness.network.base import NetworkError
    from wedgehog.harness.run.plugins import PluginError
    from wedgehog.harness.run.selection import UsageError

    try:
        yield
    except (BadFileError, UsageError, NetworkError, PluginError) as wrong:
        fail(str(wrong))
    except OSError as wrong:
        fail(f"{wrong.filename}: {wrong.strerror}" if wrong.filename else wrong.strerror or str(wrong))
    except ValueError as wrong:
        fail(str(wrong))


def fail(line: str) -> None:
    """Print one line and exit with code 2."""
    err.print(f"wedgehog: {line}", markup=False)
    raise typer.Exit(BAD_USAGE)


def answered(question: str, given: str, wrong: Callable[[str], str], default: str | None = None) -> str:
    """Return the option's value, else ask the user until `wrong` returns no error.

    Raises:
        ValueError: the option's value is not valid.
    """
    if given:
        if said := wrong(given.strip()):
            raise ValueError(said)
        return given
    while True:
        text = str(typer.prompt(question, default=default, err=True, prompt_suffix=" "))
        said = wrong(text)
        if not said:
            return text
        err.print(said, markup=False)


def one_of(words: Iterable[str]) -> Callable[[str], str]:
    """Return a check that the text is one of `words`."""
    known = list(words)

    def wrong(text: str) -> str:
        if text in known:
            return ""
        near = get_close_matches(text, known, n=1)
        return f"{text!r} is none of {', '.join(known)}" + (f"; did you mean {near[0]!r}?" if near else "")

    return wrong
