"""Reads scenario files, and finds them in a folder."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wedgehog.harness.scenario.document import BadFileError, Document, load
from wedgehog.harness.scenario.expect import FailConfig, agents_in
from wedgehog.harness.scenario.mistake import DocumentPath, Mistake
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.readable import found_in
from wedgehog.harness.scenario.scenario_checks import contradictions
from wedgehog.harness.scenario.scenario_keys import ScenarioKeys


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """A scenario and where it was read."""

    path: Path
    scenario: Scenario

    @property
    def family(self) -> str:
        """The folder's name: the incident's, or `catalogue`."""
        folder = self.path.absolute().parent
        return folder.parent.name if folder.name == "scenarios" and folder.parent.name else folder.name

    @property
    def agents_folder(self) -> Path | None:
        """The agents of the incident folder that the scenario lies in."""
        folders = (folder / "agents" for folder in self.path.parents[:2])
        return next((folder for folder in folders if folder.is_dir()), None)

    @property
    def core(self) -> bool:
        """Played by `nox -s chaos` without `--all`."""
        return "core" in self.scenario.tags


Judge = Callable[[str, Mapping[str, Any] | None], str]
"""Says what is wrong with an invariant and its parameters; empty if nothing is."""

OF_CAMPAIGNS = frozenset({"bodies", "control"})
"""Folders of a campaign beside those of its scenarios."""


def load_scenario(path: Path, wrong: Judge | None = None) -> ScenarioFile:
    """Read a scenario; `wrong(invariant, parameters)` says what is wrong with an invariant. Errors: BadFileError."""
    document = load(path)
    if isinstance(document.data, dict) and "wire" in document.data and "turns" not in document.data:
        raise BadFileError(path, None, f"this is an agent spec: use it with --agent {path}")
    scenario, found = document.checked(Scenario)
    read: ScenarioKeys | None = scenario
    if scenario is None:
        _, values = document.checked(ScenarioKeys)
        read = document.readable(ScenarioKeys, values, {"name": "unnamed", "why": "unknown", "turns": [{"user": "-"}]})
        found += [] if read is None else [Mistake(place, said) for place, said in contradictions(read)]
    found += [] if read is None else [Mistake(place, said) for place, said in _beside_it(document, read, wrong)]
    if scenario is None or found:
        raise document.errors(found)
    return ScenarioFile(path, scenario)


def _beside_it(document: Document, scenario: ScenarioKeys, wrong: Judge | None) -> Iterator[tuple[DocumentPath, str]]:
    """What is wrong with the files and the invariants that the scenario names."""

    def files(scenario: ScenarioKeys) -> Iterator[tuple[DocumentPath, str]]:
        for place, name in scenario.planted.items():
            if not (document.path.parent / name).is_file():
                yield place, f"no such file beside the scenario: {name}"

    def invariants(scenario: ScenarioKeys) -> Iterator[tuple[DocumentPath, str]]:
        for place, name, given in _asked(document, scenario):
            if wrong and (said := wrong(name, given)):
                yield place, said

    def folders(scenario: ScenarioKeys) -> Iterator[tuple[DocumentPath, str]]:
        if scenario.name in OF_CAMPAIGNS:
            yield ("name",), f"expected another name: each campaign has a folder {scenario.name!r} of its own"

    return found_in(scenario, (folders, files, invariants))


def _asked(document: Document, scenario: ScenarioKeys) -> Iterator[tuple[DocumentPath, str, Mapping[str, Any] | None]]:
    """The invariants that the scenario names: where, which, and with which parameters."""
    for name, given in scenario.invariants.items():
        yield ("invariants", name), name, given
    expected = scenario.expect
    for key in document.data.get("expect", ()):
        judged = expected[agents_in(key)[0]]
        for name in judged.fail if isinstance(judged, FailConfig) else ():
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
