"""Defaults of the command line from the user's project: the table `[tool.wedgehog]` in pyproject.toml.

    [tool.wedgehog]
    agent = "agent.yaml"
    level = "strict"

The nearest pyproject.toml at or above the working folder counts. An option or an environment variable is stronger.
"""

import tomllib
from pathlib import Path
from typing import Any

COMMANDS = ("run", "fuzz", "check", "replay")
"""The commands whose options have these defaults."""


def project_defaults(folder: Path) -> dict[str, dict[str, Any]]:
    """The defaults of each command, as click's `default_map`. BadFileError: a mistake in the table."""
    path = next((it / "pyproject.toml" for it in (folder, *folder.parents) if (it / "pyproject.toml").is_file()), None)
    given = _read(path) if path is not None else None
    if path is None or given is None:
        return {}
    for key in ("agent", "plugin"):
        if key in given:
            given[key] = [_placed(name, path.parent) for name in given[key]]
    if "out" in given:
        given["out"] = str(path.parent / given["out"])
    return dict.fromkeys(COMMANDS, given)


def _read(path: Path) -> dict[str, Any] | None:
    """The checked table of a file; None if it has none."""
    text = path.read_text(encoding="utf-8")
    try:
        table = tomllib.loads(text).get("tool", {}).get("wedgehog")
    except tomllib.TOMLDecodeError as wrong:
        from wedgehog.harness.scenario.document import BadFileError

        raise BadFileError(path, None, str(wrong)) from None
    if table is None:
        return None
    from wedgehog.harness.commands.project_table import checked

    return checked(path, text, table)


def _placed(name: str, folder: Path) -> str:
    """A path beside pyproject.toml if there is one, else the name itself (a known runtime, a module)."""
    return str(folder / name) if (folder / name).exists() or Path(name).suffix in (".yaml", ".yml", ".py") else name
