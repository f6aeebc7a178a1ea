"""What one session of an agent does to another one."""

from collections.abc import Mapping

from tests.properties.valid_runs import RunDraw, Violation
from wedgehog.harness.testing.history_builder import result


def _in_turn(play: RunDraw) -> tuple[int, int]:
    """A message to A is answered, then one to B is given; their turns."""
    first = play.tell.message(session="A")
    play.tell.answer_step(1)
    play.tell.end()
    return first, play.tell.message(session="B")


def _message_of_another(play: RunDraw) -> None:
    """One file holds the messages of both."""
    turns = _in_turn(play)
    play.tell.reply(play.tell.ask(sees=turns), f"Done {play.tell.nonce}")
    play.tell.end()


def _result_of_another(play: RunDraw) -> None:
    """The result of one session's tool comes to the other one."""
    first, second = _in_turn(play)
    play.tell.reply(play.tell.ask(sees=(second,), results=[result(f"{first}.1.1")]), f"Done {play.tell.nonce}")
    play.tell.end()


def _waits_for_another(play: RunDraw) -> None:
    """One lock for all sessions is held while a tool runs."""
    first = play.tell.message(session="A")
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    second = play.tell.message(session="B")
    play.tell.goes_on(first)
    ran = play.tell.runs(token, for_s=8)
    play.tell.answer_step(2, [ran])
    play.tell.end()
    play.tell.goes_on(second)
    play.tell.answer_step(1)
    play.tell.end()


SESSIONS: Mapping[str, tuple[Violation, ...]] = {
    "sessions_apart": (_message_of_another, _result_of_another),
    "session_unharmed": (_waits_for_another,),
}
"""The ways to violate each."""
