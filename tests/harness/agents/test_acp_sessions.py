"""Two sessions of one process over the Agent Client Protocol, as an editor with two chats has them."""

import asyncio
import os
import signal
from typing import Any

import pytest

from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.sessions import contexts, open_sessions

AGENT = """
import json, os, sys, threading, time
LOCK, SESSIONS, STOPS = threading.Lock(), {}, {}

def send(**words):
    with LOCK:
        print(json.dumps({"jsonrpc": "2.0", **words}), flush=True)

def work(number, name, text):
    if text == "loud": print(f"{name} failed", file=sys.stderr, flush=True)
    if text == "die": os._exit(3)
    if text == "deaf": time.sleep(60)
    if text == "slow": STOPS[name].wait(60)
    said = SESSIONS[name] = SESSIONS[name] + [text]
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"{os.getpid()} {name} "}}
    send(method="session/update", params={"sessionId": name, "update": chunk})
    time.sleep(0.05)
    chunk["content"]["text"] = " ".join(said)
    send(method="session/update", params={"sessionId": name, "update": chunk})
    send(id=number, result={"stopReason": "cancelled" if text == "slow" else "end_turn"})

for line in sys.stdin:
    asked = json.loads(line)
    method, number, params = asked["method"], asked.get("id"), asked.get("params", {})
    name = params.get("sessionId")
    if method == "initialize":
        assert not SESSIONS
        send(method="_its_own/notice", params={"says": "signed in"})
        send(id=number, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    elif method in ("session/new", "session/load"):
        name = name or f"n{len(SESSIONS) + 1}"
        SESSIONS[name], STOPS[name] = [] if method == "session/new" else ["loaded"], threading.Event()
        send(id=number, result={"sessionId": name})
    elif method == "session/prompt":
        threading.Thread(target=work, args=(number, name, params["prompt"][0]["text"]), daemon=True).start()
    elif method == "session/cancel":
        STOPS[name].set()
"""


@pytest.fixture
def spec(spec_of: Any) -> Any:
    return spec_of(AGENT, acp={"start": ["{python}", "-S", "-E", "{here}/agent.py"]})


async def test_a_notification_of_the_agents_own_is_ignored(
    spec: Any, context: AgentContext, caplog: pytest.LogCaptureFixture
):
    """It needs no answer, and is no error."""
    async with open_sessions(spec, contexts(spec, context, ("A",))) as (a,):
        assert (await a.say("one", first=True)).answer.endswith("one")
    assert caplog.records == []


async def test_sessions_share_a_process_and_each_gets_its_own_words(spec: Any, context: AgentContext):
    """At the same time, and one after the other."""
    async with open_sessions(spec, contexts(spec, context, ("A", "B"))) as (a, b):
        both = await asyncio.gather(a.say("one", first=True), b.say("two", first=True))
        later = [await session.say("more", first=False) for session in (a, b)]
        pid = str(a.started.pid)
        assert a.leader is b.leader and len(a.starts) == 1
    assert sorted(said.answer for said in both) in (
        [f"{pid} n1 one", f"{pid} n2 two"],
        [f"{pid} n1 two", f"{pid} n2 one"],
    )
    assert [said.answer for said in later] == [f"{said.answer} more" for said in both]


async def test_a_process_of_two_sessions_that_ends_is_started_once_and_loads_both(spec: Any, context: AgentContext):
    """The one that was killed with it is told so, and both go on."""
    async with open_sessions(spec, contexts(spec, context, ("A", "B"))) as (a, b):
        await a.say("one", first=True)
        waiting = asyncio.create_task(b.say("slow", first=True))
        while not b._ready:  # type: ignore[attr-defined]
            await asyncio.sleep(0.01)
        dead = await a.say("die", first=False)
        other = await waiting
        again = await asyncio.gather(a.say("one", first=False), b.say("two", first=False))
        pid = b.started.pid
    assert dead.raised == other.raised == "the process ended with exit code 3"
    assert [said.answer for said in again] == [f"{pid} n1 loaded one", f"{pid} n2 loaded two"]
    assert len(a.starts) == 2


async def test_a_stopped_turn_leaves_the_other_session_its_process(spec: Any, context: AgentContext):
    """One session obeys `session/cancel`; one is deaf, and its user no longer waits for it."""
    async with open_sessions(spec, contexts(spec, context, ("A", "B"))) as (a, b):
        first = [await session.say("one", first=True) for session in (a, b)]
        deaf, slow = (asyncio.create_task(it.say(word, first=False)) for it, word in ((a, "deaf"), (b, "slow")))
        await asyncio.sleep(0)
        while not (a._in_turn() and b._in_turn()):
            await asyncio.sleep(0.01)
        await a.end_turn(grace_s=0.1)
        assert (await deaf).ended == "deadline" and not slow.done()
        await b.end_turn(grace_s=5)
        stopped = await slow
        assert b.leader is not None and str(b.leader.pid) == first[0].answer.split()[0]
    assert stopped.answer == f"{first[1].answer} slow" and stopped.ended == "deadline"


async def test_sessions_have_a_process_each_where_a_fault_strikes_one_of_them(spec: Any, context: AgentContext):
    """A kill of one session's process must leave the other one alive."""
    async with open_sessions(spec, contexts(spec, context, ("A", "B")), struck=True) as (a, b):
        for session in (a, b):
            await session.say("one", first=True)
        assert a.leader is not None and b.leader is not None and a.leader.pid != b.leader.pid
        os.kill(a.leader.pid, signal.SIGKILL)
        assert (await b.say("two", first=False)).answer == f"{b.leader.pid} n1 one two"


async def test_stderr_of_turns_at_the_same_time_is_known_to_be_of_both(spec: Any, context: AgentContext):
    """A line of one session's turn is not taken for a line of the other's; of a turn alone it is its own."""
    async with open_sessions(spec, contexts(spec, context, ("A", "B"))) as (a, b):
        alone = [await session.say("loud", first=True) for session in (a, b)]
        slow = asyncio.create_task(a.say("slow", first=False))
        while not a._in_turn():
            await asyncio.sleep(0.01)
        loud = await b.say("loud", first=False)
        await a.end_turn(grace_s=5)
        again = await b.say("loud", first=False)
        stopped = await slow
    assert [(said.stderr, said.shared) for said in alone] == [("n1 failed\n", False), ("n2 failed\n", False)]
    assert (loud.shared, stopped.shared, stopped.stderr) == (True, True, "n2 failed\n")
    assert (again.stderr, again.shared) == ("n2 failed\n", False)
