"""A chat shows that its agent types only while the agent works."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.service import ChatSeen
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder


def typed(*, types: bool = True, after: str = "") -> Verdict:
    """A turn is answered, and its chat is looked at a minute later; `after` is what goes on behind the answer."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.end().wait(5)
    if after.startswith("command"):
        tell.starts("1.9.1", background=True)
    elif after == "open request":
        tell.ask(background="title")
    tell.wait(30)
    if after == "command that ends":
        tell.done("1.9.1")
    elif after == "title":
        tell.reply(tell.ask(background="title"), "Owls")
    return check("typing_ends", tell.wait(31).add(ChatSeen(session="main", types=types)).seal())


def test_a_chat_that_shows_for_a_minute_that_more_comes_is_red():
    """Nothing is under way."""
    says = "the chat shows that the agent types, 60 s after its last message, and nothing is under way"
    assert (typed().status, typed().says) == ("fail", says)


def test_one_in_which_the_sign_ends_passes():
    """It may have come once more."""
    assert typed(types=False).status == "pass"


def test_without_a_chat_there_is_nothing_to_judge():
    """There is no such sign."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    assert check("typing_ends", tell.end().seal()).status == "nothing"


@pytest.mark.parametrize(
    ("after", "what"),
    [
        ("command", "a command"),
        ("command that ends", "a command"),
        ("title", "a request"),
        ("open request", "a request"),
    ],
)
def test_an_agent_that_works_may_type(after: str, what: str):
    """Also for what it does beside the conversation."""
    verdict = typed(after=after)
    assert verdict.status == "nothing"
    assert verdict.says == f"the agent types behind its last message, and {what} is under way"


@pytest.mark.parametrize(("background", "status"), [(True, "nothing"), (False, "fail")])
def test_of_an_earlier_turn_only_a_command_in_the_background_may_run_on(background: bool, status: str):
    """The other one ended with its turn, though nothing says so."""
    tell = HistoryBuilder()
    tell.message()
    tell.starts("1.9.1", background=background)
    tell.kill()
    tell.message()
    tell.answer_step(1)
    tell.end().wait(61).add(ChatSeen(session="main", types=True))
    assert check("typing_ends", tell.seal()).status == status


def test_a_command_that_ended_a_minute_ago_is_no_reason():
    """It is over."""
    tell = HistoryBuilder()
    tell.message()
    tell.starts("1.9.1")
    tell.done("1.9.1")
    tell.answer_step(1)
    tell.end().wait(61).add(ChatSeen(session="main", types=True))
    assert check("typing_ends", tell.seal()).status == "fail"


def test_each_session_has_its_own_chat_and_its_own_last_turn():
    """What another user's last command does is no reason to type in this one's chat."""
    tell = HistoryBuilder()
    for session in ("main", "b"):
        tell.message(session=session)
        if session == "b":
            tell.starts("2.9.1")
        tell.answer_step(1)
        tell.end()
    tell.wait(61).add(ChatSeen(session="main", types=True))
    assert check("typing_ends", tell.seal()).status == "fail"


def test_a_request_of_a_killed_process_is_no_reason():
    """It has no end, and nothing waits for it."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    tell.kill()
    tell.message()
    tell.answer_step(1)
    tell.end().wait(61).add(ChatSeen(session="main", types=True))
    assert check("typing_ends", tell.seal()).status == "fail"
