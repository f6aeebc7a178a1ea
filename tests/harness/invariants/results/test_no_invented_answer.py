"""A question of the model is not answered in the place of a user who is not there."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.run.recording.result_signs import signs_in
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


@pytest.mark.parametrize(
    ("tool", "said", "status"),
    [
        (
            "AskUserQuestion",
            "User has answered your questions: . You can now continue.",
            "fail",
        ),
        ("ask_user", "The user selected: Option 1", "fail"),
        ("ask_user", "Error: no user is there to answer", "pass"),
        ("ask_user", "User declined to answer the questions.", "pass"),
        ("ask_user", "The user has not answered.", "pass"),
        ("question", "Non-interactive mode: the user's answer is taken to be the last option.", "pass"),
        ("ask_user", "The question was shown.", "pass"),
        ("shell", "The user selected: Option 1", "nothing"),
    ],
)
def test_a_result_that_says_that_the_user_has_answered_is_red(tool: str, said: str, status: str):
    """Whatever that answer is: no user was there."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name=tool)
    told = result(token, chars=len(said), printed=False, signs=signs_in(said))
    tell.reply(tell.ask(2, results=[told]), f"Done {tell.nonce}")
    assert check("no_invented_answer", tell.end().seal()).status == status


def test_an_answer_that_comes_with_the_next_message_is_the_users():
    """The question ended the turn."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="ask_user")
    tell.end()
    tell.message()
    told = result(token, chars=40, printed=False, signs=("answered",))
    tell.reply(tell.ask(1, results=[told]), f"Done {tell.nonce}")
    assert check("no_invented_answer", tell.end().seal()).status == "nothing"
