"""The simulated shell: what the commands of scenarios do, in virtual time, without a process.

It knows a few commands, `sleep` among them; any other is refused by its name before the first one runs.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from wedgehog.harness.sim.errors import SimUnsupportedError
from wedgehog.harness.sim.shell_syntax import CommandList, Group, Part, Simple, expand, names, parse

Write = Callable[[bytes], None]
OK, FAILED = 0, 1
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\\": "\\"}


class _ExitError(Exception):
    """`exit`: ends the shell, or the commands in parentheses."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Shell:
    """One shell: its variables, its folder and its output."""

    def __init__(
        self, out: Write, cwd: Path, wrote: Callable[[], None], variables: dict[str, str], stretch: float = 1.0
    ) -> None:
        """`wrote` is called when a command has written to a file; its seconds are multiplied by `stretch`."""
        self._out, self._cwd, self._wrote, self.stretch = out, cwd, wrote, stretch
        self._variables = {**variables, "?": "0"}

    async def run(self, commands: CommandList) -> int:
        """Run a script; its exit code."""
        try:
            return await self._list(commands)
        except _ExitError as end:
            return end.code

    async def _list(self, commands: CommandList) -> int:
        for before, command in commands:
            if before == ";" or (before == "&&") == (self.code == OK):
                self._variables["?"] = str(await self._one(command))
        return self.code

    @property
    def code(self) -> int:
        """The last exit code."""
        return int(self._variables["?"])

    async def _one(self, command: Simple | Group) -> int:
        if isinstance(command, Simple):
            return await self._simple(command)
        if not command.own:
            return await self._list(command.body)
        inner = Shell(self._out, self._cwd, self._wrote, self._variables, self.stretch)
        inner._variables["?"] = self._variables["?"]
        return await inner.run(command.body)

    async def _simple(self, command: Simple) -> int:
        for name, value in command.assigned:
            self._variables[name] = expand(value, self._variables)
        if not command.words:
            return OK
        name, *arguments = (expand(word, self._variables) for word in command.words)
        if command.file is None:
            return await builtin(name)(arguments, self._out, self)
        written: list[bytes] = []
        code = await builtin(name)(arguments, written.append, self)
        with (self._cwd / expand(command.file, self._variables)).open("ab" if command.append else "wb") as file:
            file.write(b"".join(written))
        self._wrote()
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
    if odd := re.search(r"%[^s%]|\\[^nt\\]", form):
        raise SimUnsupportedError(f"`printf` with {odd[0]!r}")
    values = iter(rest)
    text = re.sub(
        r"\\[nt\\]|%s|%%", lambda it: _ESCAPES.get(it[0]) or ("%" if it[0] == "%%" else next(values, "")), form
    )
    out(text.encode())
    return OK


async def _sleep(arguments: Sequence[str], out: Write, shell: Shell) -> int:
    await asyncio.sleep(shell.stretch * sum(map(_number, arguments)))
    return OK


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise SimUnsupportedError(f"the number {word!r} in a shell command") from None


async def _seq(arguments: Sequence[str], out: Write, shell: Shell) -> int:
    *first, end = (int(_number(word)) for word in arguments)
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
