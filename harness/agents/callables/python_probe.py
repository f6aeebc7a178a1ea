"""What another Python would run, `python python_probe.py TARGET FOLDER`: JSON on stdout. No code of the agent runs.

Standard library only, and no newer syntax: a Python that is too old says which version it is.
"""

import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the folder of this file, which is no place to import from

import ast
import importlib.util
import json
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Iterator, Optional, Tuple  # noqa: UP035  read by Python 3.8 too


def found(name: str) -> Optional[ModuleSpec]:  # noqa: UP045
    """Where a module is, None if it is nowhere. Each part of a dotted name is looked up alone, without an import."""
    first, *rest = name.split(".")
    spec = importlib.util.find_spec(first)
    for part in rest:
        below = spec and spec.submodule_search_locations
        spec = PathFinder.find_spec("{}.{}".format(spec.name, part), list(below)) if spec and below else None  # noqa: UP032
    return spec


def imports(file: str) -> Iterator[Tuple[str, int]]:  # noqa: UP006
    """The packages that a file always imports, each with its line; none if the file changes where Python looks."""
    text = Path(file).read_bytes()
    for node in () if b"sys.path" in text or b"addsitedir" in text else ast.parse(text).body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.split(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0], node.lineno


def main(target: str, folder: str) -> None:
    """Print the version, the import path, the file of the target, and the missing packages that that file imports."""
    sys.path.insert(0, folder)
    name = target.rpartition(":")[0]
    spec = None if name.endswith(".py") else found(name)
    file = name if name.endswith(".py") else spec and spec.origin
    missing = []
    with suppress(OSError, SyntaxError, ValueError):  # the first call of the function shows it
        missing = [one for one in imports(file or "") if found(one[0]) is None]
    print(json.dumps({"version": sys.version_info[:2], "path": sys.path, "file": file, "missing": missing}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
