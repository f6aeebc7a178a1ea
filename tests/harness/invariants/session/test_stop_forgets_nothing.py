"""After a stop or a kill the conversation before it goes on, or its user reads that it does not."""

from typing import Any

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.record.events.turn import AbortSent, SessionSaved
from wedgehog.harness.testing import HistoryBuilder


def _ended(how: str, *, stays: bool = False, carried: bool = True, says: str = "", hangs_up: bool = False) -> Any:
    """A turn is answered, and the next one is stopped or killed in mid-reply."""
    tell = HistoryBuilder(resumes=True)
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    tell.end(exit_code=None if stays else 0)
    number = tell.message()
    tell.ask(1, sees=None if carried else (number,))
    if how == "killed":
        tell.kill()
        return tell
    tell.add(AbortSent(turn=number, hangs_up=hangs_up))
    return tell.end(says, ended="aborted", exit_code=None if stays else 130)


def _next(tell: HistoryBuilder, **seen: Any) -> str:
    tell.message()
    tell.reply(tell.ask(1, **{"sees": (3,), "replies": (), **seen}), f"Done {tell.nonce}")
    return check("stop_forgets_nothing", tell.end().seal()).status


@pytest.mark.parametrize("how", ["stopped", "killed"])
@pytest.mark.parametrize(
    ("seen", "status"),
    [({}, "fail"), ({"sees": (1, 3)}, "pass"), ({"sees": (2, 3)}, "pass"), ({"replies": (1,)}, "pass")],
)
def test_a_conversation_that_is_gone_after_its_user_stopped_a_turn_is_red(how: str, seen: dict[str, Any], status: str):
    """Anything from before is enough: an agent may keep one turn, or only what was said."""
    assert _next(_ended(how), **seen) == status


def test_what_a_process_kept_in_its_memory_may_go_with_it():
    """A kill takes it; a stop does not, but for a process that was started again."""
    assert _next(_ended("killed", stays=True)) == "nothing"
    assert _next(_ended("stopped", stays=True)) == "fail"
    again = AgentStarted(argv=("agent",), executable="/bin/agent", ready_s=0.5)
    assert _next(_ended("stopped", stays=True).wait(1).add(again)) == "nothing"


def test_a_closed_connection_may_be_the_end_of_a_session():
    """It is no wish to stop one turn."""
    assert _next(_ended("stopped", stays=True, hangs_up=True)) == "nothing"


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_an_agent_that_had_not_carried_the_turn_before_is_not_judged(how: str):
    """It may begin anew with each message."""
    assert _next(_ended(how, carried=False)) == "nothing"


def test_an_agent_may_begin_anew_and_say_so():
    """Its user knows that nothing is known."""
    assert _next(_ended("stopped", says="Interrupted. The conversation was cleared.")) == "nothing"


@pytest.mark.parametrize(("torn", "status"), [(True, "nothing"), (False, "fail")])
def test_a_session_file_that_the_kill_tore_may_be_beyond_repair(torn: bool, status: str):
    """A kill between two writes leaves a whole one."""
    tell = _ended("killed")
    tell.add(SessionSaved(turn=2, path="session/2", sha256="", size=9, torn=torn))
    assert _next(tell) == status
