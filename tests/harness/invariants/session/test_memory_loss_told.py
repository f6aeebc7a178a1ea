"""An agent whose database fails does not answer as if its user had said nothing before."""

from dataclasses import replace

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.turn import AgentKilled
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder

CUT = FaultFired(fault=0, name="cut", link="tcp:db", turn=2, step=None, attempt=None, call=None, proof="x")


def played(
    *sees: list[int] | None,
    says: str = "",
    stderr: str = "",
    link: str = "tcp:db",
    after: bool = False,
    beside: bool = False,
    fails_in: int = 2,
    fired: FaultFired = CUT,
) -> History:
    """A run whose requests carry these turns (None: all); the link's server fails in one turn."""
    tell = HistoryBuilder()
    for number, carried in enumerate(sees, start=1):
        tell.message()
        fired = replace(fired, link=link if fired is CUT else fired.link, turn=fails_in)
        struck = number == fails_in
        if struck and not after:
            tell.add(fired)
        if struck and beside:
            tell.reply(tell.ask(1, background="title"), "A summary.")
        call = tell.ask(1, sees=carried)
        if struck and after:
            tell.add(fired)
        tell.reply(call, f"Done {tell.nonce}")
        tell.end(f"Done {tell.nonce} {says if struck else ''}", stderr=stderr if struck else "")
    return tell.seal()


def test_an_answer_as_if_nothing_had_been_said_before_fails():
    """Also if the next turns carry only what came since, because the empty memory was stored."""
    for later in (None, [2, 3]):
        found = check("memory_loss_told", played([1], [2], later))
        assert found.status == "fail"
        assert found.says == (
            "turn 2: request 2 carries nothing of turn 1, which was answered; cut struck tcp:db, "
            "and nothing in the output says so"
        )


def test_a_turn_that_is_not_stored_fails_at_the_next_message():
    """A failed write that the agent ignores: turn 3 knows turn 1 and not turn 2."""
    found = check("memory_loss_told", played([1], None, [1, 3], None, after=True))
    assert found.status == "fail" and found.says.startswith("turn 3: request 3 carries nothing of turn 2, which was")


def test_a_memory_that_is_lost_for_good_fails():
    """Each later turn without a fault carries only itself."""
    found = check("memory_loss_told", played(None, None, [3], [4], [5], [6], fails_in=3))
    assert found.status == "fail" and found.says.startswith("turn 3: request 3 carries nothing of turn 2")


def test_a_fault_that_is_proved_after_the_request_counts():
    """The bytes of a connection that was cut are counted when it has ended."""
    assert check("memory_loss_told", played([1], [2], None, after=True)).status == "fail"


@pytest.mark.parametrize(
    ("history", "status"),
    [
        (played([1], None, None), "pass"),
        (played([1], [2], None, says="(the memory is unavailable)"), "nothing"),
        (played([1], [2], None, says="I lost track of our conversation, so I start from scratch."), "nothing"),
        (played([1], [2], None, says="Ich weiß nicht mehr, worüber wir gesprochen haben."), "nothing"),
        (played([1], None, [1, 3], None, says="(not saved)"), "pass"),
        (played([1], [2], None, stderr="Error: timeout"), "nothing"),
        (played([1], [2], [3]), "nothing"),
        (played([1], [1, 2], [2, 3]), "pass"),
        (played([1], [2], None, link="llm"), "nothing"),
        (played([1], [2], None, beside=True), "nothing"),
        (played([1], [], None), "nothing"),
        (played([1], [2], None, [4], None), "nothing"),
        (played([1], [2], None, [2, 4], [5]), "nothing"),
        (played([1], None, [1, 3], [4], None, None, fails_in=4), "nothing"),
    ],
    ids=[
        *("retry or cache", "note", "words", "another language", "not saved", "logged", "one turn", "window", "model"),
        *("summary", "no words", "relevant turns", "other relevant turns", "at first"),
    ],
)
def test_agents_that_tell_or_keep_their_memory_or_have_none_do_not_fail(history: History, status: str):
    """A window, a summary and an agent without a memory drop turns on purpose."""
    assert check("memory_loss_told", history).status == status


def test_words_that_each_turn_with_a_failure_has_may_tell_of_it():
    """A database that is down for two turns is told of in both."""
    tell = HistoryBuilder()
    for number in (1, 2, 3, 4):
        tell.message()
        down = number in (2, 3)
        if down:
            tell.add(replace(CUT, turn=number))
        tell.reply(tell.ask(1, sees=[number] if down else None), f"Done {tell.nonce}")
        tell.end(f"Done {tell.nonce} {'(memory offline)' if down else ''}")
    assert check("memory_loss_told", tell.seal()).status == "nothing"


@pytest.mark.parametrize(("second_message", "status"), [(False, "fail"), (True, "nothing")])
def test_a_turn_in_which_a_second_message_came_is_not_judged(second_message: bool, status: str):
    """Which turn a request belongs to, and what the agent had stored by then, is not certain."""
    tell = HistoryBuilder()
    for number in (1, 2, 3):
        tell.message()
        if number == 2:
            tell.add(CUT)
        tell.reply(tell.ask(1, sees=[2] if number == 2 else None), f"Done {tell.nonce}")
        if number == 2 and second_message:
            first, words = tell.turn, f"Done {tell.nonce}"
            tell.message()
            tell.reply(tell.ask(1), f"Done {tell.nonce}")
            tell.end(f"Done {tell.nonce}")
            tell.goes_on(first).end(words)
        else:
            tell.end(f"Done {tell.nonce}")
    assert check("memory_loss_told", tell.seal()).status == status


def test_the_log_of_a_service_is_not_read_by_its_user():
    """Only its reply is; a client library logs each failed connection."""
    tell = HistoryBuilder()
    for number in (1, 2, 3):
        tell.message()
        tell.add(CUT) if number == 2 else None
        tell.reply(tell.ask(1, sees=[2] if number == 2 else None), f"Done {tell.nonce}")
        tell.end(f"Done {tell.nonce}", status=200, stderr="WARNING: timeout reading from socket" if number == 2 else "")
    assert check("memory_loss_told", tell.seal()).status == "fail"


def test_words_that_stand_in_each_output_say_nothing_of_the_loss():
    """The keys of JSON lines, a banner, an id."""
    lines = [f'{{"session_id": "3fa85f64-{number}", "done": true}}' for number in range(3)]
    tell = HistoryBuilder()
    for number, line in enumerate(lines, start=1):
        tell.message()
        if number == 2:
            tell.add(CUT)
        tell.reply(tell.ask(1, sees=[2] if number == 2 else None), f"Done {tell.nonce}")
        tell.end(f"Done {tell.nonce}", stderr=line)
    assert check("memory_loss_told", tell.seal()).status == "fail"


def test_a_locked_database_is_judged_as_a_server_that_fails():
    """It is on the agent's own disk; other faults on the agent are not of its memory."""
    locked = replace(CUT, name="locked", link="agent", of_memory=True)
    found = check("memory_loss_told", played([1], None, [1, 3], None, fired=locked))
    assert found.status == "fail" and "locked struck its database, and nothing in the output says so" in found.says
    frozen = replace(locked, of_memory=False)
    assert check("memory_loss_told", played([1], None, [1, 3], None, fired=frozen)).status == "nothing"


@pytest.mark.parametrize(("whom", "status"), [("worker", "fail"), ("tool", "nothing")])
def test_an_agent_below_that_dies_between_two_messages_is_judged_as_a_server_that_fails(whom: str, status: str):
    """A new one without the session knows nothing of the turn before. A tool that dies has no part in that."""
    tell = HistoryBuilder()
    for number in (1, 2, 3):
        if number == 2:
            tell.add(AgentKilled(turn=2, signal="SIGKILL", whom=whom, pids=(4711,)))
            tell.add(replace(CUT, name="kill", link="agent"))
        tell.message()
        tell.reply(tell.ask(1, sees=[number] if number < 3 else [2, 3]), f"Done {tell.nonce}")
        tell.end(f"Done {tell.nonce}")
    found = check("memory_loss_told", tell.seal())
    assert found.status == status
    assert status == "nothing" or "kill struck the agent below" in found.says
