"""What a simulated agent waits for when its turn is over its deadline: its tasks say it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.turn import HangSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.run.diagnostics import Diagnosis, sentence


@dataclass(frozen=True)
class SimDiagnostics:
    """Looks at the agent of one simulated run; `waits` returns a line for each of its tasks."""

    history: History
    folder: Path
    clock: Clock
    waits: Callable[[], list[str]]

    async def at(self, turn: int) -> None:
        """Record what each task waits for."""
        if self.history.sealed:
            return
        tasks, file = self.waits(), f"hang-{turn}.json"
        says = "; ".join([sentence(self.history, Diagnosis(), turn, self.clock.now()), *tasks[:1]])
        facts = {"turn": turn, "at_s": round(self.clock.now(), 3), "says": says, "tasks": tasks}
        (self.folder / file).write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        self.history.add(HangSeen(turn=turn, says=says, file=file))
