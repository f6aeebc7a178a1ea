"""The syntax of the simulated shell: simple commands, lists of them, groups, quotes, variables and redirections.

What it cannot read it refuses, with the name of what is missing: it never guesses.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wedgehog.harness.sim.errors import SimUnsupportedError

_TOKEN = re.compile(
    r"""(?P<blank>(?:[ \t\r]|\\\n)+|(?<![^\s;&|()])\#[^\n]*)
    |(?P<operator>(?:1?>&2|2>&1)(?![^\s;&|()<>])|&&|\|\||>>|[;&|()<>\n])
    |(?P<word>(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s;&|()<>'"\\])+)""",
    re.VERBOSE | re.DOTALL,
)
_PART = re.compile(
    r"""'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|\\(?P<escaped>.)|(?P<bare>[^'"\\]+)""", re.DOTALL
)
_VARIABLE = re.compile(r"\$(?:(?P<name>[A-Za-z_]\w*|\?)|\{(?P<braced>[A-Za-z_]\w*)\})")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_NEEDS_A_SHELL = re.compile(r"\$\(|`|\$[^A-Za-z_{?]")
_PATTERN = re.compile(r"[*?\[~]|\{.*[,.].*\}")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a word; variables are replaced unless it stood in single quotes or behind a backslash."""

    text: str
    literal: bool


Word = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Simple:
    """A command with its words, what it assigns, and where its output goes (None: to the shell's)."""

    words: tuple[Word, ...]
    assigned: tuple[tuple[str, Word], ...] = ()
    file: Word | None = None
    append: bool = False
    to_error: bool = False
    """Whether its output goes to stderr."""


@dataclass(frozen=True, slots=True)
class Group:
    """Commands in braces, or in parentheses: then `exit` ends only these."""

    body: "CommandList"
    own: bool


@dataclass(frozen=True, slots=True)
class Background:
    """Commands before a `&`: the shell goes on at once."""

    body: "CommandList"


Command = Simple | Group | Background
CommandList = tuple[tuple[str, Command], ...]
"""Each with the operator before it: `;`, `&&` or `||`."""


def parse(text: str) -> CommandList:
    """The commands of a script. Raises SimUnsupportedError for what is not simulated."""
    parser = _Parser(list(_tokens(text)))
    found = parser.commands("")
    if parser.left:
        raise SimUnsupportedError(f"the shell syntax {parser.left[0]!r}")
    return found


def names(commands: CommandList) -> Iterator[str]:
    """The name of each command, where it is no variable's value."""
    for _, command in commands:
        if not isinstance(command, Simple):
            yield from names(command.body)
        elif command.words:
            yield "".join(part.text for part in command.words[0])


def expand(word: Word, variables: dict[str, str]) -> str:
    """The word with the values of its variables."""
    return "".join(
        part.text if part.literal else _VARIABLE.sub(lambda it: _value(it, variables), part.text) for part in word
    )


def _value(found: re.Match[str], variables: dict[str, str]) -> str:
    return variables.get(found["name"] or found["braced"], "")


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise SimUnsupportedError(f"the shell syntax {text[at : at + 20]!r}")
        at = found.end()
        if not found["blank"]:
            yield found[0]


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self.left = tokens

    def commands(self, end: str) -> CommandList:
        """Up to `end`, which is taken too."""
        found: list[tuple[str, Command]] = []
        before, begin = ";", 0
        while self.left:
            word = self.left[0]
            if end and word == end:
                del self.left[0]
                return tuple(found)
            if word in (";", "\n"):
                del self.left[0]
                begin = len(found)
            elif word == "&":
                if len(found) == begin:
                    raise SimUnsupportedError("the shell's '&' without a command")
                del self.left[0]
                found[begin:] = [(";", Background(((";", found[begin][1]), *found[begin + 1 :])))]
                begin = len(found)
            elif word in ("&&", "||"):
                before = self.left.pop(0)
                continue
            else:
                found.append((before, self._command()))
            before = ";"
        if end:
            raise SimUnsupportedError(f"shell syntax without its {end!r}")
        return tuple(found)

    def _command(self) -> Command:
        if self.left[0] in ("(", "{"):
            begin = self.left.pop(0)
            return Group(self.commands(")" if begin == "(" else "}"), own=begin == "(")
        words: list[Word] = []
        assigned: list[tuple[str, Word]] = []
        file: Word | None = None
        append = to_error = False
        while self.left and self.left[0] not in (";", "\n", "&&", "||", "&", ")"):
            word = self.left.pop(0)
            if word in (">", ">>"):
                file, append = _word(self._taken()), word == ">>"
            elif word.endswith((">&2", "2>&1")):  # no command here writes to stderr unless it is told to
                to_error = word != "2>&1"
            elif word in ("|", "<", "("):
                raise SimUnsupportedError(f"the shell's {word!r}")
            elif not words and (value := _ASSIGNMENT.fullmatch(word)):
                assigned.append((value[1], _word(value[2])))
            else:
                words.append(_word(word))
        return Simple(tuple(words), tuple(assigned), file, append, to_error)

    def _taken(self) -> str:
        if not self.left or _TOKEN.match(self.left[0])["word"] is None:  # type: ignore[index]
            raise SimUnsupportedError("a redirection without a file")
        return self.left.pop(0)


def _word(token: str) -> Word:
    return tuple(_parts(token)) or (Part("", literal=True),)


def _parts(token: str) -> Sequence[Part]:
    found = []
    for part in _PART.finditer(token):
        literal, text = part["single"] is not None or part["escaped"] is not None, ""
        for kind in ("single", "double", "escaped", "bare"):
            text = part[kind] if part[kind] is not None else text
        if not literal and (odd := _NEEDS_A_SHELL.search(text)):
            raise SimUnsupportedError(f"the shell's {odd[0]!r}")
        if part["bare"] is not None and text not in ("{", "}") and (odd := _PATTERN.search(_VARIABLE.sub("", text))):
            raise SimUnsupportedError(f"the shell pattern {text!r}")
        if part["double"] is not None:
            text = re.sub(r'\\([$"\\`])', r"\1", text)
        found.append(Part(text, literal))
    return found
