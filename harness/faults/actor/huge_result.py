"""
agent ── tools/call ──▶ tool host        result: a page, and 5,000,000 bytes more
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.parameters import Range
from wedgehog.harness.faults.result_fault import Result, ResultFault


@fault("huge_result", family="actor")
@dataclass(frozen=True, slots=True)
class HugeResult(ResultFault):
    """The tool's result is `bytes` bytes long: its own words, then filler."""

    bytes: Annotated[int, Range(1, 200_000_000)]
    proof: ClassVar[str] = "the tool host wrote the padded result"

    def on_result(self, result: Result) -> Result:
        """The same, padded."""
        return replace(result, bytes=max(result.bytes, self.bytes))
