"""What a turn means that was killed, stood still, or ran beside another one: never a false red, never a false green."""

from typing import Any

import pytest

from wedgehog.harness.invariants import check, known
from wedgehog.harness.invariants.scope import calls_of, over, stray_calls
from wedgehog.harness.record.events.turn import AgentKilled, TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.testing.history_builder import CUT_TEXT, HistoryBuilder


def killed(**more: Any) -> HistoryBuilder:
    """A turn that is killed in mid tool."""
    tell = HistoryBuilder(**more)
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.starts("1.1.1")
    return tell.kill()


def kinds(history: History) -> list[str]:
    return [outcome_of(turn, history).kind for turn in history.turns]


# ---- killed


def test_a_killed_turn_owes_neither_an_answer_nor_an_error():
    """With nothing said, and an exit code that tells of the signal."""
    tell = killed()
    tell.message("recovery")
    tell.answer_step(1)
    history = tell.end().seal()
    assert kinds(history) == ["killed", "answered"]
    for name in ("error_surfaced", "turn_answered", "turn_deadline", "tool_call_pairing", "truncation_noticed"):
        assert check(name, history).status in ("pass", "nothing"), name


@pytest.mark.parametrize("name", sorted(known()))
def test_no_invariant_is_red_for_a_turn_that_ended_by_a_kill_alone(name: str):
    """The next message is answered, and carries an error for the call that was lost."""
    tell = killed()
    tell.message("recovery")
    tell.answer_step(1)
    assert check(name, tell.end().seal()).status in ("pass", "nothing", "inconclusive")


def test_words_that_came_before_the_kill_are_not_taken_for_an_answer():
    """Half an answer on the screen of a crash is no lie."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), CUT_TEXT)
    tell.add(AgentKilled(turn=1, signal="SIGKILL", whom="tree", pids=(1,)))
    history = tell.end(CUT_TEXT, ended="killed", exit_code=-9).seal()
    assert kinds(history) == ["killed"]
    assert check("truncation_noticed", history).status != "fail"


def test_a_turn_that_had_answered_before_it_was_killed_has_answered():
    """The nonce is on the screen, and the remark says the rest."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.add(AgentKilled(turn=1, signal="SIGTERM", whom="tree", pids=(1,)))
    history = tell.end(ended="killed", exit_code=143).seal()
    outcome = outcome_of(history.turns[0], history)
    assert (outcome.kind, outcome.remark) == ("answered", "it answered before it was killed")


@pytest.mark.parametrize("whom", ["tree", "tool", "server"])
def test_a_turn_that_goes_on_after_a_signal_is_judged_as_ever(whom: str):
    """A SIGTERM that was survived, the death of a tool or a server: they end no turn."""
    tell = HistoryBuilder()
    tell.message()
    tell.add(AgentKilled(turn=1, signal="SIGTERM", whom=whom, pids=(1,)))
    for _ in range(20):
        tell.stall(tell.ask(1), waits_s=1)
    history = tell.end("Sorry.").seal()
    assert history.turns[0].killed is None and kinds(history) == ["hidden"]
    assert check("error_surfaced", history).status == "fail"
    assert check("paid_call_bound", history).status == "fail"


def test_what_came_before_the_kill_is_judged():
    """Twenty paid calls for nothing are red, killed or not."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(20):
        tell.stall(tell.ask(1), waits_s=1)
    assert check("paid_call_bound", tell.kill().seal()).status == "fail"


def test_what_an_orphan_asks_after_the_kill_is_not_the_turns():
    """Nor are calls without a marker that come before the next message."""
    tell = killed()
    for _ in range(20):
        tell.stall(tell.ask(1, turn=1), waits_s=1)
        tell.stall(tell.ask(1, turn=0), waits_s=1)
    history = tell.seal()
    (turn,) = history.turns
    assert over(turn) is turn.killed and [call.number for call in calls_of(turn)] == [1]
    assert stray_calls(history) == ()
    assert check("paid_call_bound", history).status == "pass"


def test_how_long_an_agent_takes_to_end_is_no_work_of_its_turn():
    """Killed within its time, buried after it."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.add(AgentKilled(turn=1, signal="SIGTERM", whom="tree", pids=(1,)))
    tell.wait(60)
    history = tell.end("", ended="killed", exit_code=143).seal()
    assert check("turn_deadline", history, turn_s=10).status == "pass"


def test_a_kill_that_came_too_late_hides_no_late_turn():
    """It had been at work for a minute before."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.wait(60)
    assert check("turn_deadline", tell.kill().seal(), turn_s=10).status == "fail"


def test_of_several_kills_the_agents_own_is_told():
    """Its tool got another one after it."""
    tell = HistoryBuilder()
    tell.message()
    for whom in ("tool", "tree", "tool"):
        tell.add(AgentKilled(turn=1, signal="SIGKILL", whom=whom, pids=(1,)))
    (turn,) = tell.end("", ended="killed", exit_code=-9).seal().turns
    assert turn.killed is not None and turn.killed.whom == "tree"


def test_the_kill_is_one_of_its_own_turn():
    """Another turn's does not explain how this one ended."""
    tell = killed()
    tell.message()
    history = tell.end("", ended="killed", exit_code=-9).seal()
    assert history.turns[0].killed is not None and history.turns[1].killed is None


# ---- frozen


@pytest.mark.parametrize(("whom", "status"), [("tree", "pass"), ("leader", "pass"), ("tool", "fail")])
def test_no_bound_runs_while_the_agent_stands_still(whom: str, status: str):
    """While its tool does, it may be expected to stop waiting."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.starts("1.1.1")
    tell.frozen(60, whom)
    tell.done("1.1.1")
    tell.answer_step(2)
    history = tell.end().seal()
    assert check("turn_deadline", history, turn_s=10).status == status
    assert check("tool_deadline", history, tool_s=10).status == status


def test_only_the_time_that_it_stood_still_is_not_counted():
    """Sixty seconds of its own are sixty seconds."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.frozen(30)
    tell.wait(60)
    tell.answer_step(2)
    history = tell.end().seal()
    assert history.frozen_s(0, 1e9) == pytest.approx(30, abs=0.1)
    assert check("turn_deadline", history, turn_s=50).status == "fail"
    assert check("turn_deadline", history, turn_s=60).status == "pass"


# ---- beside another one


def two(first_answer: str | None = None, second_answer: str | None = None) -> HistoryBuilder:
    """Two turns at once, each with a reply of its own; turn 1 ends last."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.message()
    tell.answer_step(1)
    tell.end(second_answer)
    tell.goes_on(1).answer_step(2)
    return tell.end(first_answer)


def test_turns_at_once_know_of_each_other_and_are_judged_by_themselves():
    """Both answered: nothing is red. A turn that follows is beside no other."""
    tell = two()
    tell.message("recovery")
    tell.answer_step(1)
    history = tell.end().seal()
    assert [[other.number for other in history.beside(turn)] for turn in history.turns] == [[2], [1], []]
    assert kinds(history) == ["answered"] * 3
    assert all(check(name, history).status in ("pass", "nothing", "inconclusive") for name in known())


def test_an_answer_that_went_to_the_other_message_is_an_answer():
    """A queue that answers both in one go: its user has read it."""
    history = two("saffron01otter and saffron02otter", "It is queued.").seal()
    assert kinds(history) == ["answered", "answered"]


def test_answers_that_were_swapped_are_not_taken_for_right():
    """The model ended turn 1 with words of its own, and its user got the other's."""
    tell = two("saffron02otter", "Sorry.")
    assert kinds(tell.seal())[0] != "answered"


def test_an_answer_to_another_message_that_the_model_never_saw_with_it_is_none():
    """Its own model call never ended, and the other's words came in its place."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.message()
    tell.reply(tell.ask(1, sees=[2]), f"Done {tell.nonce}")
    tell.end()
    history = tell.goes_on(1).end("saffron02otter").seal()
    assert kinds(history) == ["hidden", "answered"]


def test_a_model_that_saw_both_messages_at_once_answers_both():
    """The second message went into the running turn, whose own words never came."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.message()
    tell.reply(tell.ask(1, sees=[1, 2]), f"Done {tell.nonce}")
    tell.end("It is part of the work under way.")
    history = tell.goes_on(1).end("saffron02otter").seal()
    assert kinds(history) == ["answered", "answered"]


def test_a_turn_beside_an_aborted_one_spends_for_itself():
    """Its requests are no spending of the other's."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.message()
    tell.goes_on(1).abort()
    tell.end("", ended="aborted", exit_code=None)
    tell.wait(30)
    tell.goes_on(2).answer_step(1)
    history = tell.end().seal()
    assert check("no_spend_after_abort", history).status == "pass"
    late = HistoryBuilder()
    late.message()
    late.reply(late.ask(1), tools=[True])
    late.abort().end("", ended="aborted", exit_code=None)
    late.wait(30)
    late.ask(2, turn=1)
    assert check("no_spend_after_abort", late.seal()).status == "fail"


def test_the_kill_of_both_ends_both():
    """One blow, two turns."""
    tell = HistoryBuilder()
    tell.message()
    tell.message()
    tell.add(AgentKilled(turn=1, signal="SIGKILL", whom="tree", pids=(1, 2)))
    tell.end("", ended="killed", exit_code=-9)
    history = tell.goes_on(1).end("", ended="killed", exit_code=-9).seal()
    assert kinds(history) == ["killed", "killed"]
    assert [end.turn for end in history.of(TurnEnded)] == [2, 1]
