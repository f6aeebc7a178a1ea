"""A page that is opened again shows what was said, and its model knows what it shows."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import HungUp
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder


def _verdict(shows: str, *, fails: bool = False) -> Verdict:
    """A page that is opened again for the second message, and shows this of the first one."""
    tell = HistoryBuilder()
    tell.message()
    answer = f"All is well. {tell.nonce}"
    if fails:
        tell.cut(tell.ask(1))
        tell.fails()
    else:
        tell.reply(tell.ask(1), answer)
        tell.end(answer, appends=True)
    tell.message()
    tell.reply(tell.ask(1), f"Still. {tell.nonce}")
    return check("page_kept", tell.end(opened=shows.format(message="marker1 Hi", answer=answer)).seal())


@pytest.mark.parametrize(
    ("shows", "says"),
    [
        ("How can I help?", "does not show the message of turn 1"),
        ("{message}", "does not show the answer of turn 1"),
        ("{message}\n{answer:.0}saffron01otter", "shows the end of the answer of turn 1, and not its beginning"),
        ("{message}\n{answer}\n{answer}", "shows the answer of turn 1 2 times"),
    ],
)
def test_what_is_missing_or_stands_there_twice(shows: str, says: str):
    """A user who does not see it asks again."""
    found = _verdict(shows)
    assert (found.status, says in found.says) == ("fail", True), found


def test_message_and_answer_are_shown():
    """Of a turn that failed, the message is enough."""
    assert _verdict("{message}\n{answer}").status == "pass"
    assert _verdict("{message}", fails=True).status == "pass"
    assert _verdict("nothing", fails=True).status == "fail"


@pytest.mark.parametrize(
    ("hangs_up", "shows", "status"), [(False, "", "fail"), (False, "{answer}", "pass"), (True, "", "pass")]
)
def test_what_the_service_had_while_its_page_was_closed_is_shown(hangs_up: bool, shows: str, status: str):
    """A service may end a turn with its page; then the message is enough."""
    tell = HistoryBuilder()
    tell.message()
    answer = f"All is well. {tell.nonce}"
    call = tell.ask(1)
    tell.give_up()
    if hangs_up:
        tell.add(HungUp(call=call))
    else:
        tell.reply(call, answer)
    tell.end("", ended="gave up")
    tell.message()
    tell.reply(tell.ask(1), f"Still. {tell.nonce}")
    tell.end(opened=f"marker1 Hi\n{shows.format(answer=answer)}")
    assert check("page_kept", tell.seal()).status == status


@pytest.mark.parametrize(("loaded_again", "status"), [(True, "fail"), (False, "nothing")])
def test_a_user_who_comes_back_sees_the_answer_without_loading_the_page(loaded_again: bool, status: str):
    """At level `safe` it is enough that they see it then."""
    tell = HistoryBuilder()
    tell.message()
    answer = f"All is well. {tell.nonce}"
    tell.reply(tell.ask(1), answer)
    history = tell.end(answer, was_away=True, loaded_again=loaded_again).seal()
    assert check("page_kept", history).status == status
    assert check("error_surfaced", history).status == "pass"


@pytest.mark.parametrize(("was_away", "status"), [(True, "pass"), (False, "fail")])
def test_a_page_may_stop_what_its_user_leaves_if_it_says_so(was_away: bool, status: str):
    """Where its user did not leave, that is no reason."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1))
    history = tell.end("(Generation stopped)", was_away=was_away).seal()
    assert check("error_surfaced", history).status == status


def test_a_page_that_stayed_open_is_not_judged():
    """Nor is an agent without a page."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), f"Yes. {tell.nonce}")
    assert check("page_kept", tell.end().seal()).status == "nothing"


@pytest.mark.parametrize(("shows", "status"), [("All is well. {nonce}", "fail"), ("How can I help?", "nothing")])
def test_a_user_who_sees_that_all_begins_anew_is_not_deceived(shows: str, status: str):
    """The model must know what the page shows."""
    tell = HistoryBuilder(resumes=True)
    tell.message()
    opened = shows.format(nonce=tell.nonce)
    tell.reply(tell.ask(1), f"All is well. {tell.nonce}")
    tell.end()
    tell.message()
    tell.reply(tell.ask(1, sees=(2,), replies=()), f"Still. {tell.nonce}")
    assert check("session_remembers", tell.end(opened=opened).seal()).status == status


@pytest.mark.parametrize(
    ("again", "lost", "status"), [(True, True, "fail"), (False, True, "nothing"), (True, False, "nothing")]
)
def test_an_earlier_answer_does_not_come_again_with_the_connection(again: bool, lost: bool, status: str):
    """A service that sends all events again, to a page that appends them."""
    tell = HistoryBuilder()
    tell.message()
    first = f"All is well. {tell.nonce}"
    tell.reply(tell.ask(1), first)
    tell.end(first, appends=True)
    tell.message()
    call = tell.ask(1)
    if lost:
        tell.fires("down", call, "channel")
    second = f"Still. {tell.nonce}"
    tell.reply(call, second)
    found = check("page_kept", tell.end(f"{first}\n{second}" if again else second, appends=True).seal())
    assert found.status == status
    if status == "fail":
        assert found.says == "turn 2: the page lost its connection, and then showed the answer of turn 1 once more"
