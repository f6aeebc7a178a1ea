"""What an agent was waiting for, in one sentence; the look never fails, and never takes long."""

import asyncio
import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.turn import HangSeen, StimulusGiven
from wedgehog.harness.record.history import History
from wedgehog.harness.run.watching import diagnostics as forensics
from wedgehog.harness.run.watching.diagnostics import Diagnosis, Diagnostics, sentence
from wedgehog.harness.sandbox.process_info import Peer, ProcessInfo
from wedgehog.harness.sandbox.stacks import StackFrame, Stacks, Thread
from wedgehog.harness.testing import HistoryBuilder

MAIN = Thread(
    "MainThread", (StackFrame("recv", "/usr/lib/python3.11/socket.py", 7), StackFrame("ask", "/me/agent.py", 41))
)


def a_process(pid: int = 10, parent: int = 1, *argv: str, state: str = "sleeping", cpu_s: float = 0.1) -> ProcessInfo:
    return ProcessInfo(
        pid, parent, argv or ("/usr/bin/python3", "agent.py"), "/usr/bin/python3", state, "", cpu_s, 60.0, 1
    )


def a_peer(link: str, remote: str = "127.0.0.1:9", state: str = "ESTABLISHED") -> Peer:
    return Peer(10, link, "127.0.0.1:5", remote, state)


def sight(*peers: Peer, processes: tuple[ProcessInfo, ...] = (a_process(),), stacks: Any = ()) -> Diagnosis:
    return Diagnosis(list(processes), list(peers), list(stacks))


def said(tell: HistoryBuilder, seen: Diagnosis) -> str:
    return sentence(tell.seal(), seen, 1, 61.0)


def told() -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    return tell


def test_an_open_call_is_what_it_waited_for_and_its_thread_says_where():
    """Counted from its arrival."""
    tell = told()
    tell.refuse(tell.ask(1))
    tell.ask(1)
    seen = sight(a_peer("llm"), stacks=[Stacks(10, "py-spy", (MAIN,))])
    assert said(tell, seen) == (
        "it waited for the reply to call 2 on llm, open since 61 s; thread MainThread in agent.py:41 recv"
    )


def test_a_request_for_data_about_a_model_is_not_waited_for():
    """Its end is not recorded: Ollama's /api/show, or a count of tokens."""
    tell = told()
    tell.ask(1, background="unreadable")
    tell.ask(1)
    assert said(tell, sight(a_peer("llm"))) == "it waited for the reply to call 2 on llm, open since 61 s"


def test_a_reply_that_is_known_to_have_stalled_is_still_waited_for():
    """Until the agent hangs up."""
    tell = told()
    tell.reply(tell.ask(1), how="stalled", delivered=3)
    assert said(tell, sight(a_peer("llm"))) == "it waited for the reply to call 1 on llm, open since 61 s"
    tell = told()
    tell.stall(tell.ask(1))
    assert "was given up by itself" in said(tell, sight())


def test_an_agent_without_a_connection_to_the_model_waits_for_no_call():
    """It has left them behind; where no process can be seen, the open call counts."""
    tell = told()
    tell.ask(1)
    assert not said(tell, sight()).startswith("it waited for the reply")
    assert said(tell, Diagnosis()).startswith("it waited for the reply to call 1 on llm")


def test_a_tool_that_runs_is_what_it_waited_for():
    """Unless its result was sent."""
    tell = told()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    assert said(tell, sight(a_peer("llm"))) == "it waited for tool call 1.1.1 (shell), running since 61 s"
    tell = told()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token, background=True)
    assert said(tell, sight()) == "it waited for tool call 1.1.1 (shell), in the background since 61 s"
    tell = told()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.answer_step(2, [tell.runs(token, is_error=True)])
    assert said(tell, sight()).endswith("its last call, 2, was answered whole")


@pytest.mark.parametrize("lives", [False, True])
def test_a_command_that_a_stop_has_ended_is_not_waited_for(lives: bool):
    """It was killed, so it never reports its end; the turn after it waits for something else."""
    tell = told()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    tell.abort()
    tell.end()
    tell.message()
    shell = a_process(11, 10, "bash", "-c", f"printf {token}; sleep 90")
    seen = sight(processes=(a_process(), shell) if lives else (a_process(),))
    assert said(tell, seen).startswith("it waited for tool call 1.1.1 (shell), running since") is lives


def test_a_connection_that_an_earlier_turn_may_have_left_open_is_not_said_to_carry_a_request():
    """An agent that keeps its connections alive holds one while it waits for something else."""
    tell = told()
    tell.answer_step(1)
    tell.end()
    tell.message()
    found = sentence(tell.seal(), sight(a_peer("llm")), 2, 61.0)
    assert found == (
        "no request of this turn has come through; it holds a connection to the model, "
        "which may be an idle one of an earlier turn"
    )


def test_of_two_servers_the_one_that_a_fault_struck_is_named():
    """The connection to the other one is only kept open."""
    tell = told()
    tell.add(FaultFired(fault=0, name="drip", link="tcp:db", turn=1, step=None, attempt=1, call=None, proof="built"))
    assert said(tell, sight(a_peer("tcp:cache"), a_peer("tcp:db"))).endswith("it held a connection to tcp:db")


def test_of_two_servers_the_one_that_gave_no_answer_is_named():
    """A page that never comes, beside a tool server that has answered: no fault of the scenario says which."""
    tools = replace(a_peer("tool:mcp"), sent=698, received=1048)
    page = replace(a_peer("tool:web"), sent=174, received=0)
    assert said(told(), sight(tools, page)).endswith("it held a connection to tool:web")


def test_a_tool_that_was_killed_with_its_agent_is_not_waited_for():
    """It left no word of its end."""
    tell = told()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    tell.kill().message()
    assert said(tell, sight()).startswith("no call, no tool and no connection to the model or a tool was open")


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (
            sight(a_peer("", "10.0.0.1:443"), a_peer("tool:web")),
            "no call was open; it held a connection to tool:web",
        ),
        (sight(a_peer("", "10.0.0.1:443")), "no call was open; it held a connection to 10.0.0.1:443"),
        (
            sight(a_peer("llm"), a_peer("channel")),
            "it held a connection to the model, and no request of this turn has come through",
        ),
        (
            sight(a_peer("channel")),
            "no call, no tool and no connection to the model or a tool was open; no request came in this turn",
        ),
        (
            sight(processes=(a_process(), a_process(11, 10, "/bin/sleep", "600"))),
            "no call was open; its process `sleep 600` still ran",
        ),
        (
            sight(processes=(a_process(state="running", cpu_s=55.0),)),
            "it was at work: `python3 agent.py` has used 55 s of processor in 60 s",
        ),
        (Diagnosis(), "none of its processes could be seen"),
    ],
)
def test_without_a_call_or_a_tool_whatever_else_was_open_is_said(seen: Diagnosis, says: str):
    """A connection that is only kept alive says nothing."""
    assert said(told(), seen) == says


def look(history: History, folder: Path) -> Diagnostics:
    agent: Any = SimpleNamespace(mark="nobody/carries/this", leaders={os.getpid()})
    return Diagnostics(agent, {}, history, folder, WallClock())


async def test_a_look_is_kept_beside_the_history_and_told_in_it(tmp_path: Path):
    """Processes, connections, the last event; our own process stands for the agent."""
    history = History(WallClock())
    history.add(StimulusGiven(turn=3, stimulus="user", marker="m", nonce="n", text="t"))
    await look(history, tmp_path).at(3)
    seen = history.first(HangSeen)
    assert seen is not None and (seen.turn, seen.file) == (3, "hang-3.json")
    kept = json.loads((tmp_path / seen.file).read_text())
    assert kept["says"] == seen.says and kept["last_event"]["event"] == "stimulus_given"
    mine = next(one for one in kept["processes"] if one["pid"] == os.getpid())
    assert mine["argv"] and mine["age_s"] > 0 and mine["threads"] >= 1


async def test_a_look_that_takes_too_long_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is known by then is told."""

    async def never(*_: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(forensics, "WITHIN_S", 0.05)
    monkeypatch.setattr(Diagnostics, "_inside", never)
    history = History(WallClock())
    await look(history, tmp_path).at(1)
    for thread in threading.enumerate():
        if thread.name.startswith("wedgehog-look"):
            thread.join(30)  # what is cut short goes on for a moment, which other tests must not see
    kept = json.loads((tmp_path / "hang-1.json").read_text())
    assert "looking took longer than" in kept["missing"][0]
    assert history.first(HangSeen) is not None


async def test_a_look_that_fails_fails_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not even where its file cannot be written."""

    def broken(*_: Any) -> None:
        raise RuntimeError("my glasses are gone")

    monkeypatch.setattr(Diagnostics, "_from_outside", broken)
    history = History(WallClock())
    await look(history, tmp_path / "no such folder").at(1)
    seen = history.first(HangSeen)
    assert seen is not None and seen.says == "none of its processes could be seen"
