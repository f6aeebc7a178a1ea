"""The simulated shell: what the commands of scenarios do, in virtual time, without a process.

It has a few commands, `sleep` among them; any other is refused by its name before the first one runs.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wedgehog.harness.sim.errors import SimUnsupportedError
from wedgehog.harness.sim.shell_syntax import Background, Command, CommandList, Part, Simple, expand, names, parse

Write = Callable[[bytes], None]
OK, FAILED = 0, 1
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\\": "\\"}


class _ExitError(Exception):
    """`exit`: ends the shell, or the commands in parentheses."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class ShellWorld:
    """What a shell acts on."""

    out: Write
    err: Write
    cwd: Path
    wrote: Callable[[], None]
    """Called when a command has written to a file."""
    spawn: Callable[[Coroutine[Any, Any, int]], object]
    """Runs what is in the background."""
    stretch: float = 1.0
    """The seconds of a command are multiplied by it."""


@dataclass(slots=True)
class Shell:
    """One shell with its variables."""

    world: ShellWorld
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.variables = {"?": "0", **self.variables}

    async def run(self, commands: CommandList) -> int:
        """Run a script; its exit code."""
        try:
            return await self._list(commands)
        except _ExitError as end:
            return end.code

    async def _list(self, commands: CommandList) -> int:
        for before, command in commands:
            if before == ";" or (before == "&&") == (self.code == OK):
                self.variables["?"] = str(await self._one(command))
        return self.code

    @property
    def code(self) -> int:
        """The last exit code."""
        return int(self.variables["?"])

    async def _one(self, command: Command) -> int:
        if isinstance(command, Simple):
            return await self._simple(command)
        if isinstance(command, Background):
            self.world.spawn(Shell(self.world, dict(self.variables)).run(command.body))
            return OK
        return await (Shell(self.world, self.variables).run(command.body) if command.own else self._list(command.body))

    async def _simple(self, command: Simple) -> int:
        for name, value in command.assigned:
            self.variables[name] = expand(value, self.variables)
        if not command.words:
            return OK
        name, *arguments = (expand(word, self.variables) for word in command.words)
        if command.file is None:
            return await builtin(name)(arguments, self.world.err if command.to_error else self.world.out, self)
        written: list[bytes] = []
        code = await builtin(name)(arguments, written.append, self)
        file = self.world.cwd / expand(command.file, self.variables)
        with file.open("ab" if command.append else "wb") as opened:
            opened.write(b"".join(written))
        self.world.wrote()
        return code


# ---- commands

Builtin = Callable[[Sequence[str], Write, Shell], Awaitable[int]]
"""Gets its arguments, its output and its shell; returns its exit code."""


async def _echo(arguments: Sequence[str], out: Write, shell: Shell) -> int:
    text = " ".join(arguments)
    if text.startswith("-") or "\\" in text:
        raise SimUnsupportedError(f"`echo {text}`, which differs between shells,")
    out(f"{text}\n".encode())
    return OK


async def _printf(arguments: Sequence[str], out: Write, shell: Shell) -> int:
    form, *rest = arguments or ("",)
    if odd := re.search(r"%[^s%]|\\[^nt\\0-7]", form):
        raise SimUnsupportedError(f"`printf` with {odd[0]!r}")
    values = iter(rest)

    def meant(found: re.Match[str]) -> str:
        if octal := found["octal"]:
            return bytes([int(octal, 8) % 256]).decode(errors="surrogateescape")
        return _ESCAPES.get(found[0]) or ("%" if found[0] == "%%" else next(values, ""))

    out(re.sub(r"\\(?P<octal>[0-7]{1,3})|\\[nt\\]|%s|%%", meant, form).encode(errors="surrogateescape"))
    return OK


async def _sleep(arguments: Sequence[str], out: Write, shell: Shell) -> int:
    await asyncio.sleep(shell.world.stretch * sum(map(_number, arguments)))
    return OK


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise SimUnsupportedError(f"the number {word!r} in a shell command") from None


async def _seq(arguments: Sequence[str], out: Write, shell: Shell) -> int:
    try:
        *first, end = map(int, arguments)  # a float loses the last digits of a long number
    except ValueError:
        raise SimUnsupportedError(f"`seq {' '.join(arguments)}`") from None
    out("".join(f"{number}\n" for number in range(first[0] if first else 1, end + 1)).encode())
    return OK


async def _exit(arguments: Sequence[str], out: Write, shell: Shell) -> int:
    raise _ExitError(int(_number(arguments[0])) if arguments else shell.code)


async def _true(arguments: Sequence[str], out: Write, shell: Shell) -> int:
    return OK


async def _false(arguments: Sequence[str], out: Write, shell: Shell) -> int:
    return FAILED


BUILTINS: dict[str, Builtin] = {
    "echo": _echo,
    "printf": _printf,
    "sleep": _sleep,
    "seq": _seq,
    "exit": _exit,
    "true": _true,
    ":": _true,
    "false": _false,
}
SHELLS = ("sh", "bash", "dash")


def builtin(name: str) -> Builtin:
    """A command. Raises SimUnsupportedError for one that is not simulated."""
    if name not in BUILTINS:
        raise SimUnsupportedError(f"the command {name!r}")
    return BUILTINS[name]


def script_of(argv: Sequence[str]) -> CommandList:
    """What a program's arguments run. Raises SimUnsupportedError for what is not simulated."""
    name = Path(argv[0]).name
    if name in SHELLS and len(argv) == 3 and argv[1] == "-c":
        found = parse(argv[2])
        for each in names(found):
            builtin(each)
        return found
    builtin(name)
    return ((";", Simple(tuple((Part(word, literal=True),) for word in (name, *argv[1:])))),)
