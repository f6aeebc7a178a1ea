"""What the user reads after the provider has refused a request for a reason that the user can act on."""

from typing import Any

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder

LIMIT = "This request would exceed your organization's rate limit."
KEY = "invalid x-api-key"
CREDIT = "Your credit balance is too low to access the API. Please go to Plans & Billing."
LONG = "prompt is too long: 210000 tokens > 200000 maximum"
MODEL = "model: claude-9"


def _judged(refused: int, message: str, words: str, **ends: Any) -> Verdict:
    """The only request of a turn is refused, and the turn ends with these words."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), refused, message=message)
    tell.end("", error=words, **{"exit_code": 1, **ends})
    return check("cause_told", tell.seal())


@pytest.mark.parametrize(
    ("status", "message", "words"),
    [
        (429, LIMIT, "Error: Failed to select agent"),
        (401, KEY, "Object reference not set to an instance. NullReferenceException: chat"),
        (401, KEY, "KeyError: 'choices'"),
        (400, CREDIT, "Agent run failed: error"),
        (400, LONG, "Something went wrong. Please try again."),
        (404, MODEL, "Error: the run ended unexpectedly"),
        (529, "Overloaded", "sorry, I could not do that"),
    ],
)
def test_an_error_that_names_nothing_of_the_refusal_is_red(status: int, message: str, words: str):
    """Neither status nor message, nor a word of what they mean."""
    verdict = _judged(status, message, words)
    assert verdict.status == "fail"
    assert verdict.says.startswith(f"turn 1: the provider said {status} ({message[:20]}")


@pytest.mark.parametrize(
    ("status", "message", "words"),
    [
        (429, LIMIT, "Error: the request failed (429)"),
        (429, LIMIT, "gave up: this request would exceed it"),
        (429, LIMIT, "You are sending messages too fast. Please wait a moment."),
        (429, LIMIT, "The model is busy, try again in some minutes"),
        (401, KEY, "Please run /login"),
        (401, KEY, "openai.AuthenticationError: failed"),
        (403, "Forbidden", "Access denied: the request failed"),
        (402, "Payment Required", "The turn failed: your balance is used up"),
        (400, CREDIT, "Failed: no funds are left, please add some"),
        (400, LONG, "Failed: the conversation does not fit in the context of this model"),
        (404, MODEL, "The configured model does not exist"),
        (413, "Request too large", "Failed: the request is too big"),
        (529, "Overloaded", "The provider could not answer"),
    ],
)
def test_a_word_of_the_meaning_is_enough(status: int, message: str, words: str):
    """Agents have their own sentences."""
    assert _judged(status, message, words).status == "pass"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("Fehler: Das hat leider nicht geklappt", "turn 1: its error may be in another language than English"),
        ("エラーが発生しました", "turn 1: its error may be in another language than English"),
        ("Error: the turn timed out after 60 s", "turn 1: it ended by a time-out of its own"),
    ],
)
def test_what_cannot_be_judged_is_left_out_with_its_reason(words: str, why: str):
    """Another language, or the agent's own time-out between two tries."""
    verdict = _judged(429, LIMIT, words)
    assert (verdict.status, verdict.says) == ("nothing", why)


@pytest.mark.parametrize("status", [500, 502, 503, 400])
def test_a_failure_that_its_user_can_do_nothing_about_needs_no_cause(status: int):
    """A server error, or a request that the provider cannot read."""
    assert _judged(status, "oops", "Error: the run failed").status == "nothing"


def test_the_log_of_a_service_tells_its_user_nothing():
    """The user of an HTTP service reads its response."""
    of_a_service = {"exit_code": None, "status": 500, "stderr": "upstream said 429, rate limit"}
    assert _judged(429, LIMIT, "Failed to select agent", **of_a_service).status == "fail"
    of_a_program = {"stderr": "upstream said 429, rate limit"}
    assert _judged(429, LIMIT, "Failed to select agent", **of_a_program).status == "pass"


FRAMES = """Traceback (most recent call last):
  File "agent.py", line 7, in turn
    reply = await ask(rate_limiter, url)
"""


@pytest.mark.parametrize(
    ("behind", "status"), [("KeyError: 'choices'", "fail"), ("RateLimitError: status 429", "pass")]
)
def test_the_code_in_a_stack_names_no_cause(behind: str, status: str):
    """The exception behind it may."""
    assert _judged(429, LIMIT, FRAMES + behind).status == status


def test_an_exception_with_the_cause_tells_it():
    """A callable raises it."""
    raised = "anthropic.RateLimitError: Error code: 429"
    assert _judged(429, LIMIT, "", exit_code=None, raised=raised).status == "pass"


def test_a_turn_that_went_on_after_the_refusal_is_not_judged():
    """Something else ended it."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 429, message=LIMIT)
    tell.cut(tell.ask(1), "Half of")
    assert check("cause_told", tell.fails("Error: the run failed").seal()).status == "nothing"


def test_the_cause_of_an_earlier_try_counts_too():
    """Two kinds of refusals in one turn: one of them is enough."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 429, message=LIMIT)
    tell.refuse(tell.ask(1), 401, message=KEY)
    assert check("cause_told", tell.fails("Failed: the rate limit is reached").seal()).status == "pass"


def _unreachable(how: str, words: str) -> Verdict:
    """The first message meets a closed port, a connection that breaks before the reply, or silence."""
    tell = HistoryBuilder()
    tell.message()
    if how == "refused":
        tell.connection_refused()
    elif how == "cut":
        tell.cut(tell.ask(1), "A hedgehog", delivered=0)
    else:
        tell.stall(tell.ask(1))
    return check("cause_told", tell.fails(words).seal())


@pytest.mark.parametrize("how", ["refused", "cut", "stall"])
@pytest.mark.parametrize(
    "words",
    ["Internal error", "Provider error", "Something went wrong. Please try again later.", "KeyError: 'choices'"],
)
def test_an_error_that_names_nothing_of_a_failed_connection_is_red(how: str, words: str):
    """The user looks for a mistake of theirs, and the model's server is down."""
    verdict = _unreachable(how, words)
    assert verdict.status == "fail" and words in verdict.says
    assert verdict.says.startswith("turn 1: the connection to the model failed (")


@pytest.mark.parametrize("how", ["refused", "cut", "stall"])
@pytest.mark.parametrize(
    "words",
    [
        "Error: the model cannot be reached",
        "Error: fetch failed",
        "httpx.ConnectError: all connection attempts failed",
        "openai.APIConnectionError: Connection error.",
        "aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected",
        'Post "http://127.0.0.1:4000/v1/messages": dial tcp 127.0.0.1:4000: connect: connection refused',
        "error sending request for url (http://127.0.0.1:4000/)",
        "TypeError: terminated",
        "read ECONNRESET",
        "unexpected EOF",
        "The model did not answer",
        "Failed: got no reply from the model",
        "The model is not responding. Please try again.",
        "error: no word from the provider for 3 s",
        "Error: nothing came for 30 s, giving up",
        "Error: received no data for 60 seconds",
        "Failed: the model was too slow",
        "Are you offline? The request failed",
    ],
)
def test_any_word_for_a_connection_or_for_silence_is_enough(how: str, words: str):
    """Libraries have their own sentences."""
    assert _unreachable(how, words).status == "pass"


def test_another_language_and_a_time_out_are_not_judged_after_a_failed_connection_either():
    """Nobody can be sure what such words name."""
    assert _unreachable("refused", "Fehler: Das hat leider nicht geklappt").status == "nothing"
    assert _unreachable("stall", "Error: the turn timed out after 60 s").status == "nothing"


@pytest.mark.parametrize("words", ["Error: the server answered 503", "Failed: the provider is overloaded"])
def test_a_server_error_before_a_failed_connection_may_be_told_in_its_place(words: str):
    """Both struck the turn."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 503, message="oops")
    tell.connection_refused()
    assert check("cause_told", tell.fails(words).seal()).status == "pass"


def test_a_connection_that_failed_in_mid_reply_is_not_judged():
    """Its user may have read a part of the answer; whether it looks whole is another question."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), "A hedgehog", delivered=3)
    assert check("cause_told", tell.fails("Internal error").seal()).status == "nothing"


@pytest.mark.parametrize("stopped", ["deadline", "abort"])
def test_a_turn_that_was_stopped_is_not_judged(stopped: str):
    """What it says then is about the stop."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 429, message=LIMIT)
    getattr(tell, stopped)()
    assert check("cause_told", tell.fails("Error: the run failed").seal()).status == "nothing"


@pytest.mark.parametrize(
    ("words", "status"),
    [("Error: HTTP 503 while the conversation was summarized", "pass"), ("Error: something went wrong", "fail")],
)
def test_the_cause_of_a_failed_summary_is_as_good(words: str, status: str):
    """The window is full, and the request for a summary of it failed: both are why the turn ended."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 400, message=LONG)
    tell.refuse(tell.ask(1, background="summary"), 503)
    tell.end("", error=words, exit_code=1)
    assert check("cause_told", tell.seal()).status == status


def test_the_error_is_quoted_without_the_warnings_before_it():
    """A program prints much on its stderr before it ends."""
    warning = "agent.py:113: DeprecationWarning: The model is deprecated.\n  final = ask()\n"
    words = warning + "Note that this goes on for a while. " * 8 + "\nError: the turn went wrong"
    assert _judged(429, LIMIT, words).says.endswith("does not name it: Error: the turn went wrong")
