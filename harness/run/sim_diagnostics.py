"""What a simulated agent waits for when its turn is over its deadline: its tasks say it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.history import History
from wedgehog.harness.run.diagnostics import UNSEEN, Diagnosis, record_hang, sentence


@dataclass(frozen=True)
class SimDiagnostics:
    """Looks at the agent of one simulated run; `waits` returns a line for each of its tasks."""

    history: History
    folder: Path
    clock: Clock
    waits: Callable[[], list[str]]

    async def at(self, turn: int) -> None:
        """Record what each task waits for."""
        if not self.history.sealed:
            tasks = self.waits()
            said = sentence(self.history, Diagnosis(), turn, self.clock.now())
            says = "; ".join([*([] if tasks and said == UNSEEN else [said]), *tasks[:1]])
            record_hang(self.history, self.folder, turn, self.clock.now(), says, {"tasks": tasks})
