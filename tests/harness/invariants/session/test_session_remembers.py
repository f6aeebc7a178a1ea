"""A session goes on with the next message, also where nothing has failed."""

from typing import Any

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.record.events.turn import AgentKilled, SessionSaved
from wedgehog.harness.testing import HistoryBuilder


def _answered(*, resumes: bool = True, exit_code: int | None = 0, says: str = "") -> HistoryBuilder:
    """The first message is answered."""
    tell = HistoryBuilder(resumes=resumes)
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    return tell.end(*([f"{says} {tell.nonce}"] if says else []), exit_code=exit_code)


def _next(tell: HistoryBuilder, **seen: Any) -> str:
    number = tell.message()
    tell.reply(tell.ask(1, **{"sees": (number,), "replies": (), **seen}), f"Done {tell.nonce}")
    return check("session_remembers", tell.end().seal()).status


@pytest.mark.parametrize(("seen", "status"), [({}, "fail"), ({"sees": (1, 2)}, "pass"), ({"replies": (1,)}, "pass")])
def test_a_session_that_begins_anew_with_each_message_is_red(seen: dict[str, Any], status: str):
    """Anything from before is enough: an agent may keep only what was said."""
    assert _next(_answered(), **seen) == status


@pytest.mark.parametrize(("exit_code", "status"), [(0, "fail"), (1, "nothing")])
def test_a_turn_that_ended_with_an_error_beside_its_answer_may_be_rolled_back(exit_code: int, status: str):
    """Its user reads both, and a script reads that it failed."""
    tell = HistoryBuilder(resumes=True)
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    error = "error: 'NoneType' object has no attribute 'output_tokens'"
    assert _next(tell.end(f"Done {tell.nonce}", exit_code=exit_code, error=error)) == status


@pytest.mark.parametrize(("error", "status"), [("", "fail"), ("the turn was stopped", "nothing")])
def test_a_service_may_roll_back_a_turn_beside_whose_answer_it_told_of_an_error(error: str, status: str):
    """Its words came, then its own time limit ended the turn; the spec names the place of the error."""
    tell = HistoryBuilder(error_at_path=True, resumes=True)
    tell.message()
    tell.answer_step(1)
    assert _next(tell.end(f"Done {tell.nonce}", exit_code=None, status=200, error=error)) == status


def test_an_agent_that_promises_no_session_may_begin_anew_with_each_message():
    """It is a program for one message, as many are."""
    assert _next(_answered(resumes=False)) == "nothing"


def test_an_agent_that_forgets_only_at_the_third_message_is_red():
    """The second request shows that it keeps a conversation."""
    tell = _answered(resumes=False)
    assert _next(tell, sees=(1, 2)) == "nothing"
    tell = _answered(resumes=False)
    tell.message()
    tell.reply(tell.ask(1, sees=(1, 2)), f"Done {tell.nonce}")
    assert _next(tell.end()) == "fail"


def test_what_a_process_kept_in_its_memory_may_go_with_it():
    """An agent that stays is started again between two messages."""
    again = AgentStarted(argv=("agent",), executable="/bin/agent", ready_s=0.5)
    assert _next(_answered(exit_code=None)) == "fail"
    assert _next(_answered(exit_code=None).wait(1).add(again)) == "nothing"


@pytest.mark.parametrize(
    "harm",
    [
        AgentKilled(turn=1, signal="KILL", whom="worker", pids=(7,)),
        SessionSaved(turn=1, path="session/1", sha256="", size=9, torn=True),
    ],
)
def test_a_dead_worker_or_a_torn_file_is_a_reason(harm: Any):
    """What the agent knew may be lost."""
    assert _next(_answered().add(harm)) == "nothing"


def test_an_agent_may_begin_anew_after_its_user_was_away_for_long():
    """Some begin a new conversation each day, or after an hour."""
    assert _next(_answered().wait(299)) == "fail"
    assert _next(_answered().wait(301)) == "nothing"


def test_an_agent_may_begin_anew_and_say_so():
    """Its user knows that nothing is known."""
    assert _next(_answered(says="Started a fresh conversation.")) == "nothing"


def test_a_refused_message_may_be_left_out():
    """What the provider did not accept is not sent again."""
    tell = HistoryBuilder(resumes=True)
    tell.message()
    tell.refuse(tell.ask(1), status=400)
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    assert _next(tell.end()) == "nothing"


@pytest.mark.parametrize(("who", "status"), [("subagent", "fail"), ("reader", "fail"), ("side", "nothing")])
def test_a_refusal_of_what_a_subagent_said_is_no_reason(who: str, status: str):
    """Its task is too long for its own window. A planner may have said what the conversation says."""
    tell = HistoryBuilder(resumes=True)
    tell.message()
    tell.reply(tell.ask(1), "I delegate it.")
    asked = tell.ask(1, background=who, side=f"{who} 1", sees=())
    tell.refuse(asked, status=400, message="prompt is too long: 213462 tokens > 200000 maximum")
    tell.reply(tell.ask(2), f"Done {tell.nonce}")
    assert _next(tell.end()) == status


@pytest.mark.parametrize(
    ("rounds", "chars", "status"), [(1, 100, "fail"), (2, 100, "nothing"), (1, 3000, "nothing")], ids=str
)
def test_a_turn_that_fills_a_window_may_be_left_out(rounds: int, chars: int, status: str):
    """An agent that sends only the last messages, or a thousand tokens, cannot send a part of such a turn."""
    tell = HistoryBuilder(resumes=True)
    tell.message()
    done: list[ToolResult] = []
    for step in range(1, rounds + 1):
        tell.reply(tell.ask(step, results=done), "I look.", tools=[True])
        done.append(ToolResult(f"call_{step}", chars, token=f"1.{step}.1"))
    tell.reply(tell.ask(rounds + 1, results=done), f"Done {tell.nonce}")
    assert _next(tell.end()) == status
