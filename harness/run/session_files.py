"""An agent's session files in one run: planted before it reads them, kept when it has ended."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from wedgehog.harness.agents.base import AgentContext
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.surroundings import plant, session_files
from wedgehog.harness.record.event import SessionKept, SessionPlanted
from wedgehog.harness.record.history import History
from wedgehog.harness.run.agent_targets import name_of


@dataclass(frozen=True)
class SessionFiles:
    """Of `agent` at `place`; planted ones lie in `beside`, copies go to `kept`."""

    agent: AgentSpec
    place: AgentContext
    history: History
    beside: Path
    kept: Path

    def plant(self, turn: int, name: str | None) -> None:
        """Put a file that lies beside the scenario into the agent's session."""
        if name is None:
            return
        lines = (self.beside / name).read_bytes()
        file = plant(self.agent, self.place, lines)
        digest = hashlib.sha256(lines).hexdigest()
        path = str(file.relative_to(self.place.folder.absolute()))
        self.history.add(SessionPlanted(turn=turn, path=path, lines=len(lines.splitlines()), sha256=digest))

    def keep(self) -> None:
        """Copy what the agent has left, before its folder goes."""
        for file in session_files(self.agent, self.place):
            data = file.read_bytes()
            name = name_of(file, self.place)
            target = self.kept / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            digest = hashlib.sha256(data).hexdigest()
            self.history.add(SessionKept(path=str(name), sha256=digest, size=len(data)))
