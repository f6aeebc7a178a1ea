"""A busy machine makes nothing green, and red only what it cannot explain."""

from collections.abc import Callable

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result

WAITED = "but the agent waited 2.0 s for a processor"


def _slow_turn(late_s: float) -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}", took_s=61 + late_s)
    return tell


def _slow_tool(late_s: float) -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.answer_step(2, [tell.runs(token, for_s=61 + late_s)])
    return tell


def _late_stop(late_s: float) -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    tell.abort().wait(3 + late_s)
    tell.refuse(tell.ask(2))
    return tell


def _job_that_holds(late_s: float) -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token, background=True)
    tell.wait(3 + late_s).done(token)
    tell.answer_step(2)
    return tell


STORIES: dict[str, tuple[Callable[[float], HistoryBuilder], dict[str, float]]] = {
    "turn_deadline": (_slow_turn, {"turn_s": 60}),
    "tool_deadline": (_slow_tool, {"tool_s": 60}),
    "no_spend_after_abort": (_late_stop, {}),
    "background_returns": (_job_that_holds, {}),
}


@pytest.mark.parametrize("name", STORIES)
def test_what_is_late_by_less_than_the_wait_for_a_processor_is_inconclusive(name: str):
    """And says so; what is later stays red, and what is in time stays green."""
    story, bounds = STORIES[name]

    def verdict(late_s: float) -> tuple[str, str]:
        tell = story(late_s).waited(2.0, for_s=3)
        found = check(name, tell.end().seal(), **bounds)
        return found.status, found.says

    status, says = verdict(1.5)
    assert status == "inconclusive" and says.endswith(WAITED)
    assert verdict(2.5)[0] == "fail"
    assert verdict(-0.5)[0] in ("pass", "nothing")


@pytest.mark.parametrize("name", STORIES)
def test_a_wait_at_another_time_excuses_nothing(name: str):
    """Here when all was over."""
    story, bounds = STORIES[name]
    history = story(1.5).end().wait(10).waited(2.0, for_s=3).seal()
    assert check(name, history, **bounds).status == "fail"


def test_each_process_that_waited_is_named():
    """The network's server holds a turn up too."""
    tell = _slow_turn(1.4).waited(1.0, for_s=5, network_s=0.5)
    assert check("turn_deadline", tell.end().seal(), turn_s=60).says.endswith(
        "but the agent waited 1.0 s for a processor (Toxiproxy 0.5 s)"
    )


def test_the_waits_of_the_harness_excuse_a_late_end():
    """The model's answers came late."""
    late = _slow_turn(1.4).waited(0.0, for_s=5, harness_s=1.5).end().seal()
    found = check("turn_deadline", late, turn_s=60)
    assert (found.status, found.overload) == ("inconclusive", True)
    assert found.says.endswith("but the harness waited 1.5 s for a processor")


def _silent(cpu_wait_s: float) -> History:
    tell = HistoryBuilder()
    tell.message("recovery")
    call = tell.ask(1)
    tell.wait(185).waited(65, for_s=150).deadline(cpu_wait_s=cpu_wait_s)
    tell.reply(call, how="hung up", delivered=0)
    return tell.end("", ended="deadline", exit_code=-9).seal()


@pytest.mark.parametrize("name", ["turn_deadline", "session_recovers"])
def test_a_turn_that_was_stopped_after_all_its_waits_were_granted_is_red(name: str):
    """Only where they were more than anybody waits for, it is not known what it would have done."""
    assert check(name, _silent(0.0)).status == "fail"
    found = check(name, _silent(65.0))
    assert found.status == "inconclusive"
    assert "but it and the harness waited 65.0 s for a processor" in found.says


def test_an_agent_that_was_too_slow_to_start_is_told_the_same_way():
    """It had asked before."""
    for cpu_wait_s, status in ((0.0, "fail"), (65.0, "inconclusive")):
        tell = HistoryBuilder()
        tell.message()
        tell.answer_step(1)
        tell.end().message()
        tell.wait(130).start_missed(cpu_wait_s=cpu_wait_s)
        history = tell.end("", ended="deadline", exit_code=-2).seal()
        assert check("turn_deadline", history).status == status


def _timer_that_fired(waited_s: float, kind: str = "user") -> History:
    tell = HistoryBuilder()
    tell.message("recovery" if kind == "recovery" else "user")
    tell.reply(tell.ask(1), how="hung up", delivered=0, took_s=2)
    tell.waited(waited_s, for_s=2)
    tell.fails("Error: the model timed out")
    if kind == "recovery":
        tell.message("recovery")
        tell.reply(tell.ask(1), how="hung up", delivered=0, took_s=2)
        tell.waited(waited_s, for_s=2)
        tell.fails("Error: the model timed out")
    return tell.seal()


@pytest.mark.parametrize(("name", "kind"), [("turn_answered", "user"), ("session_recovers", "recovery")])
@pytest.mark.parametrize(("waited_s", "status"), [(0.0, "fail"), (0.3, "fail"), (1.5, "inconclusive")])
def test_an_agent_that_stood_still_may_have_met_its_own_timer(name: str, kind: str, waited_s: float, status: str):
    """An error in the place of an answer proves something only where it had the time to do better."""
    assert check(name, _timer_that_fired(waited_s, kind)).status == status


def test_an_error_that_is_no_timers_stays_red():
    """It crashed, at whatever speed."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), "Done", took_s=2)
    tell.waited(2.0, for_s=2)
    assert check("turn_answered", tell.fails("Error: boom").seal()).status == "fail"


def test_an_error_after_a_fault_on_the_last_call_is_the_faults():
    """`Connection aborted` names the cut; a stall on which the agent hung up is another matter."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1))
    tell.wait(2).waited(2.0, for_s=2)
    assert check("turn_answered", tell.fails("Error: Connection aborted.").seal()).status == "fail"


@pytest.mark.parametrize("pairing", [True, False])
def test_an_error_that_names_a_refusal_is_no_timers(pairing: bool):
    """However long the agent stood still: it had its answer."""
    tell, status = HistoryBuilder(), 400 if pairing else 403
    tell.message("recovery")
    for recovery in (True, False):
        tell.refuse(tell.ask(1), status, pairing=pairing, scripted=not pairing)
        tell.wait(2).waited(2.0, for_s=2)
        tell.fails(f"Error: HTTP {status}: refused")
        if recovery and not pairing:
            tell.message("recovery")
        elif recovery:
            break
    assert check("session_recovers", tell.seal()).status == "fail"


def test_a_front_end_that_waits_for_an_agent_that_stands_still_proves_nothing():
    """Where it slept instead, its silence is its own."""
    for waited_s, status in ((1.0, "fail"), (50.0, "inconclusive")):
        tell = HistoryBuilder()
        tell.message()
        tell.ask(1)
        tell.wait(130).waited(waited_s, for_s=130).give_up(after_s=130)
        assert check("turn_deadline", tell.end("", ended="gave up").seal()).status == status


def _paid(by_itself: int, starved: int) -> History:
    tell = HistoryBuilder()
    tell.message()
    for wait_s in (0.0,) * by_itself + (1.0,) * starved:
        call = tell.ask(1)
        tell.reply(call, how="hung up", delivered=0, took_s=2)
        tell.waited(wait_s, for_s=2).hangs_up(call)
    tell.answer_step(1)
    return tell.end().seal()


def test_calls_that_a_starved_agent_gave_up_do_not_make_too_many():
    """Fourteen paid attempts are one too many, unless one of them was the machine's."""
    assert check("paid_call_bound", _paid(13, 0), zero_output=99).status == "fail"
    found = check("paid_call_bound", _paid(12, 1), zero_output=99)
    assert (found.status, found.name) == ("inconclusive", "paid_call_bound")
    assert found.says.endswith("but the agent hung up on request 13 while it waited for a processor")


def test_too_many_calls_without_the_starved_ones_stay_red():
    """The machine explains only its own."""
    assert check("paid_call_bound", _paid(14, 2), zero_output=99).status == "fail"


@pytest.mark.parametrize(("waited_s", "status"), [(0.2, "pass"), (3.0, "inconclusive")])
@pytest.mark.parametrize("stop", ["give_up", "deadline"])
def test_few_calls_until_the_clock_stopped_a_starved_agent_prove_nothing(stop: str, waited_s: float, status: str):
    """It had no time for more: no overload makes a pass."""
    tell = HistoryBuilder()
    tell.message()
    for step in (1, 2, 3):
        (token,) = tell.reply(tell.ask(step), tools=[True], took_s=2)
        tell.runs(token)
    tell.waited(waited_s, for_s=6)
    _ = tell.give_up(after_s=6) if stop == "give_up" else tell.deadline(6)
    history = tell.end("", ended="gave up" if stop == "give_up" else "deadline").seal()
    assert check("tool_round_bound", history, tool_rounds=5).status == status
    assert check("paid_call_bound", history).status == status


def test_a_front_end_that_leaves_at_an_event_stops_no_starved_agent():
    """It would have left at the same call on any machine."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], took_s=2)
    tell.starts(token)
    tell.waited(2.0, for_s=2)
    tell.give_up(after_s=None)
    history = tell.end("", ended="gave up").seal()
    assert check("tool_round_bound", history, tool_rounds=5).status == "pass"


def test_a_hang_up_in_a_stall_is_the_stalls():
    """However long the agent waited for a processor meanwhile."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(13):
        tell.stall(tell.ask(1))
        tell.waited(4.0, for_s=5)
    tell.answer_step(1)
    assert check("paid_call_bound", tell.end().seal(), zero_output=99).status == "fail"


def test_three_retries_at_once_are_hammering_on_any_machine_but_a_cut_may_have_been_seen_late():
    """A refusal of ours we see before the agent does; a cut when the network has proved it."""

    def again(cut: bool) -> History:
        tell = HistoryBuilder()
        tell.message()
        for _ in range(4):
            call = tell.ask(1)
            tell.wait(0.3)
            _ = tell.cut(call) if cut else tell.refuse(call)
        tell.waited(1.0, for_s=1.2)
        tell.answer_step(1)
        return tell.end().seal()

    assert check("retry_discipline", again(cut=False)).status == "fail"
    assert check("retry_discipline", again(cut=True)).status == "inconclusive"


def test_what_must_never_happen_is_red_on_any_machine():
    """A request whose tool calls and results do not pair is no question of time."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.runs(token)
    tell.refuse(tell.ask(2), 400, pairing=True, scripted=False)
    tell.waited(10.0, for_s=1)
    assert check("tool_call_pairing", tell.fails().seal()).status == "fail"


@pytest.mark.parametrize(("harness_s", "status"), [(0.3, "inconclusive"), (0.0, "fail")])
def test_a_tool_that_failed_while_the_harness_waited_may_have_met_a_timer_of_the_agent(harness_s: float, status: str):
    """Nothing was broken then: its own processes had waited as long, and a process that has ended is not measured."""
    tell = HistoryBuilder(recovery_tools=("shell",))
    tell.message("recovery")
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.runs(token, for_s=0.3)
    tell.answer_step(2, [result(token, is_error=True, printed=False)])
    tell.waited(0.0, for_s=0.5, harness_s=harness_s)
    assert check("tools_alive", tell.end().seal()).status == status


def test_an_apology_after_the_deadline_is_judged_as_silence_until_then():
    """A busy machine gave the turn more time than its user has: on a quiet one it would have been stopped."""
    tell = HistoryBuilder(turn_s=60.0)
    tell.message()
    tell.stall(tell.ask(1), waits_s=66)
    tell.waited(0.0, for_s=60, harness_s=20.0)
    history = tell.end("I'm sorry, please try again.").seal()
    assert check("error_surfaced", history).status == "nothing"
    assert check("turn_deadline", history, turn_s=60).status == "inconclusive"


@pytest.mark.parametrize(("harness_s", "status"), [(1.8, "inconclusive"), (0.0, "fail")])
def test_an_agent_that_gave_up_before_a_busy_harness_began_its_reply_met_no_failure(harness_s: float, status: str):
    """The model's answer would have come at once."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.wait(2.0).waited(0.0, for_s=2.0, harness_s=harness_s)
    tell.reply(call, how="hung up", delivered=0)
    tell.hangs_up(call)
    assert check("turn_answered", tell.fails("Error: Timeout").seal()).status == status
