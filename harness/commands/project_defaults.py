"""Defaults of the command line from the user's project: the table `[tool.wedgehog]` in pyproject.toml.

    [tool.wedgehog]
    agent = "agent.yaml"
    level = "strict"

The nearest pyproject.toml at or above the working folder counts. An option or an environment variable is stronger.
"""

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from wedgehog.harness.record.verdict import Level
from wedgehog.harness.scenario.document import BadFileError, Document

TABLE = "tool.wedgehog"
COMMANDS = ("run", "fuzz", "check", "replay")
"""The commands whose options have these defaults."""


class ProjectDefaults(BaseModel):
    """The table's keys: each is the name of an option."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    agent: list[str] | None = None
    """Specs, by paths relative to pyproject.toml, or known runtimes; one text or a list."""
    jobs: int | None = Field(default=None, ge=1)
    out: str | None = None
    level: Level | None = None
    network: Literal["auto", "toxiproxy", "embedded"] | None = None
    plugin: list[str] | None = None

    @field_validator("agent", "plugin", mode="before")
    @classmethod
    def _one_or_more(cls, given: object) -> object:
        return [given] if isinstance(given, str) else given


def project_defaults(folder: Path) -> dict[str, dict[str, Any]]:
    """The defaults of each command, as click's `default_map`. BadFileError: a mistake in the table."""
    path = next((it / "pyproject.toml" for it in (folder, *folder.parents) if (it / "pyproject.toml").is_file()), None)
    found = _read(path) if path is not None else None
    if path is None or found is None:
        return {}
    given = found.model_dump(exclude_none=True)
    for key in ("agent", "plugin"):
        if key in given:
            given[key] = [_placed(name, path.parent) for name in given[key]]
    if "out" in given:
        given["out"] = str(path.parent / given["out"])
    return dict.fromkeys(COMMANDS, given)


def _read(path: Path) -> ProjectDefaults | None:
    """The table of a file; None if it has none."""
    text = path.read_text(encoding="utf-8")
    try:
        table = tomllib.loads(text).get("tool", {}).get("wedgehog")
    except tomllib.TOMLDecodeError as wrong:
        raise BadFileError(path, None, str(wrong)) from None
    return None if table is None else Document(path, table, _lines(text)).into(ProjectDefaults)


def _lines(text: str) -> dict[tuple[str | int, ...], int]:
    """The line of the table and of each of its keys."""
    found: dict[tuple[str | int, ...], int] = {}
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            inside = line.strip().startswith(f"[{TABLE}]")
        if inside:
            found.setdefault((line.partition("=")[0].strip(),) if "=" in line else (), number)
    return found


def _placed(name: str, folder: Path) -> str:
    """A path beside pyproject.toml if there is one, else the name itself (a known runtime, a module)."""
    return str(folder / name) if (folder / name).exists() or Path(name).suffix in (".yaml", ".yml", ".py") else name
