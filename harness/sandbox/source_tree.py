"""What files tell of a source tree: its project and version, its commit, and the version of an interpreter.

Nothing is executed.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

INSTALLED = frozenset({"site-packages", "dist-packages", "node_modules"})
SHORT = 12
"""Characters of a commit that are shown."""
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_NAMED = re.compile(r"(python|pypy)(\d+\.\d+)")


def interpreter_of(program: Path) -> str:
    """`Python 3.11.7`, by the environment's pyvenv.cfg, else by the program's name; empty if neither tells."""
    named = _NAMED.fullmatch(program.resolve().name)
    for config in (program.parent.parent / "pyvenv.cfg", program.parent / "pyvenv.cfg"):
        with suppress(OSError):
            found = re.search(r"^version(?:_info)?\s*=\s*(\d[\w.]*)", config.read_text("utf-8"), re.MULTILINE)
            if found:
                return f"Python {found[1]}"
    return f"{'Python' if named[1] == 'python' else 'PyPy'} {named[2]}" if named else ""


def source_of(entry: Path) -> str:
    """The nearest project above the entry, and the commit of the work tree; empty if there is neither.

    An installed package lies in no source tree, though its environment may.
    """
    if INSTALLED.intersection(entry.parts):
        return ""
    project = next(filter(None, map(_project, entry.parents)), "")
    commit = next(filter(None, map(_commit, entry.parents)), "")
    at = f"commit {commit[:SHORT]} (changes since are not looked for)" if commit else ""
    return ", ".join(filter(None, (project, at)))


def _project(folder: Path) -> str:
    """`mine 1.2.0 (pyproject.toml)`; empty without a name and a version."""
    for file, read in (("pyproject.toml", _of_python), ("package.json", json.loads)):
        with suppress(OSError, ValueError, KeyError, TypeError):
            said = read((folder / file).read_text("utf-8"))
            return f"{said['name']} {said['version']} ({file})"
    return ""


def _of_python(text: str) -> Mapping[str, Any]:
    said: Mapping[str, Any] = tomllib.loads(text)["project"]
    return said


def _commit(folder: Path) -> str:
    """The commit that is checked out in this folder; empty if it is no work tree."""
    git = folder / ".git"
    with suppress(OSError, ValueError):
        if git.is_file():
            git = folder / git.read_text("utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text("utf-8").strip()
        common = git / (git / "commondir").read_text("utf-8").strip() if (git / "commondir").is_file() else git
        found = _reference(head.removeprefix("ref:").strip(), git, common) if head.startswith("ref:") else head
        return found if _COMMIT.fullmatch(found) else ""
    return ""


def _reference(name: str, git: Path, common: Path) -> str:
    for place in (git, common):
        with suppress(OSError):
            return (place / name).read_text("utf-8").strip()
    lines = (common / "packed-refs").read_text("utf-8").splitlines()
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), "")
