"""A message to a subagent that has ended does not begin its task anew."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def written_to(begins: str, *, of_turn: int = 1, tool: str = "send_message", hands_on: bool = False) -> str:
    """The status where the model writes to a subagent of turn 1, and a conversation of this name asks then."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="task")
    told = result(token, chars=30, printed=False, signs=("elsewhere",))
    tell.reply(tell.ask(2, results=[told]), f"Done {tell.nonce}")
    tell.end()
    call = tell.ask(1, side="subagent 1", turn=1)
    tell.reply(call, tools=[True], name="task") if hands_on else tell.reply(call, "It is empty.")
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name=tool)
    tell.reply(tell.ask(2, results=[result(token, chars=14, signs=())]), f"Done {tell.nonce}")
    tell.end()
    tell.reply(tell.ask(1, side=begins, turn=of_turn), "It is empty.")
    return check("subagent_goes_on", tell.seal()).status


@pytest.mark.parametrize(
    ("begins", "of_turn", "status"),
    [("subagent 2", 1, "fail"), ("subagent 1", 1, "pass"), ("subagent 2", 2, "pass"), ("side 1", 1, "pass")],
)
def test_the_same_task_does_not_begin_anew(begins: str, of_turn: int, status: str):
    """The subagent itself may go on, and the message may be a task of its own."""
    assert written_to(begins, of_turn=of_turn) == status


def test_where_the_model_wrote_to_none_nothing_is_judged():
    """Nor where a subagent may have begun another one."""
    assert written_to("subagent 2", tool="bash") == "nothing"
    assert written_to("subagent 2", hands_on=True) == "nothing"


def test_a_second_task_of_a_turn_may_begin_late():
    """Its subagent had not asked before the message."""
    tell = HistoryBuilder()
    tell.message()
    tokens = tell.reply(tell.ask(1), tools=[True, True], name="task")
    told = [result(token, chars=30, printed=False, signs=("elsewhere",)) for token in tokens]
    tell.reply(tell.ask(2, results=told), f"Done {tell.nonce}")
    tell.end()
    tell.reply(tell.ask(1, side="subagent 1", turn=1), "It is empty.")
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="send_message")
    tell.reply(tell.ask(2, results=[result(token, chars=14, signs=())]), f"Done {tell.nonce}")
    tell.end()
    tell.reply(tell.ask(1, side="subagent 2", turn=1), "It is empty.")
    assert check("subagent_goes_on", tell.seal()).status == "nothing"
