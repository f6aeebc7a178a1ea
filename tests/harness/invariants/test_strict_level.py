"""What a team wants of an agent that it ships, beyond no lie and no waste: judged at level strict."""

from typing import Any

import pytest

from wedgehog.harness.agents.callables.callable_host import STACK_BELOW
from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.run import CpuWait, CpuWaitSeen
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import SessionSaved
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import CUT_TEXT, result

HALF = "The hedgehogs of this garden eat beetles, worms, snails"
"""The beginning of a reply."""


def _answered(tell: HistoryBuilder, *, sees: tuple[int, ...] | None = None) -> None:
    tell.message()
    tell.reply(tell.ask(1, sees=sees), f"Done {tell.nonce}")
    tell.end()


@pytest.mark.parametrize(("said", "status"), [("Hm.", "fail"), ("", "nothing")])
def test_a_reply_without_words_may_be_asked_for_again(said: str, status: str):
    """Thoughts alone are no answer."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), said)
    tell.reply(tell.ask(1), said)
    assert check("asked_once", tell.end().seal()).status == status


@pytest.mark.parametrize(("sees", "status"), [((1,), "fail"), ((1, 2), "pass")])
def test_the_message_of_an_answered_turn_reached_the_model(sees: tuple[int, ...], status: str):
    """A summary that is made at the start of a turn can lose the message that began it."""
    tell = HistoryBuilder()
    _answered(tell, sees=(1,))
    _answered(tell, sees=sees)
    _answered(tell, sees=(1, 2, 3))
    assert check("history_kept", tell.seal()).status == status


def test_a_stateless_agent_keeps_no_history_and_is_not_judged():
    """No request of its run carries an earlier turn."""
    tell = HistoryBuilder()
    for number in (1, 2, 3):
        _answered(tell, sees=(number,))
    assert check("history_kept", tell.seal()).status == "nothing"


def test_an_agent_that_carried_its_control_run_and_forgets_here_is_red():
    """Already in its second message, and without any failure."""
    tell = HistoryBuilder(resumes=True)
    _answered(tell)
    _answered(tell, sees=(2,))
    assert check("history_kept", tell.seal()).status == "fail"


def test_requests_that_do_not_show_their_own_message_say_nothing_of_earlier_ones():
    """The agent puts messages into words of its own, or keeps what it has heard as facts."""
    tell = HistoryBuilder(resumes=True)
    _answered(tell, sees=())
    _answered(tell, sees=())
    assert check("history_kept", tell.seal()).status == "nothing"


@pytest.mark.parametrize(
    ("status", "message", "verdict"),
    [
        (400, "prompt is too long: 213462 tokens > 200000 maximum", "nothing"),
        (413, "Request exceeds the size", "nothing"),
        (400, "messages: text content blocks must be non-empty", "fail"),
        (429, "The maximum of requests was reached", "fail"),
    ],
)
def test_an_agent_may_drop_earlier_turns_that_the_provider_called_too_long(status: int, message: str, verdict: str):
    """It must shorten its conversation, and which part it drops is its choice."""
    tell = HistoryBuilder(resumes=True)
    _answered(tell)
    tell.message()
    tell.refuse(tell.ask(1), status, message=message)
    tell.reply(tell.ask(1, sees=(2,)), f"Done {tell.nonce}")
    tell.end()
    assert check("history_kept", tell.seal()).status == verdict


def test_a_trimmed_conversation_that_keeps_the_last_answer_is_kept():
    """A long session may lose its oldest turns."""
    tell = HistoryBuilder()
    _answered(tell)
    _answered(tell)
    _answered(tell, sees=(2, 3))
    assert check("history_kept", tell.seal()).status == "pass"


def test_a_summary_in_the_place_of_messages_may_hold_them():
    """A background call between the turns may have made it."""
    tell = HistoryBuilder()
    _answered(tell)
    _answered(tell)
    tell.message()
    tell.reply(tell.ask(1, background="summary"), "They spoke of owls.")
    tell.reply(tell.ask(1, sees=(3,)), "Done.")
    tell.end()
    assert check("history_kept", tell.seal()).status == "nothing"


@pytest.mark.parametrize(("seen", "status"), [((), "fail"), ((1, 2, 3), "nothing")])
def test_a_subagent_makes_no_summary_unless_its_words_are_there(seen: tuple[int, ...], status: str):
    """It works beside the conversation, which must be there as before."""
    tell = HistoryBuilder()
    _answered(tell)
    _answered(tell)
    tell.reply(tell.ask(1, background="subagent", side="subagent 1"), "It is empty.")
    tell.message()
    tell.reply(tell.ask(1, sees=(3,), replies=seen), "Done.")
    assert check("history_kept", tell.end().seal()).status == status


@pytest.mark.parametrize(
    ("kind", "words", "seen", "status"),
    [
        ("summary", "They spoke of owls.", (), "fail"),
        ("compact", "They spoke of owls.", (1, 2, 3), "nothing"),
        ("summary", '{"summary": "ok"}', (), "nothing"),
        ("summary", "", (), "nothing"),
        ("title", "Owls", (), "nothing"),
    ],
)
def test_a_summary_that_is_paid_and_left_out_keeps_nothing(kind: str, words: str, seen: tuple[int, ...], status: str):
    """A title says nothing of the turns, and what fills a schema can't be recognized."""
    tell = HistoryBuilder()
    _answered(tell)
    _answered(tell)
    tell.message()
    tell.reply(tell.ask(1, background=kind), words)
    tell.reply(tell.ask(1, sees=(3,), replies=seen), "Done.")
    verdict = check("history_kept", tell.end().seal())
    assert verdict.status == status
    assert status != "fail" or verdict.says.endswith("before, nor the summary of request 3")


@pytest.mark.parametrize(
    ("refused", "more", "status"),
    [
        (503, {}, "fail"),
        (400, {}, "pass"),
        (503, {"sees": (1, 2, 3)}, "pass"),
        (503, {"results": [result("2.1.1", printed=False)]}, "pass"),
        (503, {"results": [result("", printed=False)]}, "pass"),
        (503, {"replies": [2]}, "pass"),
    ],
)
def test_a_turn_that_failed_after_its_tool_had_run_is_known_to_the_next_one(
    refused: int, more: dict[str, Any], status: str
):
    """By its message, a result or a reply; what the provider did not accept may be taken back."""
    tell = HistoryBuilder()
    _answered(tell)
    tell.message()
    tell.reply(tell.ask(1), "I run it.", tools=[True])
    tell.refuse(tell.ask(2, results=[tell.runs("2.1.1")]), refused)
    tell.fails().message()
    tell.reply(tell.ask(1, **{"sees": (1, 3), "replies": [1], **more}), f"Done {tell.nonce}")
    verdict = check("history_kept", tell.end().seal())
    assert verdict.status == status
    assert status == "pass" or verdict.says.endswith("2.1.1 had run, and request 4 carries nothing of it")


@pytest.mark.parametrize(
    ("shown", "more", "status"),
    [
        ("Half an ans", {}, "fail"),
        ("", {}, "nothing"),
        ("Half an ans", {"sees": (1, 2)}, "pass"),
        ("Half an ans", {"replies": [1]}, "pass"),
    ],
)
def test_a_turn_that_was_stopped_after_words_had_come_is_known_to_the_next_one(
    shown: str, more: dict[str, Any], status: str
):
    """Its user goes on from what they have read; where nothing had come, an agent may give the message back."""
    tell = HistoryBuilder(resumes=True)
    tell.message()
    call = tell.ask(1)
    tell.abort()
    tell.reply(call, shown, how="hung up")
    tell.end("", ended="aborted", exit_code=130).message()
    tell.reply(tell.ask(1, **{"sees": (2,), "replies": (), **more}), f"Done {tell.nonce}")
    verdict = check("history_kept", tell.end().seal())
    assert verdict.status == status
    assert status != "fail" or verdict.says.endswith("words of request 1 had come, and request 2 carries nothing of it")


@pytest.mark.parametrize(
    ("sends", "torn", "sees", "status"),
    [
        (True, False, (1, 3), "fail"),
        (True, False, (1, 2, 3), "pass"),
        (False, False, (1, 3), "pass"),
        (True, True, (1, 3), "pass"),
    ],
)
def test_a_killed_turn_whose_result_was_sent_is_known_to_the_next_one(
    sends: bool, torn: bool, sees: tuple[int, ...], status: str
):
    """An agent that stores a turn at its end only has lost the work of it; a torn file may have lost more."""
    tell = HistoryBuilder()
    _answered(tell)
    tell.message()
    tell.reply(tell.ask(1), "I run it.", tools=[True])
    ran = tell.runs("2.1.1")
    if sends:
        tell.ask(2, results=[ran])
    tell.kill()
    if torn:
        tell.add(SessionSaved(turn=2, path="session.jsonl", sha256="", size=0, torn=True))
    tell.message()
    tell.reply(tell.ask(1, sees=sees, replies=[1]), f"Done {tell.nonce}")
    verdict = check("history_kept", tell.end().seal())
    assert verdict.status == status
    assert status == "pass" or "2.1.1 had run" in verdict.says


@pytest.mark.parametrize(("fails", "runs"), [(False, True), (True, False)])
def test_a_turn_that_was_answered_or_in_which_nothing_ran_may_be_trimmed(fails: bool, runs: bool):
    """An agent may leave turns out, as long as it carries one that was answered."""
    tell = HistoryBuilder()
    _answered(tell)
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    call = tell.ask(2, results=[tell.runs(token) if runs else result(token, is_error=True, printed=False)])
    if fails:
        tell.refuse(call)
        tell.fails()
    else:
        tell.reply(call, f"Done {tell.nonce}")
        tell.end()
    tell.message()
    tell.reply(tell.ask(1, sees=(1, 3), replies=[1]), f"Done {tell.nonce}")
    assert check("history_kept", tell.end().seal()).status == "pass"


def test_a_summary_may_tell_of_a_turn_that_failed():
    """A call beside the conversation came between."""
    tell = HistoryBuilder()
    _answered(tell)
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.refuse(tell.ask(2, results=[tell.runs("2.1.1")]))
    tell.fails().message()
    tell.reply(tell.ask(1, background="summary"), "A tool ran.")
    tell.reply(tell.ask(1, sees=(1, 3), replies=[1, 4]), f"Done {tell.nonce}")
    assert check("history_kept", tell.end().seal()).status == "pass"


def test_a_message_that_failed_may_be_forgotten():
    """Only an answered turn has to come back, and one in which a tool ran."""
    tell = HistoryBuilder()
    _answered(tell)
    tell.message()
    tell.refuse(tell.ask(1))
    tell.fails()
    _answered(tell, sees=(1, 3))
    assert check("history_kept", tell.seal()).status == "pass"


def test_a_half_reply_that_the_whole_one_continues_is_shown_once():
    """The agent takes back what it had shown, or shows only the rest."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), CUT_TEXT)
    tell.answer_step(1)
    tell.end(f"{CUT_TEXT} gulls. {tell.nonce}")
    assert check("output_once", tell.seal()).status == "pass"


def test_a_continued_reply_whose_beginning_is_shown_twice_is_found_though_its_last_bytes_were_lost():
    """The model goes on behind the beginning that the agent sends back; a reset took the beginning's end."""
    for shown, status in ((f"{HALF} and berries", "pass"), (f"{HALF[:-3]}{HALF} and berries", "fail")):
        tell = HistoryBuilder()
        tell.message()
        tell.cut(tell.ask(1), HALF)
        tell.reply(tell.ask(1), f" and berries {tell.nonce}")
        tell.end(f"{shown} {tell.nonce}")
        assert check("output_once", tell.seal()).status == status


@pytest.mark.parametrize(
    ("between", "behind", "stderr", "status"),
    [
        ("\n[retrying]\n", "", "", "pass"),
        ("\n(connection lost, starting over)\n", "", "", "pass"),
        ("\n", "", "[the connection failed; trying again]", "pass"),
        ("\n", "", "", "fail"),
        ("\nBot> ", "", "", "fail"),
        ("\n[continuing]\n", "", "", "fail"),
        ("\n", "\n[retrying]", "", "fail"),
    ],
)
def test_a_program_that_says_that_the_reply_begins_again_may_show_its_beginning_twice(
    between: str, behind: str, stderr: str, status: str
):
    """What was printed cannot be taken back; its user reads that the two texts are one."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), HALF)
    tell.reply(tell.ask(1), f"{HALF} and berries. {tell.nonce}")
    tell.end(f"{HALF}{between}{HALF} and berries. {tell.nonce}{behind}", stderr=stderr)
    assert check("output_once", tell.seal()).status == status


def test_words_of_a_retry_excuse_no_whole_reply_that_is_shown_twice():
    """Nothing was tried again."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), f"{HALF}. {tell.nonce}")
    tell.end(f"{HALF}. {tell.nonce}\n[retry]\n{HALF}. {tell.nonce}")
    assert check("output_once", tell.seal()).status == "fail"


@pytest.mark.parametrize(("shown", "status"), [("{0}\n{1}", "fail"), ("{1}", "pass"), ("word1 word2\n{1}", "pass")])
def test_a_long_reply_that_is_drawn_anew_from_its_begin_is_shown_twice(shown: str, status: str):
    """What has left the screen of a terminal stays above it. A few words before it may be a log."""
    tell = HistoryBuilder()
    tell.message()
    words = [f"word{number}" for number in range(400)]
    text = " ".join([*words, tell.nonce])
    tell.reply(tell.ask(1), text)
    tell.end(shown.format(" ".join(words[:60]), text))
    assert check("output_once", tell.seal()).status == status


@pytest.mark.parametrize(("times", "status"), [(1, "pass"), (2, "fail")])
def test_words_before_a_tool_call_are_shown_once(times: int, status: str):
    """A front end that adds each step's words to those before shows them again with each step."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), "First I look at the log.", tools=[True])
    tell.answer_step(2, [tell.runs(token)])
    tell.end(f"{'First I look at the log. ' * times}Done {tell.nonce}")
    assert check("output_once", tell.seal()).status == status


def test_an_answer_with_two_replies_of_the_model_shows_each_once():
    """The second one tells what the model says to the end of a subagent; both have the word that marks the answer."""
    for shown, status in (("I have heard of it", "pass"), (HALF, "fail")):
        tell = HistoryBuilder()
        tell.message()
        tell.reply(tell.ask(1), f"{HALF}. {tell.nonce}")
        tell.reply(tell.ask(1), f"{shown}. {tell.nonce}")
        tell.end(f"{HALF}. {tell.nonce}\n{shown}. {tell.nonce}")
        assert check("output_once", tell.seal()).status == status


def test_two_replies_that_begin_alike_are_not_shown_twice():
    """The first of them was broken once, and came whole after that."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), f"{HALF} and")
    tell.reply(tell.ask(1), f"{HALF} and berries.", tools=[True])
    tell.reply(tell.ask(2), f"{HALF} in winter. {tell.nonce}")
    tell.end(f"{HALF} and berries. {HALF} in winter. {tell.nonce}")
    assert check("output_once", tell.seal()).status == "pass"


def test_a_command_that_the_abort_ends_and_a_call_that_is_hung_up_are_a_stop():
    """Within two seconds, and one of grace."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    tell.abort()
    tell.wait(1)
    tell.end("", ended="aborted", exit_code=130)
    assert check("stops_when_told", tell.seal()).status == "pass"


def test_a_command_in_the_background_may_outlive_its_turn():
    """The user started a server with it."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token, background=True)
    tell.abort()
    tell.end("", ended="aborted", exit_code=130)
    tell.wait(20)
    tell.add(BeaconSeen(token=token, phase="done", background=True))
    assert check("stops_when_told", tell.seal()).status == "pass"


@pytest.mark.parametrize(("first_byte_s", "status"), [(0.5, "fail"), (9.0, "nothing")])
def test_words_that_came_after_a_stop_need_not_be_kept(first_byte_s: float, status: str):
    """Their user could not read them."""
    tell = HistoryBuilder(resumes=True)
    tell.message()
    call = tell.ask(1)
    tell.wait(2)
    tell.abort()
    tell.reply(call, "Half an ans", how="hung up", took_s=8, first_byte_s=first_byte_s)
    tell.end("", ended="aborted", exit_code=130).message()
    tell.reply(tell.ask(1, sees=(2,), replies=()), f"Done {tell.nonce}")
    assert check("history_kept", tell.end().seal()).status == status


@pytest.mark.parametrize(("after_s", "status"), [(12, "pass"), (20, "fail")])
def test_a_turn_ends_soon_after_its_abort(after_s: float, status: str):
    """Fifteen seconds are enough for processes that do not end at once."""
    tell = HistoryBuilder()
    tell.message()
    tell.hangs_up(tell.ask(1))
    tell.abort()
    tell.wait(after_s)
    tell.end("", ended="aborted", exit_code=130)
    assert check("stops_when_told", tell.seal()).status == status


@pytest.mark.parametrize(("when", "status"), [("behind the stop", "fail"), ("before the stop", "pass")])
def test_the_result_of_a_tool_that_was_stopped_is_not_sent_in_the_same_turn(when: str, status: str):
    """An agent that takes the stop for a failure of its tool goes on at once, within the grace for new requests."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    if when == "before the stop":
        tell.done(token, exit_code=0)
    tell.abort()
    tell.reply(tell.ask(2, results=[result(token, printed=False, is_error=True)]), "So be it.")
    tell.end("", ended="aborted", exit_code=130)
    assert check("stops_when_told", tell.seal()).status == status


@pytest.mark.parametrize(
    "said",
    [
        'Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 1',
        "Error: boom\n    at ask (/app/agent.js:12:5)\n    at node:internal/process:1:2",
        "panic: boom\n\ngoroutine 1 [running]:",
        "thread 'main' panicked at src/main.rs:3:5: boom",
    ],
)
def test_a_stack_of_any_language_is_no_error_message(said: str):
    """Python, Node.js, Go and Rust."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1))
    tell.fails(said)
    assert check("no_traceback", tell.seal()).status == "fail"


@pytest.mark.parametrize(("status", "verdict"), [(500, "pass"), (None, "fail")])
def test_a_stack_in_the_log_of_a_service_is_not_shown_to_its_user(status: int | None, verdict: str):
    """The user reads the response; the log is where a stack belongs."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1))
    log = 'Traceback (most recent call last):\n  File "a.py", line 1\nOSError: disk full'
    tell.end("", error="storage: disk full", stderr=log, status=status, exit_code=None if status else 1)
    assert check("no_traceback", tell.seal()).status == verdict


@pytest.mark.parametrize(("shared", "verdict"), [(True, "pass"), (False, "fail")])
def test_a_stack_that_may_be_of_another_session_is_not_this_turns(shared: bool, verdict: str):
    """Two sessions in one process have one stderr."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1))
    stack = 'Traceback (most recent call last):\n  File "a.py", line 1\nOSError: disk full'
    tell.end("", error="storage: disk full", stderr=stack, shared=shared, raised="Internal error")
    assert check("no_traceback", tell.seal()).status == verdict


@pytest.mark.parametrize(("log", "said", "verdict"), [(True, "", "pass"), (False, "", "fail"), (True, "stack", "fail")])
def test_a_stack_on_the_stderr_of_an_agent_that_speaks_a_protocol_is_in_its_log(log: bool, said: str, verdict: str):
    """Its user reads the messages of the protocol; a stack in one of these is shown."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1))
    stack = "AgentError: killed\n    at prompt (file:///app/index.js:12:5)"
    error = stack if said else "AgentError: killed"
    tell.end("", error=error, stderr=stack, log_on_stderr=log, raised="AgentError", exit_code=None)
    assert check("no_traceback", tell.seal()).status == verdict


def test_a_sentence_is_an_error_message():
    """Also if it names a file and a line of the user's own."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1))
    tell.fails("Error: config.yaml:3: the provider is overloaded, try again at 10:30:00")
    assert check("no_traceback", tell.seal()).status == "pass"


@pytest.mark.parametrize(("answered", "code", "status"), [(True, 0, "pass"), (True, 1, "fail"), (False, 1, "pass")])
def test_an_exit_code_says_whether_the_message_was_answered(answered: bool, code: int, status: str):
    """An agent that answers and exits with 1 lies as much as one that fails and exits with 0."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.end(exit_code=code) if answered else tell.end("", error="Error: overloaded", exit_code=code)
    assert check("exit_code_tells", tell.seal()).status == status


@pytest.mark.parametrize(("code", "status"), [(0, "fail"), (2, "pass")])
@pytest.mark.parametrize("empty", [False, True])
def test_an_exit_code_says_that_an_agent_stopped_at_its_own_limit(empty: bool, code: int, status: str):
    """After one more call, or after an empty reply; a script does not read its words."""
    tell = HistoryBuilder()
    tell.message()
    if empty:
        tell.reply(tell.ask(1), "")
    else:
        (token,) = tell.reply(tell.ask(1), tools=[True])
        tell.reply(tell.ask(2, results=[tell.runs(token, for_s=0.01)]), tools=[True])
    tell.end("I stopped here, and made no report.", exit_code=code)
    assert check("exit_code_tells", tell.seal()).status == status


def test_a_refusal_of_the_model_and_a_service_at_its_limit_may_be_a_success():
    """What the model says itself is an answer; agents differ in the status of a limit."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), "I do not do that.")
    assert check("exit_code_tells", tell.end("I do not do that.", exit_code=0).seal()).status == "nothing"
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), "")
    assert check("exit_code_tells", tell.end("Nothing came.", exit_code=None, status=200).seal()).status == "nothing"


@pytest.mark.parametrize(("streamed", "status"), [(False, "fail"), (True, "nothing")])
def test_a_service_that_streams_its_answer_cannot_tell_an_error_by_its_status(streamed: bool, status: str):
    """The status was sent before the model was asked."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 529)
    tell.end("", error="overloaded", exit_code=None, status=200, streamed=streamed)
    assert check("exit_code_tells", tell.seal()).status == status


@pytest.mark.parametrize("code", [0, 130])
def test_an_answer_that_came_with_the_stop_may_end_in_either_exit_code(code: int):
    """The user stops the turn when its last words are on their way."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.abort()
    tell.reply(call, f"Done {tell.nonce}")
    tell.end(exit_code=code)
    assert check("exit_code_tells", tell.seal()).status == "nothing"


@pytest.mark.parametrize("code", [0, 1])
def test_words_whose_stream_broke_off_behind_them_may_end_in_either_exit_code(code: int):
    """The user read all of them; the agent cannot know that no more would have come."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), "A hedgehog.")
    tell.end(exit_code=code, stderr="[the connection broke: what you read may be incomplete]")
    assert check("exit_code_tells", tell.seal()).status == "pass"


@pytest.mark.parametrize(("waited_s", "status"), [(0.1, "fail"), (3.0, "inconclusive")])
def test_a_reply_that_came_late_on_a_busy_machine_may_be_asked_for_again(waited_s: float, status: str):
    """The agent's own timer had fired when the harness began to reply."""
    tell = HistoryBuilder()
    tell.message()
    tell.wait(6.0)
    tell.add(CpuWaitSeen(turn=1, waits=(CpuWait(0.0, 6.0, waited_s, 0.0, 0.0),)))
    tell.reply(tell.ask(1), "A hedgehog.")
    tell.reply(tell.ask(1), f"A hedgehog. {tell.nonce}")
    assert check("asked_once", tell.end().seal()).status == status


@pytest.mark.parametrize(("frozen", "status"), [(True, "pass"), (False, "fail")])
def test_a_reply_that_came_while_the_agent_stood_still_may_be_asked_for_again(frozen: bool, status: str):
    """Its timer and its reply are both due when it wakes up, and the timer may win."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1, body="same")
    if frozen:
        tell.frozen(20.0)
    tell.reply(call, f"Done {tell.nonce}")
    tell.reply(tell.ask(1, body="same"), f"Done {tell.nonce}")
    assert check("asked_once", tell.end().seal()).status == status


def test_the_stack_that_a_functions_host_prints_is_not_shown_by_the_function():
    """To raise is how a function tells its caller of an error; what the function itself printed still counts."""
    stack = 'Traceback (most recent call last):\n  File "a.py", line 1\nTurnFailed: overloaded\n'
    said = {"error": "TurnFailed: overloaded", "raised": "TurnFailed: overloaded", "exit_code": None}
    for stderr, status in ((f"{STACK_BELOW}\n{stack}", "pass"), (f"{stack}{STACK_BELOW}\n{stack}", "fail")):
        tell = HistoryBuilder()
        tell.message()
        tell.refuse(tell.ask(1))
        tell.end("", stderr=stderr, **said)
        assert check("no_traceback", tell.seal()).status == status


@pytest.mark.parametrize(("calls", "status"), [(1, "fail"), (2, "pass")])
def test_a_tool_call_has_one_result(calls: int, status: str):
    """A call of which a stream changed the id is not two; two calls of a reply may have one id."""
    tell = HistoryBuilder()
    tell.message()
    token, *_ = tell.reply(tell.ask(1), tools=[True] * calls)
    told = [tell.runs(token), result(token, is_error=True, printed=False)]
    tell.reply(tell.ask(2, results=told), f"Done {tell.nonce}")
    verdict = check("said_once", tell.end().seal())
    assert verdict.status == status
    assert status == "pass" or verdict.says == "turn 1: request 2 carries two results of tool call 1.1.1"


@pytest.mark.parametrize(
    ("offered", "status"),
    [(["bash", "look"], "pass"), (["bash", "look", "bash"], "fail"), (["bash", "", ""], "pass"), ([], "nothing")],
)
def test_a_tool_is_offered_once(offered: list[str], status: str):
    """A tool of the provider's own has no name."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1, tools=offered), f"Done {tell.nonce}")
    verdict = check("tools_once", tell.end().seal())
    assert verdict.status == status
    assert status != "fail" or verdict.says == "turn 1: request 1 offers the tool bash 2 times"


def test_a_call_of_a_reply_that_broke_off_has_no_result_beside_the_whole_one():
    """The retry brings the call again; the half one must not stay in the conversation."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), "I clean up.", tools=[False])
    token, *_ = tell.reply(tell.ask(1), "I clean up.", tools=[True])
    told = [result(token, is_error=True, printed=False), tell.runs(token)]
    tell.reply(tell.ask(2, results=told), f"Done {tell.nonce}")
    verdict = check("said_once", tell.end().seal())
    assert verdict.says == (
        "turn 1: request 3 carries two results of tool call 1.1.1, of which a reply that broke off had brought a part"
    )


@pytest.mark.parametrize(("link", "status"), [("chat", "pass"), ("llm", "fail")])
def test_a_bot_may_send_an_answer_again_that_its_chat_never_confirmed(link: str, status: str):
    """It cannot know that the answer has arrived, and one that is lost is worse."""
    tell = HistoryBuilder()
    tell.message()
    answer = f"All is well. {tell.nonce}"
    tell.reply(tell.ask(1), answer)
    tell.fires("stall", None, link)
    tell.end(f"{answer}\n{answer}", appends=True)
    assert check("output_once", tell.seal()).status == status
