"""
agent ── tools/call ──▶ tool host        result: {"isError": true, "content": "the tool failed"}
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.result_fault import Result, ResultFault


@fault("error_result", family="actor")
@dataclass(frozen=True, slots=True)
class ErrorResult(ResultFault):
    """The tool says that it failed: a result with `isError`, and `message` as its words."""

    message: str = "the tool failed"
    proof: ClassVar[str] = "the tool host said that the tool failed"

    def on_result(self, result: Result) -> Result:
        """The error in place of the answer."""
        return replace(result, text=self.message, is_error=True)
