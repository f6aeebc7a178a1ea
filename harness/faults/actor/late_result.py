"""
agent ── tools/call ──▶ tool host ─── s seconds ───▶ result
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.parameters import Seconds
from wedgehog.harness.faults.result_fault import Result, ResultFault


@fault("late_result", family="actor")
@dataclass(frozen=True, slots=True)
class LateResult(ResultFault):
    """The tool's result comes `s` seconds later than it would."""

    s: Seconds
    strikes_at_once: ClassVar[bool] = True
    proof: ClassVar[str] = "the tool host has the call and holds its answer back"

    def on_result(self, result: Result) -> Result:
        """The same, later."""
        return replace(result, delay_s=result.delay_s + self.s)
