"""A command in the background does not hold the agent."""

from collections.abc import Sequence

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def _job(tools: int = 1) -> tuple[HistoryBuilder, str, tuple[str, ...]]:
    tell = HistoryBuilder()
    tell.message()
    token, *others = tell.reply(tell.ask(1), tools=[True] * tools)
    tell.starts(token, background=True)
    return tell, token, tuple(others)


def test_a_result_that_is_sent_while_the_job_runs_passes():
    """Whether it ends later or never."""
    for ends in (True, False):
        tell, token, _ = _job()
        call = tell.wait(0.2).ask(2, results=[result(token)])
        if ends:
            tell.wait(30).done(token)
        tell.reply(call, f"Done {tell.nonce}")
        verdict = check("background_returns", tell.end().seal())
        assert (verdict.status, verdict.says) == (
            "pass",
            "tool call 1.1.1 (shell) came back after 0.2 s, while its job ran",
        )


def test_a_result_that_is_sent_only_when_the_job_has_ended_fails():
    """The tool waited, or something else that held the shell's output was waited for."""
    tell, token, _ = _job()
    tell.wait(30).done(token)
    tell.answer_step(2, [result(token)])
    verdict = check("background_returns", tell.end().seal())
    assert (verdict.status, verdict.says) == (
        "fail",
        "tool call 1.1.1 (shell) did not come back in 30.0 s, though its command ends in `&` and its job has ended",
    )


def test_a_result_that_comes_with_the_end_of_the_job_fails_too():
    """The job's output closes some milliseconds before its beacon is written, and the agent is fast."""
    tell, token, _ = _job()
    call = tell.wait(25).ask(2, results=[result(token)])
    tell.wait(0.05).done(token)
    tell.reply(call, f"Done {tell.nonce}")
    assert check("background_returns", tell.end().seal()).status == "fail"


def test_a_job_that_was_over_at_once_proves_nothing():
    """No agent could have been faster; how long is long enough is a bound."""
    tell, token, _ = _job()
    tell.wait(2.5).done(token)
    tell.answer_step(2, [result(token)])
    history = tell.end().seal()
    assert check("background_returns", history).status == "nothing"
    assert check("background_returns", history, least_s=1).status == "fail"


def test_a_turn_that_ends_without_the_result_fails_if_there_was_time_for_it():
    """Silent until its deadline, or with an error of the tool's own patience."""
    tell, _, _ = _job()
    tell.wait(121).deadline()
    assert check("background_returns", tell.end("", ended="deadline", exit_code=-9).seal()).status == "fail"
    tell, _, _ = _job()
    assert check("background_returns", tell.wait(30).fails("Error: timed out").seal()).status == "fail"
    tell, _, _ = _job()
    assert check("background_returns", tell.wait(1).fails("Error: overloaded").seal()).status == "nothing"


def test_an_error_that_comes_late_is_no_result():
    """The tool gave up waiting; one that comes at once only says that the command is not liked."""
    for after_s, status in ((30, "fail"), (0.5, "pass")):
        tell, token, _ = _job()
        tell.wait(after_s)
        tell.answer_step(2, [result(token, is_error=True)])
        assert check("background_returns", tell.end().seal()).status == status


@pytest.mark.parametrize(
    ("signs", "printed", "after_s", "status"),
    [
        (("stopped", "failed"), True, 8, "fail"),
        (("stopped", "elsewhere"), True, 8, "pass"),
        (("stopped",), False, 8, "pass"),
        (("stopped", "failed"), False, 8, "fail"),
        (("stopped", "failed", "elsewhere"), False, 8, "pass"),
        (("stopped",), True, 0.5, "pass"),
        ((), True, 8, "pass"),
        (None, True, 8, "pass"),
    ],
)
def test_a_late_word_of_a_stop_is_no_result(signs: Sequence[str] | None, printed: bool, after_s: float, status: str):
    """Where the wire has no mark for an error. A tool may wait on purpose, and say that the job runs on."""
    tell, token, _ = _job()
    tell.wait(after_s)
    tell.answer_step(2, [result(token, signs=signs, printed=printed)])
    assert check("background_returns", tell.end().seal()).status == status


def test_a_sibling_that_runs_holds_the_request():
    """Not the job."""
    tell, token, (slow,) = _job(2)
    tell.starts(slow)
    tell.wait(10).done(token)
    tell.wait(10).done(slow)
    tell.answer_step(2, [result(token), result(slow)])
    assert check("background_returns", tell.end().seal()).status == "nothing"


def test_a_sibling_that_begins_only_when_the_job_has_ended_was_kept_waiting():
    """One tool at a time, and the first one waits."""
    tell, token, (next_,) = _job(2)
    tell.wait(10).done(token)
    tell.answer_step(2, [result(token), tell.runs(next_)])
    assert check("background_returns", tell.end().seal()).status == "fail"


def test_a_sibling_without_a_beacon_may_be_what_it_waits_for():
    """It can't be told."""
    tell, token, (page,) = _job(2)
    tell.wait(10).done(token)
    tell.answer_step(2, [result(token), result(page)])
    assert check("background_returns", tell.end().seal()).status == "nothing"


@pytest.mark.parametrize("after_s", [1, 30])
def test_a_kill_ends_the_time_in_which_it_could_have_come_back(after_s: float):
    """Whoever waited long enough before it waited all the same."""
    tell, token, _ = _job()
    tell.wait(after_s).kill()
    tell.message()
    tell.answer_step(1, [result(token)])
    assert check("background_returns", tell.end().seal()).status == ("fail" if after_s == 30 else "nothing")


def test_an_agent_that_was_harmed_itself_is_judged_until_then():
    """Frozen, or without room on its disk, it may not be able to send anything."""
    tell, token, _ = _job()
    freeze = FaultFired(fault=0, name="freeze", link="agent", turn=1, step=1, attempt=1, call=None, proof="built")
    tell.wait(1).add(freeze)
    tell.wait(30).done(token)
    tell.answer_step(2, [result(token)])
    assert check("background_returns", tell.end().seal()).status == "nothing"


def test_a_fault_that_kept_the_request_away_makes_it_inconclusive():
    """The result may have been on its way all the time."""
    tell, token, _ = _job()
    tell.connection_refused()
    tell.wait(30).done(token)
    tell.answer_step(2, [result(token)])
    assert check("background_returns", tell.end().seal()).status == "inconclusive"


def test_our_own_lag_makes_it_inconclusive():
    """A harness that was slow proves nothing."""
    for lag_s, status in ((5.5, "inconclusive"), (2.0, "inconclusive")):
        tell, token, _ = _job()
        tell.lag(lag_s).wait(4.5 if lag_s == 2.0 else 30).done(token)
        tell.answer_step(2, [result(token)])
        assert check("background_returns", tell.end().seal()).status == status


def test_a_command_in_front_may_take_its_time():
    """Only a trailing `&` promises to come back."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.answer_step(2, [tell.runs(token, for_s=60)])
    assert check("background_returns", tell.end().seal()).status == "nothing"
