"""A subagent that the model has stopped asks its own model no more."""

from collections.abc import Sequence

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def _stopped(
    requests: int,
    *,
    after_s: float = 3,
    is_error: bool = False,
    signs: Sequence[str] = ("stopped",),
    begins: int = 1,
    asks: bool = True,
) -> HistoryBuilder:
    """A subagent is stopped behind its first request, or before it, and sends so many more."""
    tell = HistoryBuilder()
    tell.message()
    tasks = tell.reply(tell.ask(1), tools=[True] * begins, name="task")
    begun = [result(token, chars=30, printed=False, signs=("elsewhere",)) for token in tasks]
    (stop,) = tell.reply(tell.ask(2, results=begun), tools=[True], name="stop_agent")
    for number in range(1, begins + 1) if asks else ():
        tell.reply(tell.ask(1, side=f"subagent {number}"), tools=[True])
    told = result(stop, chars=30, printed=False, is_error=is_error, signs=signs)
    call = tell.ask(3, results=[*begun, told])
    tell.reply(call, f"Done {tell.nonce}")
    for step in range(2, requests + 2):
        tell.wait(after_s)
        tell.reply(tell.ask(step, side="subagent 1"), tools=[True])
    tell.end()
    return tell


def test_a_subagent_that_is_only_called_stopped_asks_on():
    """The model reads that it is stopped, and it is paid all the same."""
    found = check("subagent_stops", _stopped(3).seal())
    assert found.status == "fail"
    assert found.says.startswith("tool call 1.2.1 (stop_agent) stopped subagent 1, and 3 requests of it came later")


@pytest.mark.parametrize(("requests", "after_s"), [(0, 3), (1, 3), (4, 0.1)])
def test_a_stop_may_take_a_moment_and_ask_for_last_words(requests: int, after_s: float):
    """What it has done so far may be summed up."""
    assert check("subagent_stops", _stopped(requests, after_s=after_s).seal()).status == "pass"


def test_a_subagent_that_is_stopped_before_it_asks_is_stopped():
    """Its start had to wait."""
    assert check("subagent_stops", _stopped(0, asks=False).seal()).status == "pass"
    assert check("subagent_stops", _stopped(3, asks=False).seal()).status == "fail"


def test_a_stop_that_did_not_work_and_tells_so_is_not_judged():
    """Nor is one of which it is not known whom it meant."""
    assert check("subagent_stops", _stopped(3, is_error=True).seal()).status == "nothing"
    assert check("subagent_stops", _stopped(3, signs=("elsewhere",)).seal()).status == "nothing"
    assert check("subagent_stops", _stopped(3, begins=2).seal()).status == "nothing"


@pytest.mark.parametrize("name", ["subagent_returns", "subagent_end_told"])
def test_the_model_need_not_be_told_of_the_end_of_what_it_has_stopped(name: str):
    """It knows."""
    tell = _stopped(0)
    tell.wait(5)
    tell.message()
    tell.answer_step(1)
    assert check(name, tell.end().seal()).status == "nothing"
