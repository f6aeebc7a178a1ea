"""A denied call does not run: what the last request for it came to decides."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.turn import PermissionAsked
from wedgehog.harness.testing import HistoryBuilder


def _asks(tell: HistoryBuilder, chosen: str, *tokens: str) -> None:
    tell.add(PermissionAsked(turn=1, offered=("allow_once", "reject_once"), chosen=chosen, tokens=tokens))


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        (["reject_once"], "fail"),
        ([""], "fail"),
        (["allow_once"], "pass"),
        (["reject_once", "allow_once"], "pass"),
        (["allow_once", "reject_once"], "fail"),
        ([], "nothing"),
    ],
)
def test_the_last_answer_about_a_call_decides_whether_it_may_run(answers: list[str], status: str):
    """No answer is no permission."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    for chosen in answers:
        _asks(tell, chosen, token)
    tell.answer_step(2, [tell.runs(token)])
    assert check("no_denied_calls", tell.end().seal()).status == status


def test_a_denied_call_beside_an_allowed_one_is_known_by_its_name():
    """Only the call that the request names; a request that names none is not judged."""
    tell = HistoryBuilder()
    tell.message()
    first, second = tell.reply(tell.ask(1), tools=[True, True])
    _asks(tell, "reject_once", first)
    _asks(tell, "allow_once", second)
    _asks(tell, "reject_once")
    tell.answer_step(2, [tell.runs(second)])
    assert check("no_denied_calls", tell.end().seal()).status == "pass"


def test_a_command_that_began_before_its_user_was_asked_is_not_judged():
    """A sandbox may run it first, and ask for more only after it has failed there."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    carried = tell.runs(token)
    _asks(tell, "reject_once", token)
    tell.answer_step(2, [carried])
    assert check("no_denied_calls", tell.end().seal()).status == "pass"
