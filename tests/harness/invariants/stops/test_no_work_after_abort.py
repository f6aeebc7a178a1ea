"""A stopped turn does no more work."""

from collections.abc import Callable

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import AbortSent
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder

LATE_S = 4.5


def _after(
    went_on: Callable[[HistoryBuilder, str, str], object], *, seconds: float = LATE_S, hangs_up: bool = False
) -> History:
    """The first of two commands runs when its user stops the turn; this is what happens then."""
    tell = HistoryBuilder()
    tell.message()
    first, second = tell.reply(tell.ask(1), tools=[True, True], traced=True)
    tell.starts(first)
    tell.add(AbortSent(turn=1, hangs_up=hangs_up)).wait(seconds)
    went_on(tell, first, second)
    return tell.end("", ended="aborted", exit_code=130).seal()


def _ends(tell: HistoryBuilder, first: str, second: str) -> None:
    tell.done(first, exit_code=0)


def _begins(tell: HistoryBuilder, first: str, second: str) -> None:
    tell.starts(second)


@pytest.mark.parametrize("went_on", [_ends, _begins])
@pytest.mark.parametrize(("seconds", "status"), [(3.9, "pass"), (4.1, "fail")])
def test_a_stop_may_take_three_stretched_seconds(went_on: Callable[..., object], seconds: float, status: str):
    """A signal, a request and the end of a process need some time."""
    assert check("no_work_after_abort", _after(went_on, seconds=seconds)).status == status


@pytest.mark.parametrize("went_on", [_ends, _begins])
def test_a_closed_connection_may_mean_that_the_work_goes_on(went_on: Callable[..., object]):
    """Some services finish a turn for the next visit."""
    assert check("no_work_after_abort", _after(went_on, hangs_up=True)).status == "nothing"


def test_a_command_that_a_signal_ended_has_not_run_on():
    """Its shell lives on, and tells of the signal some seconds later."""
    dies = _after(lambda tell, first, second: tell.done(first, exit_code=143))
    assert check("no_work_after_abort", dies).status == "pass"


@pytest.mark.parametrize(("exit_code", "status"), [(0, "fail"), (143, "pass")])
def test_a_command_that_began_just_after_the_stop_may_not_run_to_its_end(exit_code: int, status: str):
    """The signal had gone out before the command began, so only the agent can end it."""

    def begins_and_ends(tell: HistoryBuilder, first: str, second: str) -> None:
        tell.starts(second)
        tell.wait(8)
        tell.done(second, exit_code=exit_code)

    assert check("no_work_after_abort", _after(begins_and_ends, seconds=0.6)).status == status


def test_what_a_command_left_in_the_background_may_go_on():
    """The user started a server with it."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], traced=True)
    tell.starts(token, background=True)
    tell.abort().wait(20)
    tell.add(BeaconSeen(token=token, phase="done", background=True))
    assert check("no_work_after_abort", tell.end("", ended="aborted", exit_code=130).seal()).status == "pass"


def test_a_call_that_a_tool_server_has_begun_may_end_there():
    """The server is no process of the agent, and MCP does not promise that a call can be cancelled."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="weather")
    tell.starts(token)
    tell.abort().wait(20)
    tell.done(token, exit_code=0)
    assert check("no_work_after_abort", tell.end("", ended="aborted", exit_code=130).seal()).status == "pass"
