"""Shared by the commands: stdout and stderr, prompts, findings, progress, and the exit on a user's mistake."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from rich.console import Console

from wedgehog.harness.record.verdict import Level

if TYPE_CHECKING:
    from rich.status import Status

    from wedgehog.harness.record.judgement import Judgement

BAD_USAGE, INTERRUPTED = 2, 130
OutOption = Annotated[Path, typer.Option(help="The folder for run folders.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a campaign's.")]
NetworkOption = Annotated[
    Literal["auto", "toxiproxy", "embedded"],
    typer.Option(envvar="WEDGEHOG_NETWORK", help="The network between agent and provider; it makes the wire faults."),
]
WorldOption = Annotated[
    Literal["live", "sim"],
    typer.Option(help="`sim`: virtual time, for agents that are async functions; ten minutes pass in milliseconds."),
]
LevelOption = Annotated[
    Level | None,
    typer.Option(
        show_default=False,
        help="`safe`: no lie, no waste, recovers. `strict`: also answers if harm passes, honest exit codes, no stack "
        "traces, nothing twice, history kept. Default: the level in the spec, else safe.",
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Runs at the same time (default: one per processor, 6 at most)."),
]


def _loaded(plugins: list[str] | None) -> list[str] | None:
    if plugins:
        from wedgehog.harness.run.plugins import load_plugins

        with user_mistakes():
            load_plugins(plugins)
    return plugins


PluginOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="PLUGIN",
        callback=_loaded,
        help="A Python file or module with your own faults or invariants; it is executed. Repeatable.",
    ),
]


LOG_WIDTH = 10_000
"""Longer than any line."""


class Stdout(Console):
    """A console for tables. A closed pipe (`| head`) does not change verdicts or the exit code."""

    def __init__(self, *, stderr: bool = False, soft_wrap: bool = False) -> None:
        """Disable highlighting. Without a terminal, wrap nothing: a log has no width."""
        plain = bool(os.environ.get("NO_COLOR"))  # rich would still print bold and dim
        super().__init__(
            highlight=False, emoji=False, stderr=stderr, soft_wrap=soft_wrap, color_system=None if plain else "auto"
        )
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = LOG_WIDTH

    def print(self, *words: Any, **how: Any) -> None:
        """Print words in characters that this output can write."""
        from wedgehog.reports.words import speakable

        super().print(*(speakable(it, self.encoding) if isinstance(it, str) else it for it in words), **how)

    def indented(self, words: str, style: str = "", by: int = 4) -> None:
        """Print words of any origin as a paragraph, each of its lines indented."""
        from rich.text import Text

        from wedgehog.reports.words import speakable

        for line in Text(speakable(words, self.encoding), style).wrap(self, max(1, self.width - by)):
            line.rstrip()
            super().print(Text(" " * by) + line, soft_wrap=True)

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
    try:
        yield
    except OSError as wrong:
        fail(f"{wrong.filename}: {wrong.strerror}" if wrong.filename else wrong.strerror or str(wrong))
    except ValueError as wrong:
        fail(str(wrong))
    except _other_mistakes() as wrong:
        fail(str(wrong))


def _other_mistakes() -> tuple[type[Exception], ...]:
    """Other mistakes of the user. Their modules are imported only after an error, so that a start stays fast."""
    from wedgehog.harness.campaign.selection import UsageError
    from wedgehog.harness.network.base import NetworkError
    from wedgehog.harness.run.plugins import PluginError
    from wedgehog.harness.scenario.document import BadFileError

    return BadFileError, UsageError, NetworkError, PluginError


def fail(line: str) -> None:
    """Print one line and exit with code 2."""
    err.print(f"wedgehog: {line}", markup=False)
    raise typer.Exit(BAD_USAGE)


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One finding of a check; without an optional feature some scenarios do not apply."""

    ok: bool
    says: str
    optional: bool = False
    what: str = ""
    """The checked part of the installation; empty for a finding about an agent."""

    @property
    def sign(self) -> str:
        """The mark at the beginning of its line."""
        return "ok  " if self.ok else "n/a " if self.optional and not self.what else "MISS"


def report(findings: Iterable[CheckFinding]) -> NoReturn:
    """Print a line for each finding and exit, with code 1 if a required feature is missing."""
    console, well = Stdout(), True
    for it in findings:
        console.print(f"{it.sign} {it.what}{': ' if it.what else ''}{it.says}", markup=False, soft_wrap=True)
        well = well and (it.ok or it.optional)
    raise typer.Exit(0 if well else 1)


def answered(
    question: str, given: str, wrong: Callable[[str], str], default: str | None = None, *, asks: bool = True
) -> str:
    """Return the option's value, else ask until `wrong` returns no error; without `asks`, the default. ValueError."""

    def valid(text: str) -> str:
        if said := wrong(text.strip()):
            raise ValueError(said) if given else typer.BadParameter(said)
        return text

    if given:
        return valid(given)
    if not asks:
        if default is None:
            what = f"{question[:1].lower()}{question[1:].rstrip(':')}"
            raise ValueError(f"no file in this folder shows how the agent is started; give --command: {what}")
        return default
    try:
        return str(typer.prompt(question, default=default, err=True, prompt_suffix=" ", value_proc=valid))
    except typer.Abort:
        err.print()
        said = "stdin has no input: give --yes, or --name, --wire and --command (--resume is optional)"
        raise ValueError(said) from None


_SOME, _LONG_S = 3, 120
"""The number of played runs from which the rest is estimated, and the seconds from which it is shown in minutes."""


class LineProgress:
    """Prints to a console, with a live status on a terminal."""

    def __init__(
        self,
        runs: int,
        console: Console,
        status: "Status | None" = None,
        *,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`runs` is the number of planned runs; `quiet`: finished runs are not named; `clock` returns seconds."""
        self._runs, self._console, self._status, self._quiet = runs, console, status, quiet
        self._clock, self._began_s = clock, clock()
        self._done = self._played = 0
        self._now: list[str] = []

    def say(self, line: str) -> None:
        """Print one message."""
        self._console.print(f"wedgehog: {line}", markup=False)

    def begins(self, what: str) -> None:
        """Add a run to the live line."""
        self._now.append(what)
        self._show()

    def ended(self, what: str, judgement: "Judgement | None") -> None:
        """Count a run and print its line."""
        self._now.remove(what)
        if judgement is not None:
            self._done += 1
            self._played += not judgement.skipped
            expected = {None: "", True: " as expected", False: " UNEXPECTED"}[judgement.as_expected]
            verdict = "skipped" if judgement.skipped else f"{judgement.verdict}{expected}"
            if judgement.violated and not judgement.as_expected:
                verdict = ": ".join((verdict, ", ".join(judgement.violated)))
            number = f"{self._done}/{self._runs}" if self._done <= self._runs else "again"
            if not self._quiet:
                self._console.print(f"[{number}] {what}: {verdict}", markup=False)
        self._show()

    def _show(self) -> None:
        if self._status is not None:
            under_way = ", ".join(self._now[:3]) + (" …" if len(self._now) > 3 else "")
            done = f"{self._done} of {self._runs} done{self._left()}; {under_way}"
            self._status.update(done[: self._console.width - 4])

    def _left(self) -> str:
        """The estimated time of the remaining runs; a skipped run takes no time."""
        if self._played < _SOME or self._done >= self._runs:
            return ""
        left_s = (self._clock() - self._began_s) / self._played * (self._runs - self._done)
        return f", about {left_s / 60:.0f} min left" if left_s >= _LONG_S else ", less than two minutes left"


@contextlib.contextmanager
def open_progress(runs: int, console: Console, *, quiet: bool = False) -> Iterator[LineProgress]:
    """Open the progress display of `runs` runs."""
    if console.is_terminal and not console.no_color:
        with console.status("starting") as status:
            yield LineProgress(runs, console, status, quiet=quiet)
    else:
        yield LineProgress(runs, console, quiet=quiet)
