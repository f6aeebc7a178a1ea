"""The beacon: a scripted shell command, which sends no bytes on a link, appends a line to a file when it runs."""

import asyncio
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from wedgehog.fake_llm.script.results_in_text import COMMAND_BEGINS
from wedgehog.fake_llm.script.roles import SILENT_COMMANDS
from wedgehog.harness.record.clock import Clock

FILE_NAME = ".wedgehog-beacon"
WATCH_EVERY_S = 0.02

BeaconPhase = Literal["started", "done"]


def wrapped(command: str, token: str, file: Path) -> str:
    """Wrap `command` so that it writes its trace; output, exit status and a trailing `&` keep their meaning.

    `token` is printed last and identifies the result; its name in the file is turn.step.call. Only a silent command
    prints nothing: its result is empty, and known by the id of its call. A command that ends in `&` is done when its
    job ends, while the shell continues at once. One that ends in `& wait` is done when its child process ends, which
    tells of that itself: it may outlive the shell. One that ends with a here-document still does.
    """
    script = _with_trace(command, token, file)
    return f"sh <<'{_TEXT}'\n{script}\n{_TEXT}" if ends_with_its_text(command) else script


def _with_trace(command: str, token: str, file: Path) -> str:
    name, trace = dotted(token), shlex.quote(str(file))
    told = "" if command.strip() in SILENT_COMMANDS else f"printf '%s\\n' {token}; "
    last = f"{told}(exit $wedgehog_status)"
    if ends_in_background(command):
        return _in_background(command, name, trace) + f"wedgehog_status=$?; {last}"
    if job := _AWAITED.fullmatch(command.strip()):
        child = f"{{ {job[1]}\n}}; printf '{name} done %s\\n' $? >> {trace}"
        return f"printf '{name} started\\n' >> {trace}\n{{ {child}; }} & wait; {told}(exit 0)"
    # `exit` and `exec` must end a subshell, not the shell that writes the trace.
    begin, end = ("(", ")") if re.search(r"\b(exit|exec)\b", command) else ("{", "}")
    return (
        f"printf '{name} started\\n' >> {trace}\n"
        f"{begin} {command}\n{end}\n"
        f"wedgehog_status=$?; printf '{name} done %s\\n' $wedgehog_status >> {trace}; {last}"
    )


def in_one_line(command: str, token: str, file: Path) -> str:
    """`wrapped` for agents that read a command up to the end of its line; longer commands keep their lines."""
    mark = _MARK.fullmatch(command)
    begun = f": '{mark[2]}'; {mark[1]}" if mark else command
    if "\n" in begun or "#" in begun:
        return wrapped(command, token, file)
    return _LINE_END.sub(lambda end: f"{end[1]} " if end[1] else "; ", wrapped(begun, token, file))


_MARK = re.compile(r"(.*\S)\s+#\s*(\w+)")
"""A command in one line, and a comment of one word."""
_LINE_END = re.compile(r"([&;]?)\n")
_TEXT = "END_OF_WEDGEHOG"
_AWAITED = re.compile(r"(.*[^&])&\s*wait", re.DOTALL)
"""A job, and its shell that waits for it."""


def _in_background(command: str, name: str, trace: str) -> str:
    """A job is done when all its processes have closed a FIFO: the shell that could `wait` for it has ended by then."""
    return (
        f"printf '{name} started &\\n' >> {trace}\n"
        f'wedgehog_job={trace}.{name}.$$; mkfifo "$wedgehog_job"\n'
        f'sh -c \'cat; echo "$1 done" >> "$2"\' wedgehog-beacon {name} {trace} < "$wedgehog_job" > /dev/null 2>&1 &\n'
        f'{{ rm "$wedgehog_job"; {command}\n}} 9> "$wedgehog_job"\n'
    )


def ends_in_background(command: str) -> bool:
    """Return whether the command's last word is `&`; a comment after it does not count."""
    last = re.sub(r"(^|\s)#[^'\"]*$", "", command.rstrip().rpartition("\n")[2]).rstrip()
    return re.search(r"(?<![&\\])&$", last) is not None


def ends_with_its_text(command: str) -> bool:
    """Return whether the command's last line ends a here-document.

    >>> ends_with_its_text("cat <<'END'\\none\\nEND"), ends_with_its_text("cat <<END\\none\\nEND\\necho END")
    (True, False)
    """
    last = command.rpartition("\n")[2]
    return re.fullmatch(r"\w+", last) is not None and re.search(rf"<<-?\s*['\"\\]?{last}\b", command) is not None


def dotted(token: str) -> str:
    """Return `turn.step.call` of a token: `1.2.1` for `wqbcd1x2x1`."""
    found = re.search(r"(\d+)x(\d+)x(\d+)$", token)
    if found is None:
        raise ValueError(f"{token!r} is not the token of a tool call")
    return ".".join(found.groups())


def tokens_in(text: str) -> tuple[str, ...]:
    """Return `turn.step.call` of each tool call whose token or id stands in a text, or the beginning of its command.

    A title often shows no more of a command.

    >>> tokens_in('{"toolCallId": "wqbcd1x2x1a1", "title": "printf wqbcd1x2x1"}')
    ('1.2.1',)
    >>> tokens_in("printf '1.2.1 started")
    ('1.2.1',)
    """
    return tuple(dict.fromkeys([*map(dotted, _TOKEN.findall(text)), *COMMAND_BEGINS.findall(text)]))


_TOKEN = re.compile(r"(?<![0-9A-Za-z])w[a-z]{4}\d+x\d+x\d+")


@dataclass(frozen=True, slots=True)
class Trace:
    """One line of the beacon's file; only a foreground command that is done has an exit code."""

    token: str
    phase: BeaconPhase
    exit_code: int | None = None
    background: bool = False
    """For `started`: whether the command ends in `&`."""


def read_new(file: Path, offset: int) -> tuple[list[Trace], int]:
    """Return the complete lines after `offset`, and the offset after them."""
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
    """The traces of one run; `seen` is called once for each."""

    file: Path
    seen: Callable[[Trace], None]
    offset: int = 0
    one_line: bool = False
    """Whether each command must stand in one line."""
    _awaited: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether the agent was given a command that writes to it."""

    def wrapped(self, command: str, token: str) -> str:
        """`command` as it is given to the agent; from then on `watch` looks for its trace."""
        self._awaited.set()
        return (in_one_line if self.one_line else wrapped)(command, token, self.file)

    def look(self) -> None:
        """Read new traces. Call it before an event that must not precede a trace: a request, the end of a turn."""
        traces, self.offset = read_new(self.file, self.offset)
        for trace in traces:
            self.seen(trace)

    async def watch(self, clock: Clock) -> None:
        """Read new traces every 20 ms once there can be one, until cancelled."""
        await self._awaited.wait()
        while True:
            self.look()
            await clock.sleep(WATCH_EVERY_S)
