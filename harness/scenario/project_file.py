"""A file in the agent's working folder, as a scenario describes it."""

import builtins
import codecs
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, NonNegativeInt, PositiveInt, model_validator

from wedgehog.fake_llm.script.items import ConfigModel
from wedgehog.harness.scenario.mistake import BadValueError

DOTS = b"." * 79 + b"\n"


def _short(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


def _encoding(name: str) -> str:
    try:
        codecs.lookup(name)
    except LookupError:
        raise BadValueError(f"expected an encoding, such as utf-8 or latin-1, found {name!r}") from None
    return name


def _hex(digits: str) -> str:
    try:
        bytes.fromhex(digits)
    except ValueError:
        raise BadValueError(f"expected pairs of hexadecimal digits, found {digits!r}") from None
    return digits


RULES_FILES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", "QWEN.md", "CRUSH.md", ".goosehints", ".clinerules")
"""The files with rules of a project that agents read by themselves; each agent has its own."""


def _rules(text: str) -> str:
    if text and (len(text) < 20 or " ".join(text.split()) != text):
        raise BadValueError(f"expected one line of at least 20 characters, found {text!r}")
    return text


ProjectRules = Annotated[str, AfterValidator(_rules)]


class ProjectFileConfig(ConfigModel):
    """`{text: one, encoding: latin-1}`, or the text alone."""

    text: str = ""
    encoding: Annotated[str, AfterValidator(_encoding)] = "utf-8"
    hex: Annotated[str, AfterValidator(_hex)] = ""
    """Bytes behind the text, as pairs of hexadecimal digits."""
    times: PositiveInt = 1
    """How often all of this stands in it."""
    bytes: NonNegativeInt = 0
    """It is filled up to this size with lines of dots."""
    executable: bool = False
    """Whether it may be executed, as a script."""
    link_to: str = ""
    """It is a symbolic link to the file at this path from the working folder, and has no text of its own."""
    kind: Literal["file", "folder", "pipe"] = "file"
    """`pipe`: a named pipe that no other program writes to."""

    @model_validator(mode="after")
    def _has_content(self) -> "ProjectFileConfig":
        if (self.kind != "file" or self.link_to) and (self.text or self.hex or self.bytes or self.executable):
            raise BadValueError(f"a {'link' if self.link_to else self.kind} has no text, and is not executable")
        if self.link_to:
            check_path(self.link_to)
        try:
            self.text.encode(self.encoding)
        except UnicodeEncodeError as wrong:
            raise BadValueError(f"{self.encoding} has no {self.text[wrong.start]!r}", "text") from None
        return self

    @property
    def content(self) -> builtins.bytes:
        """What stands in it."""
        data = (self.text.encode(self.encoding) + builtins.bytes.fromhex(self.hex)) * self.times
        missing = max(0, self.bytes - len(data))
        return data + (DOTS * (missing // len(DOTS) + 1))[:missing]


def _paths(files: dict[str, ProjectFileConfig]) -> dict[str, ProjectFileConfig]:
    for name in files:
        check_path(name)
    return files


def check_path(name: str) -> None:
    """Errors: BadValueError for a path that leaves the working folder."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise BadValueError(f"expected a path from the working folder, such as notes.txt, found {name!r}")


ProjectFiles = Annotated[dict[str, Annotated[ProjectFileConfig, BeforeValidator(_short)]], AfterValidator(_paths)]
"""Files by their path from the agent's working folder."""
