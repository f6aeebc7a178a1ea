"""
agent ── tools/call ──▶ tool host        … and nothing comes back; the server lives, and answers other requests
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.result_fault import Result, ResultFault


@fault("lose_result", family="actor")
@dataclass(frozen=True, slots=True)
class LoseResult(ResultFault):
    """The tool's result is lost: the server lives on, and this call is never answered."""

    strikes_at_once: ClassVar[bool] = True
    proof: ClassVar[str] = "the tool host has the call and keeps its answer"

    def on_result(self, result: Result) -> Result:
        """None will come."""
        return replace(result, lost=True)
