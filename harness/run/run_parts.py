"""What all turns of a run share."""

from dataclasses import dataclass

from wedgehog.fake_llm.script.position import Positions
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.history import History
from wedgehog.harness.run.watching.cpu_wait import CpuMeter, LagMonitor


@dataclass
class RunParts:
    """The parts of a run that a turn is played with, and by which its deadline is measured."""

    history: History
    injector: Injector
    positions: Positions
    clock: Clock
    lag: LagMonitor
    cpu: CpuMeter | None = None
    """The waits for processors; None where the system does not tell them."""

    def waited_s(self, since_s: float, *, with_harness: bool = False) -> float:
        """Seconds that the run has waited for processors since then."""
        return self.cpu.waited_s(since_s, with_harness=with_harness) if self.cpu is not None else 0.0
