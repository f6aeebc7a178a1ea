"""Progress of a campaign: a live line on a terminal, else a line for each finished run."""

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.status import Status

from wedgehog.harness.record.store import Judgement


class LineProgress:
    """Prints to a console, with a live status on a terminal."""

    def __init__(self, runs: int, console: Console, status: Status | None = None) -> None:
        """`runs` is the number of planned runs."""
        self._runs, self._console, self._status = runs, console, status
        self._done = 0
        self._now: list[str] = []

    def say(self, line: str) -> None:
        """Print one message."""
        self._console.print(f"wedgehog: {line}", markup=False)

    def begins(self, what: str) -> None:
        """Add a run to the live line."""
        self._now.append(what)
        self._show()

    def ended(self, what: str, judgement: Judgement | None) -> None:
        """Count a run and print its line."""
        self._now.remove(what)
        if judgement is not None:
            self._done += 1
            expected = {None: "", True: " as expected", False: " UNEXPECTED"}[judgement.as_expected]
            expected = " in doubt" if judgement.in_doubt else expected
            verdict = "skipped" if judgement.skipped else f"{judgement.verdict}{expected}"
            number = f"{self._done}/{self._runs}" if self._done <= self._runs else "again"
            self._console.print(f"[{number}] {what}: {verdict}", markup=False)
        self._show()

    def _show(self) -> None:
        if self._status is not None:
            under_way = ", ".join(self._now[:3]) + (" …" if len(self._now) > 3 else "")
            self._status.update(f"{self._done} of {self._runs} done; {under_way}"[: self._console.width - 4])


@contextlib.contextmanager
def open_progress(runs: int, console: Console) -> Iterator[LineProgress]:
    """Open the progress display of `runs` runs."""
    if console.is_terminal:
        with console.status("starting") as status:
            yield LineProgress(runs, console, status)
    else:
        yield LineProgress(runs, console)
