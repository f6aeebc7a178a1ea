"""The imports with which a callable's file begins: what one process may do once, before it is forked for each run.

They end at the first statement that is something else, or that imports something else: it may change what follows.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

SHARED = ("aiohttp", "anthropic", "httpx", "openai")
"""Their import depends on environment variables only: on no home folder, and on nothing that an agent did before."""
HARMLESS = {*SHARED, *sys.stdlib_module_names, "dotenv", "pydantic", "requests", "tenacity", "yaml"}


def first_imports(target: str, entry: str | None, folders: Sequence[Path]) -> tuple[str, ...]:
    """The statements; none without a shared package. `folders`: where the agent's own modules are."""
    name = target.rpartition(":")[0]
    if entry is None or not (name.endswith(".py") or _in_empty_packages(Path(entry), name.count("."))):
        return ()
    found, shared = [], False
    for statement in _statements(Path(entry)):
        names = list(_imported(statement))
        if not names or any(it not in HARMLESS or any(module_file(folder, it) for folder in folders) for it in names):
            break
        if names != ["__future__"]:
            found.append(ast.unparse(statement))
            shared = shared or any(it in SHARED for it in names)
    return tuple(found) if shared else ()


def module_file(folder: Path, name: str) -> Path | None:
    """The file of a module in a folder."""
    return next(
        (file for file in (folder / f"{name}.py", folder / name / "__init__.py") if file.is_file()),
        None,
    )


def _statements(file: Path) -> list[ast.stmt]:
    """Those of a file, without its docstring; none if it cannot be read."""
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []
    return body[1:] if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else body


def _imported(statement: ast.stmt) -> Iterator[str]:
    """The first part of each name that a statement imports; nothing if it is no such statement."""
    if isinstance(statement, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom) and statement.module and statement.level == 0:
        yield statement.module.partition(".")[0]


def _in_empty_packages(entry: Path, depth: int) -> bool:
    """Whether the packages around a module, which are imported before it, say nothing."""
    module = entry.parent if entry.name == "__init__.py" else entry
    around = [module.parents[level] / "__init__.py" for level in range(depth)]
    return not any(map(_statements, around))
