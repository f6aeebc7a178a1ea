"""Programs that are neither Python nor Node: which files these are, and which script takes a message."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from wedgehog.harness.commands.first_spec.source_reading import QUESTIONS

_LANGUAGES: Final = {
    ".pl": ("perl", r"@ARGV\b|\$ARGV\[|\bshift\s*(?:;|@ARGV|//|\|\|)"),
    ".rb": ("ruby", r"\bARGV\b|\bOptionParser\b"),
    ".php": ("php", r"\$argv\b|\bgetopt\("),
    ".lua": ("lua", r"\barg\["),
    ".jl": ("julia", r"\bARGS\b"),
    ".R": ("Rscript", r"\bcommandArgs\("),
    ".sh": ("bash", r"\$\{?[1@*]"),
}
"""The scripts whose interpreter is known by their ending, each with what reads a command line in it."""
_COMPILED: Final = frozenset(
    {".go", ".rs", ".java", ".kt", ".kts", ".scala", ".cs", ".fs", ".swift", ".dart", ".ex", ".exs", ".erl", ".clj"}
    | {".c", ".cc", ".cpp", ".zig", ".hs", ".ml", ".tsx", ".jsx"}
)
CODE: Final = frozenset({*_LANGUAGES, *_COMPILED})
NOTES: Final = frozenset({".env", ".example", ".toml", ".yaml", ".yml", ".json", ".ini", ".cfg", ".md", ".txt", ".xml"})
"""Settings and notes: they say what a program uses, if no source does."""
_MESSAGE: Final = re.compile(rf"\b(?:{'|'.join((*QUESTIONS, 'task'))})\b", re.IGNORECASE)


def scripts(sources: Mapping[Path, str], entries: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the command line and the file of scripts with a usual name that read a message from their command line."""
    usual = set(entries)
    for path, text in sources.items():
        interpreter, reads = _LANGUAGES.get(path.suffix, ("", ""))
        if interpreter and path.stem in usual and re.search(reads, text) and _MESSAGE.search(text):
            yield f"{interpreter} {path.as_posix()} {{message}}", str(path)
