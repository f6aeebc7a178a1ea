"""A command that only prints, and an agent that waits for its end before it reads."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def _judged(*, after_s: float, ends: bool = False, starts: bool = True, time_scale: float = 1.0) -> Verdict:
    """The result of the command is sent `after_s` seconds after its start."""
    tell = HistoryBuilder(time_scale=time_scale)
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    if starts:
        tell.starts(token)
    tell.wait(after_s)
    if ends:
        tell.done(token, exit_code=0)
    tell.answer_step(2, [result(token)])
    return check("output_read", tell.end().seal())


def test_a_command_that_only_prints_and_does_not_end_is_red():
    """The agent stops it at its limit, and reads then."""
    verdict = _judged(after_s=8)
    assert verdict.status == "fail"
    words = "only prints, and had not ended 8.0 s later, when its result was sent: nobody read what it printed"
    assert verdict.says == f"tool call 1.1.1 (shell) {words}"


@pytest.mark.parametrize(("after_s", "ends"), [(8, True), (0.5, False)])
def test_one_that_ended_late_or_was_stopped_at_once_is_no_such_command(after_s: float, ends: bool):
    """A slow terminal reads slowly; a command that prints too much may be stopped."""
    assert _judged(after_s=after_s, ends=ends).status == "pass"


def test_a_command_that_never_ran_is_not_stuck():
    """Its user denied it, or it ran where no trace of it comes from."""
    assert _judged(after_s=8, starts=False).status == "pass"


def test_the_time_scale_divides_the_bound():
    """An agent whose limits are a tenth."""
    assert _judged(after_s=0.8, time_scale=10).status == "fail"


def test_a_fault_on_the_tool_excuses_it():
    """The processes of the agent were struck."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    tell.add(FaultFired(fault=0, name="freeze", link="agent", turn=1, step=1, attempt=1, call=None, proof="x"))
    tell.wait(8)
    tell.answer_step(2, [result(token)])
    assert check("output_read", tell.end().seal()).status == "pass"
