"""
agent ── tools/call ──▶ tool host        {"jsonrpc": "2.0", "id": 3, "resu
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.result_fault import Result, ResultFault


@fault("malformed_result", family="actor")
@dataclass(frozen=True, slots=True)
class MalformedResult(ResultFault):
    """The tool's result is broken JSON: half of the response, framed as if it were whole."""

    proof: ClassVar[str] = "the tool host wrote half of the response"

    def on_result(self, result: Result) -> Result:
        """The same, broken."""
        return replace(result, broken=True)
