"""Reads scenario files, and finds them in a folder."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wedgehog.harness.scenario.document import BadFileError, Document, load
from wedgehog.harness.scenario.expect import FailConfig, agents_in
from wedgehog.harness.scenario.mistake import DocumentPath
from wedgehog.harness.scenario.model import Scenario


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """A scenario and where it was read."""

    path: Path
    scenario: Scenario

    @property
    def family(self) -> str:
        """The folder's name: the incident's, or `catalogue`."""
        return self.path.parent.parent.name if self.path.parent.name == "scenarios" else self.path.parent.name

    @property
    def agents_folder(self) -> Path | None:
        """The agents of the incident folder that the scenario lies in."""
        folders = (folder / "agents" for folder in self.path.parents[:2])
        return next((folder for folder in folders if folder.is_dir()), None)

    @property
    def core(self) -> bool:
        """Played by `nox -s chaos` without `--all`."""
        return "core" in self.scenario.tags


def load_scenario(path: Path, wrong: Callable[[str, Mapping[str, Any] | None], str] | None = None) -> ScenarioFile:
    """Read a scenario; `wrong(invariant, parameters)` says what is wrong with an invariant. Errors: BadFileError."""
    document = load(path)
    if isinstance(document.data, dict) and "wire" in document.data and "turns" not in document.data:
        raise BadFileError(path, None, f"this is an agent spec: use it with --agent {path}")
    scenario, found = document.checked(Scenario)
    if scenario is None:
        raise document.errors(found)
    found += [
        (place, f"no such file beside the scenario: {name}")
        for place, name in scenario.planted.items()
        if not (path.parent / name).is_file()
    ]
    if wrong:
        found += [(place, said) for place, name, given in _asked(document, scenario) if (said := wrong(name, given))]
    if found:
        raise document.errors(found)
    return ScenarioFile(path, scenario)


def _asked(document: Document, scenario: Scenario) -> Iterator[tuple[DocumentPath, str, Mapping[str, Any] | None]]:
    """The invariants that the scenario names: where, which, and with which parameters."""
    for name, given in scenario.invariants.items():
        yield ("invariants", name), name, given
    for key in document.data.get("expect", ()):
        expected = scenario.expect[agents_in(key)[0]]
        for name in expected.fail if isinstance(expected, FailConfig) else ():
            yield ("expect", key), name, None


def find_scenarios(place: Path) -> Iterator[Path]:
    """Scenario files at `place`: the file itself, or those below it, without agents. Errors: BadFileError."""
    if place.is_file():
        yield place
        return
    if not place.is_dir():
        raise BadFileError(place, None, "no such scenario file or folder")
    skipped = {"agents", "planted"}
    found = sorted(path for path in place.rglob("*.yaml") if not skipped & set(path.relative_to(place).parts[:-1]))
    if not found:
        raise BadFileError(place, None, "no scenario file (*.yaml) in this folder")
    yield from found
