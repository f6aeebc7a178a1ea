"""Defaults of the command line from `[tool.wedgehog]` in the user's pyproject.toml."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from wedgehog.harness.campaign.campaign import Campaign
from wedgehog.harness.commands.cli import app
from wedgehog.harness.commands.project_defaults import project_defaults
from wedgehog.harness.scenario.document import BadFileError

SPEC = "name: mine\nwire: anthropic\ncommand: ['{python}', '-c', '0', '{message}']\n"


def write(folder: Path, *lines: str) -> None:
    (folder / "pyproject.toml").write_text("\n".join(("[project]", 'name = "x"', "[tool.wedgehog]", *lines)))


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, below that of pyproject.toml."""
    (tmp_path / "mine.yaml").write_text(SPEC)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("WEDGEHOG_NETWORK", raising=False)
    return tmp_path


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[Campaign]:
    """Campaigns that are not really played."""
    seen: list[Campaign] = []

    async def play(self: Campaign) -> list[Any]:
        seen.append(self)
        return []

    monkeypatch.setattr(Campaign, "play", play)
    return seen


def test_the_project_names_its_agent_and_options_once(project: Path, played: list[Campaign]):
    """Paths are those of the project's folder, wherever the command is called below it."""
    write(project, 'agent = "mine.yaml"', 'out = "artifacts"', "jobs = 3", 'level = "strict"', 'network = "embedded"')
    assert invoke("run", "catalogue/key-refused").exit_code == 0
    (campaign,) = played
    (entry,) = campaign.entries
    assert (entry.agent.path, entry.agent.level) == (project / "mine.yaml", "strict")
    options = campaign.options
    assert (options.out, options.jobs, options.network) == (project / "artifacts", 3, "embedded")


def test_an_option_is_stronger_than_the_project_and_a_variable_too(
    project: Path, played: list[Campaign], monkeypatch: pytest.MonkeyPatch
):
    """The project's value is only a default."""
    (project / "other.yaml").write_text(SPEC.replace("mine", "other"))
    write(project, 'agent = ["mine.yaml"]', "jobs = 3", 'network = "embedded"')
    monkeypatch.setenv("WEDGEHOG_NETWORK", "toxiproxy")
    assert invoke("run", "catalogue/key-refused", "-a", "../other.yaml", "-j", "2").exit_code == 0
    assert [entry.agent.name for entry in played[0].entries] == ["other"]
    assert (played[0].options.jobs, played[0].options.network) == (2, "toxiproxy")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('agents = "x"', "pyproject.toml:4: unknown key 'agents' (did you mean 'agent'?)"),
        ("jobs = 0", "pyproject.toml:4: 'jobs': expected a number of at least 1"),
        ('level = "severe"', "pyproject.toml:4: 'level': expected 'safe' or 'strict'"),
        ("jobs = ", "Invalid value (at end of document)"),
    ],
)
def test_a_mistake_in_the_table_is_one_line_with_its_place(project: Path, line: str, said: str):
    """Exit code 2, for each command."""
    write(project, line)
    ran = invoke("doctor")
    assert ran.exit_code == 2 and said in ran.stderr and len(ran.stderr.splitlines()) == 1


def test_without_the_table_nothing_changes(project: Path):
    """A project without it, or no project at all."""
    assert project_defaults(project) == {}
    (project / "pyproject.toml").write_text("[project]\n")
    assert project_defaults(project / "below") == {}
    (project / "pyproject.toml").write_text("[tool]\nwedgehog = 3\n")
    with pytest.raises(BadFileError, match="expected a mapping"):
        project_defaults(project)


@pytest.mark.parametrize("words", [("-h",), ("run", "-h"), ("agents", "check", "-h")])
def test_help_has_a_short_name(words: tuple[str, ...]):
    """As users expect."""
    ran = invoke(*words)
    assert ran.exit_code == 0 and "Usage: " in ran.stdout


def test_the_version_is_printed():
    """The one of the installed package."""
    ran = invoke("--version")
    assert ran.exit_code == 0 and ran.stdout.startswith("wedgehog 0.")
