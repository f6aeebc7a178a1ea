"""A turn ends in time."""

import re
from dataclasses import replace
from typing import Any

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import SessionPlanted
from wedgehog.harness.record.events.service import ChatAsked
from wedgehog.harness.record.events.turn import HangSeen
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.testing import HistoryBuilder

STRUCK = FaultFired(fault=0, name="stall", link="tcp:db", turn=1, step=None, attempt=None, call=None, proof="x")


def _turn_of(seconds: float, *, lag_s: float = 0.0) -> HistoryBuilder:
    tell = HistoryBuilder().lag(lag_s)
    tell.message()
    tell.wait(3)
    tell.reply(tell.ask(1), f"Done {tell.nonce}", took_s=seconds)
    return tell.end()


@pytest.mark.parametrize(
    ("seconds", "lag_s", "status"),
    [
        (60.9, 0.0, "pass"),
        (61.1, 0.0, "fail"),
        (61.1, 0.5, "inconclusive"),
        (61.6, 0.5, "fail"),
        (60.9, 6.0, "pass"),
        (70.0, 6.0, "inconclusive"),
    ],
)
def test_the_bound_counts_from_the_first_request_and_is_stretched_by_a_second(
    seconds: float, lag_s: float, status: str
):
    """The start-up before it does not count; what our own lag can have cost is inconclusive, however long it was."""
    assert check("turn_deadline", _turn_of(seconds, lag_s=lag_s).seal(), turn_s=60).status == status


@pytest.mark.parametrize(("seconds", "says"), [(59.0, "60.0 s allowed"), (60.9, "one second of grace")])
def test_a_pass_beyond_the_bound_names_the_second_of_grace(seconds: float, says: str):
    assert check("turn_deadline", _turn_of(seconds).seal(), turn_s=60).says.endswith(says)


def test_the_stock_bound_is_two_minutes():
    """Where neither spec nor scenario names one."""
    assert check("turn_deadline", _turn_of(120.5).seal()).status == "pass"
    assert check("turn_deadline", _turn_of(121.5).seal()).status == "fail"


def _stopped_at(bound_s: float, answer: str = "", **said: str) -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.wait(bound_s + 1).deadline(bound_s)
    tell.reply(call, how="hung up", delivered=0)
    return tell.end(answer, ended="deadline", exit_code=-2, **said)


def test_a_turn_that_was_stopped_at_the_bound_fails():
    """Silent until then."""
    verdict = check("turn_deadline", _stopped_at(60).seal(), turn_s=60)
    assert (verdict.status, verdict.says) == ("fail", "turn 1 gave no answer and no error within 60.0 s")


@pytest.mark.parametrize(
    ("tries", "says"),
    [
        (1, "within 60.0 s, in which 1 request was given up after 20.0 s"),
        (2, "within 60.0 s, in which 2 requests were given up after up to 20.0 s"),
    ],
)
def test_a_turn_that_is_late_by_its_own_time_outs_says_so(tries: int, says: str):
    """Its user reads that it does not hang, but waits for the sum of its tries."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(tries):
        call = tell.ask(1)
        tell.wait(20).hangs_up(call)
    tell.ask(1)
    tell.wait(60).deadline(60).end("", ended="deadline", exit_code=-2)
    assert check("turn_deadline", tell.seal(), turn_s=60).says.endswith(says)


def _retried_until(stderr: str, *, appends: bool = False) -> str:
    tell = HistoryBuilder()
    tell.message()
    for _ in range(3):
        tell.refuse(tell.ask(1), 429)
        tell.wait(20)
    tell.deadline(60).end("", ended="deadline", stderr=stderr, appends=appends)
    return check("turn_deadline", tell.seal(), turn_s=60).says


def test_a_turn_that_told_of_each_refusal_and_went_on_is_late_and_not_called_silent():
    """Its user saw why he waits; words that do not name what the provider said prove nothing."""
    told = _retried_until("Attempt 1 failed with status 429. Retrying with backoff...")
    assert told == "turn 1 reported the 429, but neither answered nor gave up within 60.0 s"
    assert _retried_until("\x1b[33m429\x1b[0m, again in 1 s").startswith("turn 1 reported the 429")
    assert _retried_until("pid 42900 ^C KeyboardInterrupt") == "turn 1 gave no answer and no error within 60.0 s"


def test_what_a_bot_told_only_its_log_was_not_told_to_its_user():
    """In a chat and on a page nobody reads what the program prints."""
    told = _retried_until("Failed with status 429", appends=True)
    says = "turn 1 told the 429 to its log only, and gave its user no answer and no error within 60.0 s"
    assert told == says


@pytest.mark.parametrize(
    ("stderr", "says"),
    [
        (
            "ERROR: Reconnecting… waiting for network\nturn interrupted",
            "reported ERROR: Reconnecting… waiting for network, but",
        ),
        ("Error: interrupted by a signal", "gave no answer and no error within 60.0 s"),
        ("Traceback (most recent call last):\n    raise OSError(1)\nKeyboardInterrupt", "gave no answer and no error"),
    ],
)
def test_an_agent_that_told_an_error_and_went_on_is_late_and_not_called_silent(stderr: str, says: str):
    """But for what our own stop made it say."""
    verdict = check("turn_deadline", _stopped_at(60, stderr=stderr).seal(), turn_s=60)
    assert verdict.status == "fail" and says in verdict.says


def test_an_agent_that_answers_but_does_not_end_is_late_all_the_same():
    """Slow, not silent; its user still waits for the prompt."""
    verdict = check("turn_deadline", _stopped_at(60, "Here: saffron01otter").seal(), turn_s=60)
    assert verdict.says == "turn 1 had answered, but did not end within 60.0 s"


@pytest.mark.parametrize(("usual_s", "status"), [(0.0, "fail"), (25.0, "pass"), (12.0, "fail")])
def test_an_exit_that_is_always_slow_decides_nothing(usual_s: float, status: str):
    """As slow as in the control run: what is longer than that is counted."""
    tell = HistoryBuilder(exit_s=usual_s)
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}", took_s=50)
    tell.wait(25)
    assert check("turn_deadline", tell.end().seal(), turn_s=60).status == status


@pytest.mark.parametrize(("after_answer_s", "status"), [(25.0, "pass"), (16.0, "pass"), (14.0, "fail"), (0.0, "fail")])
def test_only_what_follows_the_answer_is_a_usual_exit(after_answer_s: float, status: str):
    """The user waits until the answer is out, however long the model's reply is over."""
    tell = HistoryBuilder(exit_s=25)
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}", took_s=50)
    tell.wait(25)
    assert check("turn_deadline", tell.end(after_answer_s=after_answer_s).seal(), turn_s=60).status == status


def test_an_agent_that_has_not_answered_has_no_usual_exit():
    """An error that comes too late is late."""
    tell = HistoryBuilder(exit_s=25)
    tell.message()
    tell.cut(tell.ask(1))
    tell.wait(75)
    assert check("turn_deadline", tell.end("Error: cut").seal(), turn_s=60).status == "fail"


def test_a_turn_that_was_stopped_before_a_longer_bound_is_inconclusive():
    """Judged again with another bound, the run cannot tell."""
    assert check("turn_deadline", _stopped_at(60).seal(), turn_s=90).status == "inconclusive"


@pytest.mark.parametrize("bound_s", [5, 60.5])
def test_a_turn_that_was_stopped_for_its_number_of_calls_is_inconclusive(bound_s: float):
    """Other invariants judge the number; how long the turn would have taken is unknown."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    history = tell.deadline(bound_s, too_many="27 paid calls of one step").end("", ended="deadline").seal()
    verdict = check("turn_deadline", history, turn_s=60)
    assert verdict.status == "inconclusive"
    assert verdict.says.startswith("turn 1 was stopped after 27 paid calls of one step, before 60.0 s")
    assert outcome_of(history.turns[0], history).how.endswith("before it was stopped after 27 paid calls of one step")


@pytest.mark.parametrize(("after_s", "status"), [(90.0, "fail"), (89.9, "pass"), (90 / 7 * 7, "fail"), (None, "fail")])
def test_silence_until_a_give_up_counts_from_the_bound_on_as_written(after_s: float | None, status: str):
    """Neither is stretched; without a written time the measured one counts."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.wait(90).give_up(after_s=after_s)
    tell.reply(call, how="hung up", delivered=0)
    history = tell.end("", ended="gave up", exit_code=None).seal()
    verdict = check("turn_deadline", history, turn_s=90)
    assert verdict.status == status
    red = "turn 1: the front end waited 90.0 s without an answer and gave up, 90.0 s allowed"
    assert verdict.says == (red if status == "fail" else "each turn was stopped by its user, 90.0 s allowed")


def test_an_aborted_turn_owes_nothing():
    """However long its user had waited."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    tell.wait(500).abort().end("", ended="aborted", exit_code=130)
    assert check("turn_deadline", tell.seal()).status == "nothing"


def test_a_fault_before_any_request_counts_from_the_message_and_the_usual_start_up():
    """Two minutes of refused connections are two minutes of waiting, though the first request came late."""
    tell = HistoryBuilder()
    tell.message()
    tell.connection_refused()
    tell.wait(125)
    tell.answer_step(1)
    assert check("turn_deadline", tell.end().seal()).status == "fail"


@pytest.mark.parametrize(
    ("link", "waits_s", "late", "says"),
    [
        ("tcp:db", 3.0, False, "turn 1 took 5.5 s, 4.0 s allowed"),
        ("store", 3.0, False, "turn 1 took 5.5 s, 4.0 s allowed"),
        ("tcp:db", 0.2, False, "the slowest turn took 3.0 s, 4.0 s allowed"),
        ("tcp:db", 3.0, True, "the slowest turn took 3.0 s, 4.0 s allowed"),
        ("llm", 3.0, True, "the slowest turn took 3.0 s, 4.0 s allowed"),
    ],
)
def test_the_wait_for_a_database_that_a_fault_struck_is_a_part_of_the_turn(
    link: str, waits_s: float, late: bool, says: str
):
    """Its user waits from the message on, before the first request and after it; a usual start-up does not count."""
    tell = HistoryBuilder()
    tell.message()
    tell.wait(waits_s)
    if not late:
        tell.add(replace(STRUCK, link=link))
    call = tell.ask(1)
    if late:  # the agent's own work before its request is not the fault's
        tell.add(replace(STRUCK, link=link, call=call if link == "llm" else None))
    tell.reply(call, f"Done {tell.nonce}", took_s=3)
    assert check("turn_deadline", tell.end().seal(), turn_s=4).says == says


def test_an_agent_that_had_asked_before_and_now_never_does_is_silent():
    """A session that waits for a lost result deadlocks before its first request."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.end().message()
    tell.wait(61).start_missed()
    assert check("turn_deadline", tell.end("", ended="deadline", exit_code=-2).seal()).status == "fail"


def test_an_agent_that_never_asked_at_all_is_inconclusive():
    """It may be wrongly set up."""
    tell = HistoryBuilder()
    tell.message()
    tell.wait(61).start_missed()
    assert check("turn_deadline", tell.end("", ended="deadline", exit_code=-2).seal()).status == "inconclusive"


@pytest.mark.parametrize(("link", "status"), [("chat", "fail"), ("tcp:memory", "inconclusive")])
def test_an_agent_that_gives_up_a_message_because_its_chat_refused_a_note_hangs(link: str, status: str):
    """It has the message, and its user waits. A database may be what it needs before it asks."""
    tell = HistoryBuilder()
    tell.message()
    tell.add(FaultFired(fault=0, name="chat_status", link=link, turn=1, step=1, attempt=1, call=None, proof="x"))
    tell.wait(61).start_missed()
    assert check("turn_deadline", tell.end("", ended="deadline", exit_code=-2).seal()).status == status


def test_an_agent_that_never_asks_though_the_network_is_back_hangs():
    """The fault that kept its first request away is healed; it neither asks again nor says an error."""
    tell = HistoryBuilder()
    tell.message()
    tell.connection_refused("down")
    tell.wait(61).start_missed()
    assert check("turn_deadline", tell.end("", ended="deadline", exit_code=-2).seal()).status == "fail"


def test_an_agent_that_never_asks_again_since_the_network_was_down_hangs():
    """The turn before ended in an error, and none of its requests had arrived; the link has been healed since."""
    tell = HistoryBuilder()
    tell.message()
    tell.connection_refused("down")
    tell.fails("Error: connection refused")
    tell.message("recovery")
    tell.wait(61).start_missed()
    history = tell.end("", ended="deadline", exit_code=-2).seal()
    assert (check("turn_deadline", history).status, check("session_recovers", history).status) == ("fail", "fail")


def test_an_agent_that_never_asks_from_a_planted_session_is_silent_by_itself():
    """Its control had asked, from a session of its own."""
    tell = HistoryBuilder().add(SessionPlanted(turn=0, path="session/a.jsonl", lines=61, sha256="0" * 64))
    tell.message()
    tell.wait(61).start_missed()
    assert check("turn_deadline", tell.end("", ended="deadline", exit_code=-2).seal()).status == "fail"


def test_what_the_agent_was_seen_to_wait_for_is_said_and_is_evidence():
    """A deadline, or a message to which it never asked the model."""
    for missed in (False, True):
        tell = HistoryBuilder()
        tell.message()
        tell.answer_step(1)
        tell.end().message()
        if missed:
            tell.wait(62).start_missed(60)
        else:
            tell.ask(1)
            tell.wait(122).deadline()
        tell.add(HangSeen(turn=tell.turn, says="it waited for Godot", file="hang-1.json"))
        history = tell.end("", ended="deadline", exit_code=-9).seal()
        verdict = check("turn_deadline", history)
        assert verdict.status == "fail" and verdict.says.endswith(".0 s: it waited for Godot")
        assert history.events[verdict.evidence[-1]].kind == "hang_seen"


@pytest.mark.parametrize(("aborted_after_s", "status"), [(5, "fail"), (100, "nothing")])
def test_a_turn_that_never_ends_after_its_abort_is_red(aborted_after_s: float, status: str):
    """Where the stop came shortly before the deadline, the agent had little time for it."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    tell.wait(aborted_after_s)
    tell.abort()
    tell.wait(120 - aborted_after_s)
    tell.deadline()
    tell.end("", ended="aborted", exit_code=-9)
    verdict = check("turn_deadline", tell.seal())
    assert verdict.status == status
    assert status != "fail" or "after its abort" in verdict.says


def test_the_slowest_turn_is_said_in_milliseconds_and_without_what_it_leaves_out():
    """`0.0 s` would contradict the table of turns, which counts stopped turns and the agent's exit."""
    tell = HistoryBuilder(exit_s=0.5)
    tell.message()
    tell.ask(1)
    tell.abort().end("", ended="aborted", exit_code=130)
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}", took_s=0.06)
    tell.wait(0.3)
    says = check("turn_deadline", tell.end().seal(), turn_s=10).says
    stated = re.fullmatch(r"the slowest turn that was not stopped took (\d+) ms without the 3\d\d ms that it .*", says)
    assert stated is not None and 50 <= int(stated[1]) <= 100


@pytest.mark.parametrize(("what", "told"), [("refused", True), ("send", False)])
def test_a_message_that_the_chat_did_not_take_is_told(what: Any, told: bool):
    """Its agent may believe that it has answered."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1))
    tell.add(ChatAsked(what="refused", text="message is too long"))
    if what == "send":
        tell.add(ChatAsked(what=what, text="Hello"))
    tell.wait(122).deadline()
    says = check("turn_deadline", tell.end("", ended="deadline", exit_code=-9).seal()).says
    assert ("the chat refused what it sent: message is too long" in says) is told
