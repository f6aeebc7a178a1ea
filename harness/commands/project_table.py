"""The keys of the table `[tool.wedgehog]`. Only a project with this table needs pydantic before its command begins."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from wedgehog.harness.record.verdict import Level
from wedgehog.harness.scenario.document import Document

TABLE = "tool.wedgehog"


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


def checked(path: Path, text: str, table: object) -> dict[str, Any]:
    """The given keys of the table in the file's text. BadFileError: a mistake in the table."""
    return Document(path, table, _lines(text)).into(ProjectDefaults).model_dump(exclude_none=True)


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
