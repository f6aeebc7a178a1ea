"""What a tool call does, it does once."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.testing import HistoryBuilder


def _called() -> tuple[HistoryBuilder, str]:
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    return tell, token


def test_a_call_that_runs_once_passes():
    """Its result may be sent as often as the conversation goes on."""
    tell, token = _called()
    carried = tell.runs(token)
    tell.stall(tell.ask(2, results=[carried]))
    tell.answer_step(2, [carried])
    assert check("at_most_once_tools", tell.end().seal()).status == "pass"


def test_a_step_that_is_tried_again_offers_the_same_call_again_and_it_runs_once():
    """Both replies bear the same token; only one was acted on."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), tools=[True])
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.answer_step(2, [tell.runs(token)])
    assert check("at_most_once_tools", tell.end().seal()).status == "pass"


def test_the_call_of_a_cut_reply_that_ran_must_not_run_again_for_the_retry():
    """An agent that runs calls as they stream in must remember them."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.cut(tell.ask(1), tools=[True])
    tell.runs(token, for_s=2)
    tell.reply(tell.ask(1), tools=[True])
    tell.answer_step(2, [tell.runs(token)])
    history = tell.end().seal()
    verdict = check("at_most_once_tools", history)
    assert (verdict.status, verdict.says) == ("fail", "tool call 1.1.1 (shell) ran twice, again after 2.1 s")
    assert verdict.evidence == tuple(beacon.id for beacon in history.of(BeaconSeen) if beacon.phase == "started")


@pytest.mark.parametrize(
    ("whom", "killed"), [("tree", "the agent"), ("leader", "the agent"), ("server", "the tool server")]
)
def test_a_call_that_a_restart_ran_again_fails_and_the_kill_is_said(whom: str, killed: str):
    """How far the first run came is unknown: the model or the user may ask for a second."""
    tell, token = _called()
    tell.starts(token)
    tell.kill(whom).message()
    tell.answer_step(1, [tell.runs(token)])
    verdict = check("at_most_once_tools", tell.end().seal())
    assert verdict.status == "fail"
    assert verdict.says.endswith(f", with a kill of {killed} in between")


def test_more_than_two_runs_are_counted():
    """Each of them did what it does."""
    tell, token = _called()
    for _ in range(4):
        tell.runs(token, for_s=1)
    tell.answer_step(2)
    says = check("at_most_once_tools", tell.end().seal()).says
    assert says == "tool call 1.1.1 (shell) ran 4 times, the last time 1.0 s after the one before"


def test_the_same_command_asked_for_in_another_step_is_another_call():
    """The model asked for it again."""
    tell, token = _called()
    first = tell.runs(token)
    (again,) = tell.reply(tell.ask(2, results=[first]), tools=[True])
    tell.answer_step(3, [first, tell.runs(again)])
    assert check("at_most_once_tools", tell.end().seal()).status == "pass"


def test_what_an_agent_does_while_it_is_being_stopped_is_told_under_its_deadline():
    """But not what it does in the next turn."""
    for later, status in ((False, "pass"), (True, "fail")):
        tell, token = _called()
        tell.starts(token)
        tell.wait(121).deadline()
        tell.starts(token)
        tell.end("", ended="deadline", exit_code=-9).message()
        if later:
            tell.starts(token)
        tell.answer_step(1)
        assert check("at_most_once_tools", tell.end().seal()).status == status


def test_without_a_beacon_there_is_nothing_to_judge():
    """No call was carried out, or it leaves no trace."""
    tell, _ = _called()
    assert check("at_most_once_tools", tell.fails().seal()).status == "nothing"


@pytest.mark.parametrize(("compacts", "status"), [(True, "nothing"), (False, "fail")])
def test_a_call_that_the_model_makes_again_after_a_compaction_is_no_repeat(compacts: bool, status: str):
    """The summary left it out, so the model asked for it: the agent did as it was told."""
    tell, token = _called()
    tell.runs(token)
    if compacts:
        tell.reply(tell.ask(1, background="compact"), "A short note.")
    tell.reply(tell.ask(1), tools=[True])
    tell.answer_step(2, [tell.runs(token)])
    assert check("at_most_once_tools", tell.end().seal()).status == status


def test_a_call_that_runs_again_beside_a_compaction_without_being_asked_for_is_a_repeat():
    """No reply after the summary has it."""
    tell, token = _called()
    tell.runs(token)
    tell.reply(tell.ask(1, background="compact"), "A short note.")
    tell.answer_step(2, [tell.runs(token)])
    assert check("at_most_once_tools", tell.end().seal()).status == "fail"
