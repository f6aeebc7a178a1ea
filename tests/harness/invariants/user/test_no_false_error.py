"""Where nothing failed an error is false, and after a stop one of the program itself."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def judged(beside: str, *, says: str = "It is open.", error: str = "", appends: bool = True) -> str:
    """The status where a turn is answered, and its user reads one more line."""
    tell = HistoryBuilder(error_at_path=bool(error))
    tell.message()
    tell.reply(tell.ask(1), f"{says} {tell.nonce}")
    answer = f"{says} {tell.nonce}\n{beside}"
    return check("no_false_error", tell.end(answer, error=error, appends=appends).seal()).status


@pytest.mark.parametrize(
    "line",
    [
        "(No response)",
        "Something went wrong.",
        "I have completed the work, but have no response to give.",
        "Error: the reply could not be serialized",
        "An unexpected error occurred",
        "TypeError: Cannot read properties of undefined (reading 'map')",
    ],
)
def test_an_error_beside_a_whole_answer_is_false(line: str):
    assert judged(line) == "fail" and judged("", error=line) == "fail"


@pytest.mark.parametrize("line", ["", "Errors: 0", "error: none", '{"error": null}', "3 tools, 12 s, no errors", "👍"])
def test_a_footer_is_no_error(line: str):
    assert judged(line) == "pass"


def test_what_the_model_says_is_no_error_of_the_agent():
    assert judged("There is no response.", says="There is no response.") == "pass"


def test_what_a_program_prints_may_be_its_log():
    """Only what its spec names is an error."""
    assert judged("Error: retrying", appends=False) == "pass"


def test_an_error_that_has_a_cause_is_not_judged():
    """A request was refused, and the next one was answered."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 529)
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    tell.end(f"Error: overloaded\nDone {tell.nonce}", appends=True)
    tell.message()
    tell.answer_step(1)
    tell.end(f"Error: overloaded\nDone {tell.nonce}", appends=True)
    assert check("no_false_error", tell.seal()).status == "nothing"


@pytest.mark.parametrize(("is_error", "signs"), [(True, ()), (False, ("failed",))])
def test_a_tool_that_failed_may_be_told_of(is_error: bool, signs: tuple[str, ...]):
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    told = result(token, chars=20, is_error=is_error, signs=signs)
    tell.reply(tell.ask(2, results=[told]), f"Done {tell.nonce}")
    tell.end(f"Error: bash failed\nDone {tell.nonce}", appends=True)
    assert check("no_false_error", tell.seal()).status == "nothing"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("Error: the operation was aborted", "pass"),
        ("Interrupted by user", "pass"),
        ("TypeError: undefined is not a function", "fail"),
        ("Cannot read properties of undefined (reading 'abort')", "fail"),
    ],
)
def test_after_a_stop_only_a_mistake_of_the_program_is_false(words: str, status: str):
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.abort()
    tell.reply(call, how="hung up", delivered=0)
    tell.end("", ended="aborted", error=words)
    assert check("no_false_error", tell.seal()).status == status


@pytest.mark.parametrize(("empty_last", "status"), [(True, "fail"), (False, "nothing")])
def test_a_last_reply_without_words_is_no_failure_where_the_answer_was_sent(empty_last: bool, status: str):
    """A tool had sent it. A reply without words that was asked for again is another matter."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="message")
    told = [result(token, chars=4, signs=())]
    call = tell.ask(2, results=told)
    tell.fires("empty_reply", call)
    tell.reply(call, "")
    if not empty_last:
        tell.reply(tell.ask(2, results=told), f"Done {tell.nonce}")
    tell.end(f"Done {tell.nonce}\n(No response)", appends=True)
    assert check("no_false_error", tell.seal()).status == status
