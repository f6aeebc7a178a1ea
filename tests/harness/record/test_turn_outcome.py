"""The outcome of a turn: both sides of each rule."""

import json
from typing import Any

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.error_words import causes, plain
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import RunStarted
from wedgehog.harness.record.events.turn import AgentKilled, PermissionAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import IF_ITS_ERROR, TurnOutcome, outcome_of
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import CUT_TEXT

APOLOGY = "Sorry, I could not do that."


def _came_to(history: History) -> TurnOutcome:
    return outcome_of(history.turns[-1], history)


def _fine(answer: str, **end: Any) -> TurnOutcome:
    """No call failed."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    return _came_to(tell.end(answer, **end).seal())


def _down(answer: str = "", *, error_at_path: bool = False, usual: tuple[str, ...] = (), **end: Any) -> TurnOutcome:
    """The one call was refused."""
    tell = HistoryBuilder(error_at_path=error_at_path, usual=usual)
    tell.message()
    tell.refuse(tell.ask(1), 503)
    return _came_to(tell.end(answer, **end).seal())


@pytest.mark.parametrize(
    "answer",
    [
        "saffron01otter",
        "**SAFFRON01** otter!",
        "saf\nfron-01\u200bot ter",
        "Error: 503, yet: saffron01otter",
        "\x1b[1;32msaf\x1b[0m\x1b[38;2;1;2;3mfron01\x1b[m\x1b[?25l\x1b[2Kotter\x1b[0m",
    ],
)
def test_the_whole_nonce_is_an_answer_whatever_stands_around_it(answer: str):
    """Case, white space, markup, colours and an additional error do not matter."""
    assert _fine(answer, exit_code=1).kind == "answered"


@pytest.mark.parametrize("answer", ["saffron01otte", "saffron02otter"])
def test_part_of_a_nonce_or_another_turns_is_none(answer: str):
    """The nonce must be that of this turn, and complete; a part of it is at least what the model said."""
    assert _fine(answer).kind == "stopped at its limit"


@pytest.mark.parametrize(
    "words",
    [
        "Agent stopped due to iteration limit or time limit.",
        "Max iterations of 20 reached! Something went wrong.",
        "Reached max steps.",
        "I have hit the maximum number of retries.",
        "Stopped: the limit of 25 rounds is reached.",
        "Limit of 3 tool calls reached",
    ],
)
def test_words_that_name_a_limit_are_an_error(words: str):
    """As frameworks write them, where the model said something else."""
    assert _down(words).kind == "surfaced"


def test_an_answer_before_the_deadline_is_an_answer_with_a_remark():
    """The agent answered but ends late."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.wait(121).deadline()
    outcome = _came_to(tell.end(ended="deadline", exit_code=-2).seal())
    assert (outcome.kind, outcome.remark) == ("answered", "it answered but did not end by itself")


@pytest.mark.parametrize("words", ["", "KeyboardInterrupt", CUT_TEXT])
def test_over_its_deadline_a_turn_is_silent_whatever_it_says_while_it_is_stopped(words: str):
    """The traceback of the harness's own signal is no surfaced error."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), CUT_TEXT)
    tell.wait(121).deadline()
    assert _came_to(tell.end(words, ended="deadline", exit_code=-2, stderr=words).seal()).kind == "silent"


def test_a_turn_in_which_it_never_asked_the_model_is_silent():
    """The harness stopped it."""
    tell = HistoryBuilder()
    tell.message()
    tell.wait(61).start_missed()
    outcome = _came_to(tell.end("", ended="deadline", exit_code=-2, stderr="KeyboardInterrupt").seal())
    assert (outcome.kind, outcome.how) == ("silent", "it sent no request to the model")


def test_a_turn_that_its_user_stopped_owes_nothing():
    """It needs neither answer nor error."""
    for how in ("aborted", "gave up"):
        tell = HistoryBuilder()
        tell.message()
        tell.ask(1)
        if how == "aborted":
            tell.abort()
        else:
            tell.give_up(after_s=30)
        assert _came_to(tell.end("", ended=how, exit_code=0).seal()).kind == "stopped by its user"


@pytest.mark.parametrize(("chosen", "kind"), [("reject_once", "stopped by its user"), ("allow_once", "hidden")])
def test_a_turn_may_end_without_a_word_when_its_user_denies_its_tool(chosen: str, kind: str):
    """A tool that is allowed is no excuse."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.add(PermissionAsked(turn=1, offered=("allow_once", "reject_once"), chosen=chosen))
    assert _came_to(tell.end("").seal()).kind == kind


def test_a_turn_without_an_end_is_unfinished():
    """The run ended before the turn."""
    tell = HistoryBuilder()
    tell.message()
    assert _came_to(tell.seal()).kind == "unfinished"


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        ({"exit_code": 1, "stderr": "it broke"}, "surfaced"),
        ({"exit_code": -11, "stderr": "Segmentation fault"}, "surfaced"),
        ({"exit_code": 1}, "hidden"),
        ({"exit_code": None, "status": 500}, "surfaced"),
        ({"exit_code": None, "status": 400, "answer": "no"}, "surfaced"),
        ({"exit_code": None, "status": 200}, "hidden"),
        ({"exit_code": None, "raised": "TimeoutError()"}, "surfaced"),
        ({"exit_code": None, "raised": None}, "hidden"),
        ({"exit_code": 0, "stderr": "retrying soon"}, "hidden"),
    ],
)
def test_an_exit_code_with_words_a_status_or_an_exception_is_an_error_that_surfaced(end: dict[str, Any], kind: str):
    """An exit code without words, or words on stderr with exit code 0, are no error."""
    assert _down(**({"answer": ""} | end)).kind == kind


@pytest.mark.parametrize(("error_at_path", "kind"), [(True, "surfaced"), (False, "hidden")])
def test_any_word_at_the_specs_own_place_for_errors_is_an_error(error_at_path: bool, kind: str):
    """Elsewhere the words must name a cause."""
    assert _down(error="it did not work", error_at_path=error_at_path).kind == kind


@pytest.mark.parametrize(
    "words",
    [
        "Error: no route",
        "error (503)",
        "Request timed out.",
        "timeout",
        "rate limit reached",
        "rate-limit",
        "The model is overloaded",
        "service unavailable",
        "Connection refused",
        "connection reset by peer",
        "connection lost",
        "Error calling LLM: it gave no reason.",
        "Connection error.",
        "We could not connect to the model.",
        "Could not respond. Failed to fetch",
        "Too many requests, your quota is used up",
        "Authentication failed",
        "The API key was refused.",
        "It gave status code 500",
        "Anthropic stream ended before message_stop",
        "stream disconnected before completion",
        "The connection was closed unexpectedly",
        "Premature close",
        "socket hang up",
        "[!] fetch failed",
        "[!] terminated",
        "Sorry: read ECONNRESET",
        "Sorry: other side closed",
        "All connection attempts failed",
        "[Errno 111] Connect call failed ('127.0.0.1', 1)",
        "Server disconnected without sending a response.",
        "Remote end closed connection without response",
        "Connection closed.",
        "unexpected EOF",
        "The provider says: Internal Server Error",
        "The model call failed (third try)",
        "Request failed: no more tries",
        "No response from the model.",
        "The model returned an empty message.",
        "The model did not answer.",
        "The stream was interrupted",
        "incomplete response",
        "[the reply was cut off; please ask again]",
        "(The connection dropped. Send your message again.)",
        "[truncated]",
        "La respuesta del modelo no cabe (MAX_TOKENS).",
        "HTTP 503",
        "\x1b[1;31mError\x1b[0m: no route",
        "LLM request rejected: Your input exceeds the context window of this model. Please adjust your input.",
        "Context overflow: please start a fresh session.",
        "The prompt is too long.",
        "The request was too large for the model.",
        "Cannot read properties of undefined (reading 'input_tokens')",
        "Cannot read property 'usage' of null",
        "'NoneType' object is not subscriptable",
        "'Completion' object has no attribute 'usage'",
        "Unexpected token '<', \"<html>\" is not valid JSON",
        "Unexpected end of JSON input",
        "Expecting value: line 1 column 1 (char 0)",
    ],
)
def test_words_that_name_a_cause_are_an_error_wherever_its_user_reads(words: str):
    """In the answer or at the spec's error path; with exit code 0 a script cannot see them."""
    in_answer, in_error = _down(words), _down(APOLOGY, error=words)
    assert (in_answer.kind, in_error.kind) == ("surfaced", "surfaced")
    assert in_answer.remark == "a script cannot see this error: the exit code is 0"


def test_of_a_service_its_response_is_quoted_and_not_its_log():
    """The log begins with what went well."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1))
    tell.end("", error="the model is overloaded", stderr="INFO: GET /health 200", status=502, exit_code=None)
    history = tell.seal()
    assert outcome_of(history.turns[0], history).how == "HTTP 502: the model is overloaded"


@pytest.mark.parametrize(("tools", "kind"), [((), "stopped at its limit"), ((True,), "hidden")])
def test_words_after_a_reply_that_announces_a_call_and_has_none_hide_no_answer(tools: tuple[bool, ...], kind: str):
    """The model said nothing, as in an empty reply; after a real call of the first step, words hide what it asked."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), "", stop="tool", tools=tools)
    assert _came_to(tell.end("I could not produce a final answer.").seal()).kind == kind


@pytest.mark.parametrize(
    ("said", "shown", "kind"),
    [
        ("", "I could not produce a final answer.", "stopped at its limit"),
        ("", "", "hidden"),
        ("It is a lighthouse, and", "I could not produce a final answer.", "hidden"),
    ],
    ids=["only thoughts", "and no word of the agent", "half an answer"],
)
def test_words_after_replies_whose_tokens_went_into_thoughts_hide_no_answer(said: str, shown: str, kind: str):
    """The model said nothing, also when it was asked again."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(2):
        tell.reply(tell.ask(1), said, stop="max_tokens")
    assert _came_to(tell.end(shown).seal()).kind == kind


def test_of_long_words_in_the_place_of_an_answer_the_end_is_quoted():
    """A log of the agent's start stands before its last words."""
    shown = "\n".join(f"Created notes/{n}.md" for n in range(20)) + f"\n{APOLOGY}"
    quoted = _down(shown).how.removesuffix(f" {IF_ITS_ERROR}")
    assert quoted.endswith(f'Created notes/19.md {APOLOGY}"') and ' said only "…' in quoted


@pytest.mark.parametrize(
    "words",
    [
        APOLOGY,
        "Something went wrong.",
        "Please try again later.",
        "An error occurred.",
        "The tool call failed: it is broken.",
        "I have closed it.",
    ],
)
def test_an_apology_names_no_cause(words: str):
    """An apology names no cause."""
    assert _down(words).kind == "hidden"


def test_what_it_also_says_when_all_is_well_is_no_error():
    """Numbers are masked; another error line still counts."""
    told = "\x1b[33mupdate check 17 failed: connection refused\x1b[0m"
    usual = tuple(causes(f"Welcome.\n{told.replace('17', '3')}"))
    assert usual == ("update check # failed: connection refused",)
    assert (_down(error=told).kind, _down(error=told, usual=usual).kind) == ("surfaced", "hidden")
    assert _down(told, error=f"{told}\nError: 503", usual=usual).kind == "surfaced"


def test_the_status_of_its_refusal_is_a_cause_and_any_other_number_is_none():
    """`I gave up (503).`"""
    assert (_down("It is broken, says the server (503).").kind, _down("There are 504 reasons.").kind) == (
        "surfaced",
        "hidden",
    )


def test_a_specs_own_patterns_count_too():
    """`errors: ["gave up"]`"""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 503)
    told = tell.end("I gave up.").seal().events
    plainly = History(events=told).seal()
    assert _came_to(plainly).kind == "hidden"
    run = RunStarted(
        scenario="", agent="", network="", time_scale=1, started=plainly.run.started, error_patterns=("gave up",), id=0
    )
    assert _came_to(History(events=[run, *told[1:]]).seal()).kind == "surfaced"


@pytest.mark.parametrize(("asks_again", "kind"), [(False, "hidden"), (True, "stopped at its limit")])
def test_words_of_its_own_after_the_end_of_its_worker_are_no_answer(asks_again: bool, kind: str):
    """Unless another worker went on: then it may have stopped at a limit."""
    tell = HistoryBuilder()
    tell.message()
    _rounds(tell, 2)
    tell.add(AgentKilled(turn=1, signal="SIGKILL", whom="worker", pids=(4711,)))
    if asks_again:
        _rounds(tell, 2)
    outcome = _came_to(tell.end("Done.").seal())
    assert outcome.kind == kind
    assert asks_again or outcome.how == f'after the end of its worker it said only "Done." {IF_ITS_ERROR}'


def test_other_words_in_the_place_of_an_answer_that_came_are_none():
    """No call failed, and the model's answer was there."""
    outcome = _fine(APOLOGY)
    assert (outcome.kind, outcome.how) == (
        "hidden",
        f'no call failed, and in the place of an answer it said only "{APOLOGY}" {IF_ITS_ERROR}',
    )


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ({"stop": "refusal", "text": "I can't."}, "It refused."),
        ({"text": ""}, "It said nothing."),
        ({"text": "The answer is forty-two."}, "> The answer is forty-two"),
    ],
)
def test_what_the_model_said_or_did_not_say_may_be_shown(reply: dict[str, Any], answer: str):
    """A refusal, an empty reply, words without the nonce: no answer came that the agent could have lost."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), **reply)
    assert _came_to(tell.end(answer).seal()).kind == "stopped at its limit"


def _rounds(tell: HistoryBuilder, count: int) -> list[Any]:
    """So many tool rounds whose results were sent."""
    results: list[Any] = []
    for step in range(1, count + 1):
        (token,) = tell.reply(tell.ask(step, results=results), tools=[True])
        results.append(tell.runs(token, for_s=0.01))
    return results


@pytest.mark.parametrize(("begins", "kind"), [(False, "hidden"), (True, "stopped at its limit")])
def test_words_beside_a_call_that_never_ran_are_no_answer(begins: bool, kind: str):
    """The agent took the model's last words for the end, and left its first call."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), "I have asked the shell for it.", tools=[True], traced=True)
    if begins:
        tell.starts(token)
    assert _came_to(tell.end("I have asked the shell for it.").seal()).kind == kind


def test_a_limit_needs_a_round():
    """An agent that ends its turn because its first tool failed has stopped at no limit."""
    for rounds, kind in ((1, "hidden"), (2, "stopped at its limit")):
        tell = HistoryBuilder()
        tell.message()
        _rounds(tell, rounds)
        assert _came_to(tell.end(APOLOGY).seal()).kind == kind


@pytest.mark.parametrize(
    "answer",
    [
        "Task completed with bash. No further action needed.",
        "✓ All tasks are done!",
        '{"status": "success", "output": ""}',
        "The job has finished successfully.",
    ],
)
def test_words_that_claim_success_at_a_limit_are_no_end_that_its_user_can_believe(answer: str):
    """The model asked for one more tool, and the agent says that all is done."""
    tell = HistoryBuilder()
    tell.message()
    _rounds(tell, 3)
    outcome = _came_to(tell.end(answer).seal())
    assert outcome.kind == "hidden" and outcome.how.startswith("the model asked for one more tool, and in the place")


@pytest.mark.parametrize(
    "answer",
    [
        "I completed the tool steps but couldn't produce a final answer.",
        "Reached the maximum of 10 steps. Two of three tasks are done.",
        "Finished early: the same call was made four times.",
        "I called bash four times in a row, and the work may not be completed.",
        "Done for now: the budget is used up.",
        "Ich habe alles erledigt.",
        "It is empty.",
    ],
)
def test_words_at_a_limit_that_tell_of_it_or_claim_nothing_are_believed(answer: str):
    """Or are in another language."""
    tell = HistoryBuilder()
    tell.message()
    _rounds(tell, 3)
    assert _came_to(tell.end(answer).seal()).kind == "stopped at its limit"


def test_a_success_that_the_model_itself_has_claimed_is_its_own():
    """Beside its last call; or the agent prints what the control run printed, such as the log of its tools."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.reply(tell.ask(2, results=[tell.runs(token)]), tools=[True], text="All the work is done, I only look.")
    assert _came_to(tell.end("All the work is done").seal()).kind == "stopped at its limit"


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ({"damaged": True}, "a damaged reply"),
        ({"tools": [False]}, "a damaged reply"),
        ({"stop": "max_tokens"}, "a reply that was cut by max_tokens"),
        ({"stop": "error"}, "a failed call"),
    ],
)
def test_a_call_whose_content_a_fault_damaged_has_gone_wrong(damage: dict[str, Any], what: str):
    """Though its reply ended well on the wire; words of the model in it count as its words."""
    tell = HistoryBuilder()
    tell.message()
    results = _rounds(tell, 2)
    tell.reply(tell.ask(3, results=results), **{"tools": [True], **damage})
    outcome = _came_to(tell.end(APOLOGY).seal())
    assert (outcome.kind, outcome.how) == ("hidden", f'after {what} it said only "{APOLOGY}" {IF_ITS_ERROR}')


def test_no_words_at_all_are_hidden_even_when_no_call_failed():
    """A loop that ends on a tool call shows its user nothing."""
    assert _fine("").kind == "hidden"
    assert _fine("  \n").kind == "hidden"


def _cut_and_shown(shown: str, *, delivered: str = CUT_TEXT, **end: Any) -> TurnOutcome:
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), delivered)
    return _came_to(tell.end(shown, **end).seal())


@pytest.mark.parametrize(
    ("delivered", "shown", "kind"),
    [
        (CUT_TEXT, CUT_TEXT, "truncated"),
        (CUT_TEXT, "the LIGHTHOUSE keeper", "truncated"),
        (CUT_TEXT, "keepercounte", "truncated"),
        (CUT_TEXT, "keepercount", "hidden"),
        (CUT_TEXT, APOLOGY, "hidden"),
        ("Ok saffro", "Ok: saffro", "truncated"),
        ("Ok saffr", "It found no saffr", "hidden"),
        ("Ok saffr", "Ok: saffr", "truncated"),
    ],
)
def test_twelve_characters_of_a_cut_text_or_six_of_its_nonce_shown_as_the_answer_are_truncated(
    delivered: str, shown: str, kind: str
):
    """A shorter match may be a coincidence, unless the answer is all that came."""
    assert _cut_and_shown(shown, delivered=delivered).kind == kind


def test_what_is_quoted_of_a_truncated_answer_begins_with_the_cut_text():
    """A log of the agent's start may stand before it."""
    shown = "Created SOUL.md\nCreated memory/history.jsonl\n\n" + CUT_TEXT
    assert _cut_and_shown(shown).how == f"the answer is part of a cut reply: {CUT_TEXT}"


def test_a_truncated_stream_on_which_the_client_raises_has_surfaced():
    """A well-known mock calls this a failure: the text is incomplete, and so it says, with an exit code."""
    outcome = _cut_and_shown(CUT_TEXT, exit_code=1, stderr="httpx.RemoteProtocolError: peer closed connection")
    assert outcome.kind == "surfaced"


def test_a_client_that_swallows_a_permanent_503_has_hidden_it():
    """The same mock calls this a success: exit code 0 and words."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(3):
        tell.refuse(tell.ask(1), 503)
        tell.wait(1)
    history = tell.end(APOLOGY).seal()
    assert _came_to(history).kind == "hidden"
    assert check("error_surfaced", history).status == "fail"


def test_a_runaway_of_forty_calls_whose_history_grows_is_red_under_a_specs_limits():
    """All requests differ, so a bound on repeats of one body does not see them."""
    tell = HistoryBuilder()
    tell.message()
    results = []
    for step in range(1, 41):
        (token,) = tell.reply(tell.ask(step, results=results), tools=[True])
        results.append(tell.runs(token, for_s=0.01))
    history = tell.end("I stopped.").seal()
    assert check("paid_call_bound", history, calls_per_turn=10).status == "fail"
    assert check("tool_round_bound", history, tool_rounds=10).status == "fail"
    assert _came_to(history).kind == "stopped at its limit"


def test_a_failure_on_the_way_does_not_turn_a_stop_at_a_limit_into_an_apology():
    """The last reply is whole and asks for one more tool."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 429)
    _rounds(tell, 2)
    assert _came_to(tell.end("I stopped after one round.").seal()).kind == "stopped at its limit"


def test_after_a_failure_and_a_whole_final_text_other_words_are_hidden():
    """The model answered, but the user does not see the answer."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 429)
    tell.answer_step(1)
    assert _came_to(tell.end(APOLOGY).seal()).kind == "hidden"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"stop": "refusal"}, "stopped at its limit"),
        ({"stop": "refusal", "text": "No."}, "hidden"),
        ({"stop": "max_tokens"}, "truncated"),
        ({"stop": "refusal", "damaged": True}, "hidden"),
        ({"stop": "refusal", "damaged": True, "says_all": True}, "stopped at its limit"),
    ],
)
def test_after_a_failure_a_whole_reply_that_is_shown_as_it_came_is_the_models_answer(reply: dict[str, Any], kind: str):
    """The second try was answered: the model refused, and the user reads its words. Damaged words are no answer."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 429)
    tell.reply(tell.ask(1), **{"text": "I'm sorry, but I can't help.", **reply})
    assert _came_to(tell.end("> I'm sorry, but I can't help. No more.\n").seal()).kind == kind


def test_a_short_reply_after_a_failure_is_the_models_answer_if_nothing_else_is_shown():
    """Three letters may stand in any apology."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 429)
    tell.reply(tell.ask(1), stop="refusal", text="No.")
    assert _came_to(tell.end("no\n").seal()).kind == "stopped at its limit"


def test_an_apology_after_a_refused_connection_is_hidden_though_no_request_ever_came():
    """A call that did not reach the provider failed too."""
    tell = HistoryBuilder()
    tell.message()
    tell.connection_refused()
    assert _came_to(tell.end(APOLOGY).seal()).kind == "hidden"


def test_a_refused_connection_that_a_later_call_made_good_is_no_failure():
    """The agent continued and stopped at its limit."""
    tell = HistoryBuilder()
    tell.message()
    tell.connection_refused()
    _rounds(tell, 2)
    assert _came_to(tell.end("I stopped after one round.").seal()).kind == "stopped at its limit"


@pytest.mark.parametrize(
    ("failures", "made_good", "kind"), [(0, True, "owes"), (2, True, "owes"), (2, False, "hidden")]
)
def test_a_wake_up_owes_no_answer_but_an_error_if_it_came_to_nothing(failures: int, made_good: bool, kind: str):
    """A successful retry makes up for the failure."""
    tell = HistoryBuilder()
    tell.message("wake_up")
    for _ in range(failures):
        tell.stall(tell.ask(1))
    if made_good:
        tell.reply(tell.ask(1), "Nothing to do.")
    expected = "stopped by its user" if kind == "owes" else kind
    assert _came_to(tell.end("").seal()).kind == expected


PYTHON_WARNS = "/x/agent.py:3: DeprecationWarning: 'cgi' is deprecated\n  import cgi\n"
NODE_WARNS = (
    "(node:7) [DEP0040] DeprecationWarning: punycode is deprecated.\n(Use `node --trace-deprecation ...` to see)\n"
)


@pytest.mark.parametrize(
    ("stderr", "how"),
    [
        (f"{PYTHON_WARNS}fatal: no route", "fatal: no route"),
        (f"{NODE_WARNS}fatal: no route", "fatal: no route"),
        (f"{'loading plugins ' * 9}\nError: overloaded\nbye", "Error: overloaded"),
        (PYTHON_WARNS, "/x/agent.py:3: DeprecationWarning: 'cgi' is deprecated import cgi"),
    ],
)
def test_the_error_that_is_quoted_is_the_one_that_tells(stderr: str, how: str):
    """Not a warning, and not the first of many lines."""
    assert _down(stderr=stderr, exit_code=3).how == f"exit code 3: {how}"


def test_words_that_no_pattern_knows_say_how_to_make_them_known():
    """An agent may say it in words of its own, or in another language."""
    for words in ("I could not reach the language model: its server is not responding.", "Der Server antwortet nicht."):
        outcome = _down(words)
        assert (outcome.kind, outcome.how) == ("hidden", f'after a failed call it said only "{words}" {IF_ITS_ERROR}')


@pytest.mark.parametrize(
    ("first", "then", "shown", "said"),
    [
        (["bash"], [], "A short note", True),
        ([], [], "A short note", False),
        (["bash"], ["title"], "A short note", False),
        (["bash"], [], "No idea", False),
    ],
    ids=["no tools any more", "never any", "other tools", "other words"],
)
def test_a_turn_whose_request_offers_no_tools_any_more_says_so(
    first: list[str], then: list[str], shown: str, said: bool
):
    """Such a request looks like a call beside the conversation, and gets no answer of it."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1, tools=first), f"Done {tell.nonce}")
    tell.end()
    tell.message()
    tell.reply(tell.ask(1, background="other", tools=then), "A short note")
    outcome = _came_to(tell.end(shown).seal())
    assert outcome.kind == "stopped at its limit"
    assert ("its request 2 offers no tools any more" in outcome.how) is said


@pytest.mark.parametrize(
    ("shown", "asks", "kind"),
    [
        ("It is built. {first}", False, "hidden"),
        ("It is built. {first}\nI am busy, please ask me later", False, "stopped at its limit"),
        ("It is built. {first}\nA bird. {second}", True, "answered"),
        ("Please wait", False, "stopped at its limit"),
    ],
)
def test_an_answer_to_the_message_before_is_none_to_this_one(shown: str, asks: bool, kind: str):
    """A chat does not say which message it belongs to; other words may be an answer."""
    tell = HistoryBuilder()
    first = tell.message()
    one = tell.nonce
    tell.reply(tell.ask(1), f"It is built. {one}")
    second = tell.message()
    two = tell.nonce
    if asks:
        tell.reply(tell.ask(1), f"A bird. {two}")
    tell.goes_on(first).end(f"It is built. {one}", appends=True)
    tell.goes_on(second).end(shown.format(first=one, second=two), appends=True)
    outcome = outcome_of((history := tell.seal()).turns[-1], history)
    assert outcome.kind == kind
    assert ("only the answer of turn 1" in outcome.how) is (kind == "hidden")


def test_colours_are_not_repeated():
    """Reports are read outside of the agent's terminal."""
    assert _down(error="\x1b[31mno\x1b[0m route", exit_code=3).how == "exit code 3: no route"


def test_what_counts_of_a_text_are_letters_and_digits():
    """In lower case."""
    assert plain("**Saf-fron_01**\n otter!") == "saffron01otter"


def test_an_answer_that_is_shown_as_json_has_its_words():
    """Escapes of letters, of line ends and of quotes, also in JSON inside of JSON, and a Python value's own form."""
    words = 'Grüße "an" 日本\nC:\\new\tUnd'
    shown = [json.dumps({"a": words}), json.dumps(json.dumps({"a": words})), json.dumps([words], ensure_ascii=False)]
    for text in (*shown, repr({"a": words}), words):
        assert plain(words) in plain(text), text


def test_seen_is_what_its_user_can_act_on():
    """Silence, hidden failures and half an answer are not."""
    assert TurnOutcome("answered").seen and TurnOutcome("surfaced").seen
    assert not (TurnOutcome("silent").seen or TurnOutcome("hidden").seen or TurnOutcome("truncated").seen)


def test_a_slow_network_keeps_no_request_away():
    """A silent wake-up under added latency is no failure."""
    tell = HistoryBuilder()
    tell.message("wake_up")
    tell.reply(tell.ask(1), "Nothing to do.")
    slowed = {"name": "latency", "link": "llm", "slows": True}
    tell.add(FaultFired(fault=0, turn=1, step=1, attempt=1, call=None, proof="built", **slowed))
    assert _came_to(tell.end("").seal()).kind == "stopped by its user"


def test_an_apology_after_a_continuation_that_never_reached_the_provider_is_hidden():
    """The last known call succeeded; the next one failed."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.connection_refused()
    assert _came_to(tell.end(APOLOGY).seal()).kind == "hidden"


TRACE = """INFO: retrying in 0.8 s
Traceback (most recent call last):
  File "/home/me/venv/lib/python3.11/site-packages/httpx/_transports/default.py", line 101, in map_httpcore_exceptions
    yield
httpcore.ReadTimeout

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/home/me/agent.py", line 12, in <module>
    print(client.ask(message))
openai.APITimeoutError: Request timed out.
while asking for the third time
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (TRACE, "openai.APITimeoutError: Request timed out. while asking for the third time"),
        ("it broke\nbadly", "it broke badly"),
        ("Traceback (most recent call last):\n  torn off", "Traceback (most recent call last): torn off"),
    ],
)
def test_of_a_trace_the_exception_is_told(said: str, told: str):
    """It is the last line; without a complete traceback the whole text is used."""
    outcome = _down(answer="Sorry", stderr=said, exit_code=1)
    assert (outcome.kind, outcome.how) == ("surfaced", f"exit code 1: {told}")


def test_each_turn_of_a_history_has_an_outcome_of_its_own():
    """Outcomes of a sealed history are computed once, each for its own turn."""
    tell = HistoryBuilder()
    tell.message()
    tell.fails()
    tell.message()
    tell.answer_step(1)
    history = tell.end().seal()
    for _ in range(2):
        assert [outcome_of(turn, history).kind for turn in history.turns] == ["surfaced", "answered"]


@pytest.mark.parametrize(("fails", "kind"), [(True, "hidden"), (False, "stopped at its limit")])
def test_an_apology_after_a_failed_plan_hides_it(fails: bool, kind: str):
    """The turn came to no request of the conversation; without a failure such words are an agent's own answer."""
    tell = HistoryBuilder()
    tell.message()
    plan = tell.ask(1, background="structured")
    if fails:
        tell.refuse(plan, 500)
    else:
        tell.reply(plan, "A plan")
    assert _came_to(tell.end("I am having trouble thinking right now.").seal()).kind == kind


@pytest.mark.parametrize(("tool", "kind"), [("AskUserQuestion", "answered"), ("shell", "hidden")])
def test_a_question_that_the_model_asks_by_a_tool_is_an_answer_where_the_output_shows_it(tool: str, kind: str):
    """A program may write it as a line of its own, and not as its answer. Words of another call are no answer."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True], name=tool)
    history = tell.end("", stdout=f'{{"type": "call", "question": "Which one? {tell.nonce}"}}').seal()
    assert _came_to(history).kind == kind


@pytest.mark.parametrize(("lost", "kind"), [(False, "stopped at its limit"), (True, "hidden")])
def test_words_on_a_page_that_lost_its_connection_are_no_limit(lost: bool, kind: str):
    """The model's reply was whole, and what the page shows may be its beginning and a status line."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=(True,))
    call = tell.ask(2)
    if lost:
        tell.fires("down", call, "channel")
    tell.reply(call, tools=(True,))
    assert _came_to(tell.end("It has been falling. Build, m").seal()).kind == kind
