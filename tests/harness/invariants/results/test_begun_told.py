"""A command that had begun: its result does not say that it never ran."""

from dataclasses import replace

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.run.recording.result_signs import signs_in
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def judged(text: str, *, begins: bool = True, kill: bool = False) -> Verdict:
    """A turn is stopped, or its agent dies, and the next one carries what the agent says of the call."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    if begins:
        tell.starts(token)
    if kill:
        tell.kill()
    else:
        tell.abort()
        tell.end("", ended="aborted", exit_code=130)
    tell.message()
    told = replace(result(token, chars=len(text), printed=False, is_error=True), signs=signs_in(text))
    tell.reply(tell.ask(1, results=[told]), f"Done {tell.nonce}")
    return check("begun_told", tell.end().seal())


FALSE = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."
)


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize(
    "text", [FALSE, "Tool call was interrupted and not executed", "[The command was not run.]", "Rejected by user"]
)
def test_a_call_that_had_begun_and_is_said_not_to_have_run_is_red(text: str, kill: bool):
    """The model does it again, or tells its user that nothing was changed."""
    text = f"Error: it was not executed. {text}" if text.startswith("Tool call") else text
    verdict = judged(text, kill=kill)
    assert verdict.status == "fail"
    assert verdict.says == "tool call 1.1.1 (shell) had begun, and its result in request 2 says that it did not run"


@pytest.mark.parametrize(
    "text",
    [
        "[interrupted by the user]",
        "Tool execution aborted",
        "Error: the result of this call is lost; it may not have been executed.",
        "It is unknown whether the command was not run or had ended.",
        "The command did not run to its end.",
        "(no output)",
        "L'utilisateur a interrompu la commande.",
    ],
)
def test_a_result_that_tells_of_the_stop_or_leaves_it_open_is_green(text: str):
    """In words of its own."""
    assert judged(text).status == "pass"


def test_of_a_call_that_never_began_the_words_are_true():
    """It was still waiting when the turn was stopped."""
    assert judged(FALSE, begins=False).status == "nothing"
