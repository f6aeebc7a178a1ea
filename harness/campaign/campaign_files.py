"""The texts of a campaign's scenarios, session files and specs, as they were when it began."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.scenario.scenario_file import ScenarioFile


@dataclass(frozen=True)
class CampaignFiles:
    """What the files held at the beginning: someone may edit them while the campaign plays."""

    contents: Mapping[Path, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Self:
        """Read the files of these runs, each once."""
        found = {path for entry in entries for path in (*_files(entry.file), entry.agent.path)}
        return cls({path: path.read_bytes() for path in found})

    def read(self, path: Path) -> bytes:
        """What a file held at the beginning. One that was not read then is read now."""
        return self.contents[path] if path in self.contents else path.read_bytes()

    def text(self, path: Path) -> str:
        """The same, decoded as UTF-8."""
        return self.read(path).decode()

    def scenario_hash(self, file: ScenarioFile) -> str:
        """Over the scenario and the session files that it plants."""
        return self._hash(*_files(file))

    def agent_hash(self, path: Path) -> str:
        """Over a spec."""
        return self._hash(path)

    def _hash(self, *paths: Path) -> str:
        return hashlib.sha256(b"\0".join(map(self.read, paths))).hexdigest()[:16]


def _files(file: ScenarioFile) -> list[Path]:
    planted = sorted(set(file.scenario.planted.values()))
    return [file.path, *(file.path.parent / name for name in planted)]
