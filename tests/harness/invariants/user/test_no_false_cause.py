"""What the user reads instead of the reason for which the provider refused, or the connection failed."""

from typing import Any

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder

LIMIT = "This request would exceed your organization's rate limit."
KEY = "invalid x-api-key"
LONG = "prompt is too long: 210000 tokens > 200000 maximum"


def _judged(refused: int, message: str, words: str, **ends: Any) -> Verdict:
    """The only request of a turn is refused, and the turn ends with these words."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), refused, message=message)
    tell.end("", error=words, **{"exit_code": 1, **ends})
    return check("no_false_cause", tell.seal())


OWN = "a mistake of the agent's own code"


@pytest.mark.parametrize(
    ("status", "message", "words", "named"),
    [
        (401, KEY, "Error: 'str' object has no attribute 'get'", OWN),
        (401, KEY, "Object reference not set to an instance of an object.", OWN),
        (429, LIMIT, "KeyError: 'choices'", OWN),
        (429, LIMIT, "Attempted to access streaming response content, without having called `read()`.", OWN),
        (500, "oops", "Cannot read properties of undefined (reading 'message')", OWN),
        (503, "oops", "panic: runtime error: invalid memory address or nil pointer dereference", OWN),
        (429, LIMIT, "Context overflow: prompt too large for the model.", "a conversation that is too long"),
        (
            529,
            "Overloaded",
            "Error: your conversation is too long. Start a new one.",
            "a conversation that is too long",
        ),
        (401, KEY, "Error: too many requests", "a rate limit"),
        (429, LIMIT, "Error: Unauthorized", "a key that was refused"),
        (401, KEY, "The agent returned an error result: success", "a success"),
    ],
)
def test_a_cause_that_did_not_strike_is_red(status: int, message: str, words: str, named: str):
    """The code that should tell the error has failed, or has taken one error for another one."""
    verdict = _judged(status, message, words)
    assert verdict.status == "fail"
    assert f"and the error names {named}: " in verdict.says


@pytest.mark.parametrize(
    ("status", "message", "words"),
    [
        (401, KEY, "Something went wrong. Please try again."),
        (401, KEY, "openai.AuthenticationError: 'str' object has no attribute 'get'"),
        (429, LIMIT, "TypeError: no reply (429)"),
        (429, LIMIT, "Rate limit reached: too many requests or the context window of the plan is used up"),
        (403, "Forbidden", "Error: too many requests from this country"),
        (402, "Payment Required", "Error: rate limit"),
        (503, "oops", "Error: rate limited"),
        (413, "Request too large", "Error: the prompt is too long"),
        (400, LONG, "Error: context overflow"),
        (500, "oops", "Error: the run failed"),
        (401, KEY, '{"success": false, "error": "the run failed"}'),
        (401, KEY, "Das hat leider nicht geklappt"),
    ],
)
def test_a_cause_that_struck_or_none_at_all_is_green(status: int, message: str, words: str):
    """Agents have their own sentences, and some hide all causes from the users of a bot."""
    assert _judged(status, message, words).status == "pass"


@pytest.mark.parametrize(("status", "judged"), [(200, "nothing"), (400, "fail")])
def test_a_page_in_the_place_of_a_reply_is_left_to_the_client(status: int, judged: str):
    """Under status 200 the usual clients read it as a reply, and fail in the code that reads one."""
    words = "AttributeError: 'str' object has no attribute 'choices'"
    assert _judged(status, "Just a moment...", words).status == judged


def test_words_of_a_service_in_its_log_are_not_read():
    """The user of an HTTP service reads its response."""
    of_a_service = {"exit_code": None, "status": 500, "stderr": "TypeError: x"}
    assert _judged(401, KEY, "The agent could not answer", **of_a_service).status == "pass"


def test_the_code_in_a_stack_names_nothing():
    """The exception behind it may."""
    frames = 'Traceback (most recent call last):\n  File "agent.py", line 7\n    raise KeyError: x\n'
    assert _judged(503, "oops", f"{frames}AgentError: no reply").status == "pass"
    assert _judged(503, "oops", f"{frames}KeyError: 'choices'").status == "fail"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("TypeError: fetch failed", "pass"),
        ("TypeError: terminated", "pass"),
        ("Internal error", "pass"),
        ("TypeError: 'NoneType' object is not subscriptable", "fail"),
        ("Error: too many requests", "fail"),
    ],
)
def test_a_connection_that_failed_is_no_rate_limit_and_no_mistake_of_a_program(words: str, status: str):
    """Node names each failed connection a TypeError, and its words tell which it is."""
    tell = HistoryBuilder()
    tell.message()
    tell.connection_refused()
    assert check("no_false_cause", tell.fails(words).seal()).status == status


def test_a_line_that_the_control_run_has_too_names_no_cause():
    """A status line tells how full the window is."""
    tell = HistoryBuilder(usual=("Context window: #% used",))
    tell.message()
    tell.refuse(tell.ask(1), 401, message=KEY)
    tell.end("", error="Context window: 3% used\nError: the run failed", exit_code=1)
    assert check("no_false_cause", tell.seal()).status == "pass"
