"""The beacon: no byte crosses a link while a foreign shell tool runs, so scripted commands leave a trace in a file.

`turn.step.call started` and `turn.step.call done` are appended to a file of the agent's working folder, which we watch.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from wedgehog.harness.record.clock import Clock

FILE_NAME = ".wedgehog-beacon"
WATCH_EVERY_S = 0.02

BeaconPhase = Literal["started", "done"]


def wrapped(command: str, token: str, file: Path) -> str:
    """`command` with its trace around it; output, exit status and a trailing `&` keep their meaning.

    `token` is printed last, so that the result is known again; its name in the file is turn.step.call. A command that
    ends in `&` is done when its job is, while the shell goes on at once.
    """
    name, trace = dotted(token), shlex.quote(str(file))
    last = f"printf '%s\\n' {token}; (exit $wedgehog_status)"
    if ends_in_background(command):
        return _in_background(command, name, trace) + f"wedgehog_status=$?; {last}"
    # `exit` ends a shell of its own, and not the one that tells what came of it; so does `exec`.
    begin, end = ("(", ")") if re.search(r"\b(exit|exec)\b", command) else ("{", "}")
    return (
        f"printf '{name} started\\n' >> {trace}\n"
        f"{begin} {command}\n{end}\n"
        f"wedgehog_status=$?; printf '{name} done %s\\n' $wedgehog_status >> {trace}; {last}"
    )


def _in_background(command: str, name: str, trace: str) -> str:
    """Whoever runs in the background holds the end of a pipe that nobody writes to; when all have gone, it is done.

    No `wait` would do: the shell that may wait for the job has gone by then. The watcher holds nobody's output, and is
    no shell that runs the command.
    """
    return (
        f"printf '{name} started &\\n' >> {trace}\n"
        f'wedgehog_job={trace}.{name}.$$; mkfifo "$wedgehog_job"\n'
        f'sh -c \'cat; echo "$1 done" >> "$2"\' wedgehog-beacon {name} {trace} < "$wedgehog_job" > /dev/null 2>&1 &\n'
        f'{{ rm -f "$wedgehog_job"; {command}\n}} 9> "$wedgehog_job"\n'
    )


def ends_in_background(command: str) -> bool:
    """Whether the command's last word is `&`; a comment behind it does not count."""
    last = re.sub(r"(^|\s)#[^'\"]*$", "", command.rstrip().rpartition("\n")[2]).rstrip()
    return re.search(r"(?<![&\\])&$", last) is not None


def dotted(token: str) -> str:
    """`turn.step.call` of a token such as `wqbcd1x2x1`: the three numbers at its end."""
    found = re.search(r"(\d+)x(\d+)x(\d+)$", token)
    if found is None:
        raise ValueError(f"{token!r} is no tool call's token")
    return ".".join(found.groups())


@dataclass(frozen=True, slots=True)
class Trace:
    """One line of the beacon's file; a command that is done has an exit code."""

    token: str
    phase: BeaconPhase
    exit_code: int | None = None
    background: bool = False
    """Of a command that has started: it ends in `&`."""


def read_new(file: Path, offset: int) -> tuple[list[Trace], int]:
    """Whole lines after `offset`, and the offset behind them."""
    try:
        with file.open("rb") as trace:
            trace.seek(offset)
            data = trace.read()
    except FileNotFoundError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return list(_lines(whole)), offset + len(whole)


def _lines(data: bytes) -> Iterator[Trace]:
    for line in data.decode("utf-8", "replace").splitlines():
        found = re.fullmatch(r"(\d+\.\d+\.\d+) (started|done)(?: (\d+)| (&))?", line)
        if found:
            token, phase, code, background = found.groups()
            yield Trace(token, cast(BeaconPhase, phase), None if code is None else int(code), background is not None)


@dataclass
class BeaconFile:
    """The traces of one run, each told to `seen` once."""

    file: Path
    seen: Callable[[Trace], None]
    offset: int = 0

    def look(self) -> None:
        """Tell what is new. Ask before an event that a trace must not seem to follow: a request, the end of a turn."""
        traces, self.offset = read_new(self.file, self.offset)
        for trace in traces:
            self.seen(trace)

    async def watch(self, clock: Clock) -> None:
        """Look again and again, until cancelled."""
        while True:
            self.look()
            await clock.sleep(WATCH_EVERY_S)
