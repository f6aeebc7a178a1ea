"""The rules of a project, which a scenario puts where agents look."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wedgehog.harness.run.project_folder import ProjectFolder
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.project_file import RULES_FILES

RULES = "Never rename a table of the database without asking."
WORDS: dict[str, Any] = {
    "name": "one",
    "why": "A test.",
    "rules": RULES,
    "turns": [{"user": "Hello", "model": [{"text": "Hi {nonce}"}]}],
}


def _written(cwd: Path, workdir: Path | None) -> None:
    context: Any = SimpleNamespace(cwd=cwd, outside=lambda path: path)
    history: Any = SimpleNamespace()
    ProjectFolder(Scenario.model_validate(WORDS), lambda: context, history, workdir).write(0)


def test_rules_stand_in_each_file_in_which_agents_look(tmp_path: Path):
    """The folder need not be there yet."""
    _written(tmp_path / "cwd", None)
    assert all((tmp_path / "cwd" / name).read_text().endswith(f"\n{RULES}\n") for name in RULES_FILES)


def test_the_rules_of_the_agents_own_folder_stay_in_front(tmp_path: Path):
    """They may say how its tools are used."""
    (tmp_path / "AGENTS.md").write_text("Use the shell.\n")
    _written(tmp_path / "cwd", tmp_path)
    assert (tmp_path / "cwd" / "AGENTS.md").read_text().startswith("Use the shell.\n")
    assert RULES in (tmp_path / "cwd" / "AGENTS.md").read_text()
    assert "Use the shell." not in (tmp_path / "cwd" / "CLAUDE.md").read_text()


@pytest.mark.parametrize("rules", ["Too short.", "Two lines of rules,\nand here is the second one."])
def test_rules_are_one_line_that_stands_nowhere_by_chance(rules: str):
    """A shorter one may be a part of any text."""
    with pytest.raises(ValueError, match="expected one line of at least 20 characters"):
        Scenario.model_validate({**WORDS, "rules": rules})
