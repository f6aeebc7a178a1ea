"""An answer that the model made up behind a call."""

from wedgehog.fake_llm.script.misformed_calls import INVENTED_ANSWER
from wedgehog.harness.invariants import check
from wedgehog.harness.testing import HistoryBuilder


def told(answer: str, invents: str = INVENTED_ANSWER) -> str:
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.fires("text_call", call, invents=invents)
    tell.reply(call, tools=[True])
    return check("no_invented_result", tell.end(answer).seal()).status


def test_it_is_red_where_it_is_the_answer():
    """In any case, and with any signs around it."""
    assert told(f"**{INVENTED_ANSWER.upper()}**") == "fail"


def test_another_end_of_the_turn_is_right():
    """An error, the whole answer after a second reply, and a transcript that shows both."""
    nonce = "saffron01otter"
    said = ("Error: I could not read the reply", f"Three boats. {nonce}", f"{INVENTED_ANSWER}\nThree boats. {nonce}")
    assert [told(answer) for answer in said] == ["pass"] * 3


def test_only_a_turn_that_was_struck_is_judged():
    """Elsewhere nothing was made up."""
    assert told(INVENTED_ANSWER, "") == "nothing"
