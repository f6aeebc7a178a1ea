"""After an error of the provider the conversation goes on, or its user reads that it does not."""

from typing import Any

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.testing import HistoryBuilder


def _failing_in_its_second_turn(status: int = 500, says: str = "Error: status 500") -> HistoryBuilder:
    tell = HistoryBuilder(resumes=True)
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    tell.end()
    tell.message()
    tell.refuse(tell.ask(1), status)
    return tell.fails(says)


def _next(tell: HistoryBuilder, **seen: Any) -> str:
    tell.message()
    tell.reply(tell.ask(1, **{"sees": (3,), "replies": (), **seen}), f"Done {tell.nonce}")
    return check("error_forgets_nothing", tell.end().seal()).status


@pytest.mark.parametrize(
    ("seen", "status"),
    [({}, "fail"), ({"sees": (1, 3)}, "pass"), ({"sees": (2, 3)}, "pass"), ({"replies": (1,)}, "pass")],
)
def test_a_conversation_that_is_gone_after_an_error_is_red(seen: dict[str, Any], status: str):
    """Anything from before is enough: an agent may keep one turn, or only what was said."""
    assert _next(_failing_in_its_second_turn(), **seen) == status


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_the_provider_did_not_accept_may_end_the_conversation(status: int):
    """What it says was refused for may be anywhere in it."""
    assert _next(_failing_in_its_second_turn(status)) == "nothing"


@pytest.mark.parametrize(
    "says",
    [
        "Error: I have reset our conversation.",
        "Error. A new chat begins.",
        "Error: the session was damaged",
        "Error: se reinició la sesión",
        "错误:会话已重置",
    ],
)
def test_an_agent_may_begin_anew_and_say_so(says: str):
    """Its user knows that nothing is known."""
    assert _next(_failing_in_its_second_turn(says=says)) == "nothing"


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (("", "", "$ printf '3.1.1 started\\n' >> /tmp/w"), "fail"),
        (("loaded history.json, turn 1", "loaded history.json, turn 2", "loaded history.json, turn 3"), "fail"),
        (("A new session begins.", "The session goes on.", "A new session begins."), "nothing"),
    ],
)
def test_what_an_agent_prints_in_each_turn_says_nothing_of_a_new_conversation(lines: tuple[str, ...], status: str):
    """Many print the commands that they run, and where their conversation lies."""
    tell = HistoryBuilder(resumes=True)
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    tell.end(stderr=lines[0])
    tell.message()
    tell.refuse(tell.ask(1), 500)
    tell.fails(f"Error: status 500\n{lines[1]}").message()
    tell.reply(tell.ask(1, sees=(3,), replies=()), f"Done {tell.nonce}")
    assert check("error_forgets_nothing", tell.end(stderr=lines[2]).seal()).status == status


def test_a_process_that_was_started_again_is_not_judged():
    """It may keep its conversation in memory; one that starts with each message must store it."""
    stays = AgentStarted(argv=("agent",), executable="/bin/agent", ready_s=0.5)
    assert _next(_failing_in_its_second_turn().wait(1).add(stays)) == "nothing"
    of_a_message = AgentStarted(argv=("agent",), executable="/bin/agent")
    assert _next(_failing_in_its_second_turn().wait(1).add(of_a_message)) == "fail"


def test_an_agent_that_carries_nothing_is_not_judged():
    """It never promised a conversation."""
    tell = HistoryBuilder()
    for number in (1, 2):
        tell.message()
        call = tell.ask(1, sees=(number,), replies=())
        tell.reply(call, f"Done {tell.nonce}") if number == 1 else tell.refuse(call, 500)
        tell.end() if number == 1 else tell.fails()
    assert _next(tell) == "nothing"


def test_a_summary_may_have_been_made():
    """A call beside the conversation came between, and gave words that the next request holds."""
    tell = _failing_in_its_second_turn()
    tell.message()
    tell.reply(tell.ask(1, background="summary"), "They spoke of owls.")
    tell.reply(tell.ask(1, sees=(3,), replies=(3,)), f"Done {tell.nonce}")
    assert check("error_forgets_nothing", tell.end().seal()).status in ("pass", "nothing")


def test_a_sign_before_an_error_is_no_word_of_another_language():
    """Many agents print one."""
    assert _next(_failing_in_its_second_turn(says="❌ Error — the model did not answer… 🚨")) == "fail"
