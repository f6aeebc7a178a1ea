"""A tool server that dies whenever it starts is not started for ever."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import CpuWait, CpuWaitSeen
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder


def _started(times: int, *, every_s: float = 0.1, link: str = "ipc:mcp", waited_s: float = 0.0) -> Verdict:
    """So many starts in the first turn, each struck by a fault."""
    tell = HistoryBuilder()
    tell.message()
    for attempt in range(1, times + 1):
        struck = {"fault": 0, "name": "cut", "link": link, "turn": 1, "step": 1, "call": None, "proof": "built"}
        tell.add(FaultFired(attempt=attempt, **struck))
        tell.wait(every_s)
    if waited_s:
        tell.add(CpuWaitSeen(turn=1, waits=(CpuWait(0.0, times * every_s, waited_s, 0.0, 0.0),)))
    tell.answer_step(1)
    return check("server_start_bound", tell.end().seal())


def test_a_storm_of_starts_is_red():
    """The bound is far above what an agent of good will needs."""
    verdict = _started(30)
    assert verdict.status == "fail"
    assert verdict.says == "mcp was started 30 times within 20 s, and died each time; 25 allowed"


@pytest.mark.parametrize(
    ("times", "every_s", "link", "status"),
    [(25, 0.1, "ipc:mcp", "pass"), (100, 1.0, "ipc:mcp", "pass"), (100, 0.1, "llm", "nothing")],
    ids=["as many as are allowed", "one each second", "a fault of the model"],
)
def test_other_starts_are_not(times: int, every_s: float, link: str, status: str):
    """An agent may go on for ever if it waits."""
    assert _started(times, every_s=every_s, link=link).status == status


@pytest.mark.parametrize(
    ("times", "waited_s", "status"), [(13, 15.0, "inconclusive"), (13, 0.0, "pass"), (3, 4.0, "pass")]
)
def test_a_machine_that_is_too_busy_for_a_storm_decides_nothing(times: int, waited_s: float, status: str):
    """Each start takes seconds there. A few starts are few on any machine."""
    assert _started(times, every_s=1.5, waited_s=waited_s).status == status
