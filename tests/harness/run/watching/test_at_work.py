"""What an agent in a chat waits for, so that its turn is not over: its model, a command, a response of its chat."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from wedgehog.fake_llm.reply import Reply, Text
from wedgehog.harness.record.events.call import HungUp
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.turn import StimulusGiven
from wedgehog.harness.run.recording.placing import SentReply
from wedgehog.harness.run.watching.at_work import AtWork
from wedgehog.harness.testing import HistoryBuilder


@pytest.fixture
def run() -> Any:
    """A history that grows, the calls that are open, and what is asked about them."""
    tell = HistoryBuilder()
    injector: Any = SimpleNamespace(open_calls=set(), tools=SimpleNamespace(holds_chat=False))
    replies: dict[int, SentReply] = {}
    work = AtWork(tell._history, injector, lambda: None, replies.get)
    made = SimpleNamespace(tell=tell, injector=injector, work=work, replies=replies)

    def since_s(turn: int = 1, shown: str = "") -> float | None:
        (given,) = [it for it in tell._history.of(StimulusGiven) if it.turn == turn]
        return made.work.since_s(f"{given.marker} Hello", shown)

    made.since_s = since_s
    return made


def chat_is_harmed(run: Any) -> None:
    run.tell.add(FaultFired(fault=0, name="stall", link="chat", turn=1, step=1, attempt=1, call=None, proof="x"))


def test_an_open_request_counts_from_its_arrival_and_no_longer_than_it_is_open(run: Any):
    """Of several, the last one counts."""
    run.tell.message()
    assert run.since_s() is None
    first = run.tell.ask(1)
    run.injector.open_calls |= {first}
    at_s = run.tell._history.events[-1].at_s
    assert run.since_s() == at_s
    run.tell.wait(3)
    second = run.tell.ask(1)
    run.injector.open_calls |= {second}
    assert run.since_s() > at_s + 3
    run.injector.open_calls.clear()
    assert run.since_s() is None


def test_a_request_for_a_title_is_no_work_on_the_answer(run: Any):
    """Its user has the answer, and waits for nothing."""
    run.tell.message()
    run.injector.open_calls |= {run.tell.ask(1, background=True)}
    assert run.since_s() is None


def test_a_command_counts_while_it_runs_and_not_in_the_background(run: Any):
    """A service that it starts runs for ever."""
    run.tell.message()
    run.tell.starts("1.1.1")
    run.tell.starts("1.1.2", background=True)
    assert run.since_s() is not None
    run.tell.done("1.1.1")
    assert run.since_s() is None


def test_an_agent_that_its_chat_keeps_waiting_is_at_work_from_the_start(run: Any):
    """It is older than all that the agent has sent: it may have been given up."""
    run.tell.message()
    run.injector.tools.holds_chat = True
    assert run.since_s() == 0.0


def test_an_agent_whose_chat_was_harmed_before_it_asked_its_model_has_not_answered(run: Any):
    """It tries to send its note again; a fault on the answer itself is none that keeps it from asking."""
    run.tell.message()
    chat_is_harmed(run)
    assert run.since_s() == 0.0
    run.tell.ask(1)
    assert run.since_s() is None
    chat_is_harmed(run)
    assert run.since_s() is None
    run.tell.end()
    run.tell.message()
    assert run.since_s(2) is None


def test_what_the_agent_does_for_another_message_is_no_work_on_this_one(run: Any):
    """Two messages at once, each with its request and its command; one that was not asked for yet is known too."""
    run.tell.message()
    run.injector.open_calls |= {run.tell.ask(1, turn=2)}
    run.tell.starts("2.1.1")
    assert run.since_s(1) is None
    run.tell.end()
    run.tell.message()
    assert run.since_s(2) is not None
    markers = [it.marker for it in run.tell._history.of(StimulusGiven)]
    assert [run.work.has_asked(f"{it} Hello") for it in (*markers, "unknown")] == [False, True, False]


@pytest.fixture
def left_off(run: Any) -> Any:
    """Asks whether its only turn was left off, by what the agent shows now, or showed `ago_s` before."""
    run.tell.message()
    (given,) = run.tell._history.of(StimulusGiven)

    def left_off(shown: str, ago_s: float = 0) -> bool:
        now = run.tell._history.events[-1].at_s + 0.001
        return run.work.left_off_s(f"{given.marker} Hello", shown, now - ago_s) is not None

    return left_off


def test_an_agent_that_shows_a_reply_that_broke_off_has_more_to_do(run: Any, left_off: Any):
    """It tries again, or tells an error; what it shows late of that reply is no word of its own."""
    assert not left_off("")
    run.tell.cut(run.tell.ask(1), "A small animal that")
    assert left_off("A small animal th ▌") and left_off("One moment", ago_s=5)
    assert not left_off("A small animal that … Error: the connection was lost")
    run.tell.reply(run.tell.ask(1), "A small animal that sleeps.")
    assert not left_off("A small animal that")


def test_an_agent_that_shows_the_beginning_of_an_answer_has_more_to_show(run: Any):
    """A message that grows is changed at most twice in a second. What only ends as the answer does is its last part."""
    run.tell.message()
    words = f"{next(run.tell._history.of(StimulusGiven)).marker} Hello"

    def begun(shown: str) -> bool:
        return run.work.begun_s(words, shown) is not None

    call = run.tell.ask(1)
    assert not begun("All"), "the reply still comes"
    run.tell.reply(call, "All is **well**. Go on.")
    assert begun("All") and begun("All is well ▌")
    assert not begun("All is well. Go on.") and not begun("Go on.") and not begun("")


def test_an_agent_that_shows_the_words_before_a_tool_call_has_more_to_do(run: Any, left_off: Any):
    """Its next request may be refused, and what it shows then is still no answer."""
    run.tell.reply(run.tell.ask(1), "I look.", tools=[True])
    assert left_off("I look.") and not left_off("I stopped after 25 rounds.")
    run.tell.refuse(run.tell.ask(2), 503)
    assert left_off("I look.")
    run.tell.reply(run.tell.ask(2), "")
    assert left_off("I look."), "an empty reply is no answer"
    run.tell.reply(run.tell.ask(2), "It is there.")
    assert not left_off("I look.")


def test_a_reply_beside_the_conversation_leaves_nothing_off(run: Any, left_off: Any):
    """A title that could not be made."""
    run.tell.reply(run.tell.ask(1), "It is there.")
    run.tell.refuse(run.tell.ask(1, background=True), 503)
    assert not left_off("It is there.")


@pytest.mark.parametrize(
    ("shown", "waits"), [("A small", True), ("A small …", True), ("A small animal.", False), ("One moment", False)]
)
@pytest.mark.parametrize("calls", [False, True])
def test_a_part_of_a_reply_that_still_comes_is_no_answer_however_old_it_is(
    run: Any, shown: str, waits: bool, calls: bool
):
    """A network that is slow has the rest of it, or pings come; all words before a tool call are a part too."""
    run.tell.message()
    call = run.tell.ask(1)
    offers = [("1.1.1", "shell", True)] if calls else []
    run.replies[call] = SentReply(Reply((Text("A small animal."),)), offers)
    assert run.since_s(1, shown) == (math.inf if waits or (calls and shown != "One moment") else None)
    run.tell.reply(call, "A small animal.")
    assert run.since_s(1, shown) is None


def test_a_reply_that_the_agent_hung_up_on_does_not_come(run: Any):
    """It may wait for its next try."""
    run.tell.message()
    call = run.tell.ask(1)
    run.replies[call] = SentReply(Reply((Text("A small animal."),)))
    run.tell.add(HungUp(call=call))
    assert run.since_s(1, "A small") is None


def test_an_answer_that_came_whole_and_is_not_shown_is_unread(run: Any):
    """Not before its end, and not while the agent asks again. Its last word shows that it was read."""
    run.tell.message()
    words = f"{next(run.tell._history.of(StimulusGiven)).marker} Hello"
    call = run.tell.ask(1)
    assert not run.work.unread(words, "")
    run.tell.reply(call, "All is **well**.")
    assert run.work.unread(words, "All is")
    assert not run.work.unread(words, "All is well.")
    run.tell.ask(1)
    assert not run.work.unread(words, "")
