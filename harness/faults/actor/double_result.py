"""
agent ── tools/call (id 3) ──▶ tool host        result (id 3), result (id 3)
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.result_fault import Result, ResultFault


@fault("double_result", family="actor")
@dataclass(frozen=True, slots=True)
class DoubleResult(ResultFault):
    """The tool's result comes twice: the same JSON-RPC response, one behind the other.

    Over HTTP both are events of one stream.
    """

    proof: ClassVar[str] = "the tool host wrote the response twice"

    def on_result(self, result: Result) -> Result:
        """One more of it."""
        return replace(result, copies=result.copies + 1)
