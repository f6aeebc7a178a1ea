"""An agent that polls a chat service: what it sends after it got the message is the answer."""

import asyncio
import math
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from wedgehog.harness.agents import drafts
from wedgehog.harness.agents.base import AgentError, DeliveredSignal
from wedgehog.harness.agents.context import NO_WORK
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.services.chat.service import ChatService

CLIENT = """
    import json, sys, threading, time, urllib.request
    url, offset = sys.argv[1], 0
    def call(method, **words):
        body, kind = json.dumps(words).encode(), {"content-type": "application/json"}
        request = urllib.request.Request(f"{url}/botK/{method}", body, kind)
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)["result"]
"""
AGENT = (
    CLIENT
    + """\
    while True:
        for update in call("getUpdates", offset=offset, timeout=30):
            offset, text = update["update_id"] + 1, update["message"]["text"]
            if text == "die":
                sys.exit("I am gone")
            drafts = []
            for part in [] if text == "be silent" else text.split():
                id_, part = (drafts[-1]["message_id"], part[1:]) if part[0] in "=-" else (None, part)
                if id_ is None:
                    drafts.append(call("sendMessage", chat_id=7, text=part))
                elif part:
                    call("editMessageText", chat_id=7, message_id=id_, text=part)
                else:
                    call("deleteMessage", chat_id=7, message_id=id_)
                time.sleep(0.05)
"""
)
CHAT = {"start": ["{python}", "{here}/agent.py", "{chat_url}"], "quiet_s": 1.0}
PATIENCE_S = 20.0


@pytest.fixture
async def talk(spec_of: Any, context: Any) -> AsyncIterator[Any]:
    """Opens the agent, by default with the code above."""
    async with ChatService(WallClock(), 1) as service:
        host, port = service.address
        there = replace(context, chat=service, chat_url=f"http://{host}:{port}")

        def opened(code: str = AGENT, work: Any = NO_WORK, **more: Any) -> Any:
            return open_agent(spec_of(code, **{"chat": CHAT, **more}), replace(there, work=work))

        yield opened


async def test_all_that_is_sent_until_it_is_quiet_is_the_answer(talk: Any):
    """One process for all messages; it runs before the first."""
    async with talk() as session:
        pid = session.started.pid
        outcome = await asyncio.wait_for(session.say("one two", first=True), PATIENCE_S)
        assert (outcome.answer, outcome.ended, outcome.error) == ("one\ntwo", "by itself", "")
        assert outcome.after_answer_s >= CHAT["quiet_s"]
        again = await asyncio.wait_for(session.say("three", first=False), PATIENCE_S)
        assert (again.answer, session.started.pid) == ("three", pid)
        assert again.appends and again.streamed  # no status tells a script of the outcome


async def test_a_message_that_was_edited_counts_as_it_is_and_a_deleted_one_not_at_all(talk: Any):
    """Bots show an answer while it comes: in one message, which they edit, or in a draft, which they take back."""
    async with talk() as session:
        edited = await asyncio.wait_for(session.say("one tw =two =three", first=True), PATIENCE_S)
        deleted = await asyncio.wait_for(session.say("draft - whole", first=False), PATIENCE_S)
        assert (edited.answer, deleted.answer) == ("one\nthree", "whole")


SLOW = (
    CLIENT
    + """\
    while True:
        for update in call("getUpdates", offset=offset, timeout=30):
            offset, first = update["update_id"] + 1, update["message"]["text"]
            note = call("sendMessage", chat_id=7, text=first)
            if first == "One moment":
                call("sendChatAction", chat_id=7, action="typing")
            time.sleep(1.3)
            call("editMessageText", chat_id=7, message_id=note["message_id"], text="the answer")
"""
)


def work(**known: Any) -> Any:
    """What is known of an agent that has asked its model: this, and else nothing."""
    nothing = dict.fromkeys(("since_s", "left_off_s", "begun_s"), lambda *_: None)
    return SimpleNamespace(has_asked=lambda words: True, **(nothing | known))


@pytest.mark.parametrize("note", ["…", "⏳", "Thinking", "One moment"])
async def test_a_note_that_the_agent_works_does_not_end_its_turn(talk: Any, note: str):
    """It is edited into the answer: a sign, words that the spec names, or words with "typing …" behind."""
    words = {**CHAT, "quiet_s": 0.5, "busy": "^Thinking$"}
    async with talk(SLOW, chat=words) as session:
        outcome = await asyncio.wait_for(session.say(note, first=True), PATIENCE_S)
        assert outcome.answer == "the answer"


async def test_other_words_end_a_turn_when_nothing_follows(talk: Any):
    """Only what a chat shows is known."""
    async with talk(SLOW, chat={**CHAT, "quiet_s": 0.3}) as session:
        outcome = await asyncio.wait_for(session.say("Thinking", first=True), PATIENCE_S)
        assert outcome.answer == "Thinking"


@pytest.mark.parametrize(("longest_s", "answer"), [(500.0, "the answer"), (15.0, "Thinking")])
async def test_words_of_a_reply_that_broke_off_end_no_turn_for_a_while(
    talk: Any, monkeypatch: pytest.MonkeyPatch, longest_s: float, answer: str
):
    """The agent tries again, and edits them into the answer. One that does nothing more for so long has ended."""
    monkeypatch.setattr(drafts, "LONGEST_DRAFT_S", longest_s)
    broke_off = work(left_off_s=lambda words, shown, at_s: at_s if shown != "the answer" else None)
    async with talk(SLOW, broke_off, chat={**CHAT, "quiet_s": 0.1}) as session:
        outcome = await asyncio.wait_for(session.say("Thinking", first=True), PATIENCE_S)
        assert outcome.answer == answer


@pytest.mark.parametrize(("grows_s", "answer"), [(500.0, "the answer"), (15.0, "Thinking")])
async def test_the_beginning_of_an_answer_ends_no_turn_for_a_moment(
    talk: Any, monkeypatch: pytest.MonkeyPatch, grows_s: float, answer: str
):
    """The rest follows when the message may be changed again. One that shows no more after so long has ended."""
    monkeypatch.setattr(drafts, "GROWS_S", grows_s)
    begun = work(begun_s=lambda words, shown: 0.0 if shown != "the answer" else None)
    async with talk(SLOW, begun, chat={**CHAT, "quiet_s": 0.1}) as session:
        outcome = await asyncio.wait_for(session.say("Thinking", first=True), PATIENCE_S)
        assert outcome.answer == answer


async def test_a_silent_agents_turn_ends_at_the_deadline_and_the_agent_runs_on(talk: Any):
    """The turn ends at the deadline; the service runs on."""
    async with talk() as session:
        saying = asyncio.create_task(session.say("be silent", first=True))
        await asyncio.sleep(0.5)
        assert not saying.done()
        await session.end_turn()
        assert (await asyncio.wait_for(saying, PATIENCE_S)).ended == "deadline"
        assert (await asyncio.wait_for(session.say("here", first=False), PATIENCE_S)).answer == "here"


async def test_an_agent_that_ends_in_mid_turn_is_quoted(talk: Any):
    """The turn does not wait for an answer that cannot come."""
    async with talk() as session:
        outcome = await asyncio.wait_for(session.say("die", first=True), PATIENCE_S)
    assert "exit code 1" in outcome.raised and "I am gone" in outcome.raised


async def test_an_agent_that_was_killed_is_started_again_for_the_next_message(talk: Any):
    """The message waits in the chat service until the agent polls."""
    async with talk() as session:
        first = session.started.pid
        session.signalled(DeliveredSignal(signal.SIGKILL, WallClock().now() + 5))
        session.leader.send_signal(signal.SIGKILL)
        outcome = await asyncio.wait_for(session.say("again", first=False), PATIENCE_S)
        assert outcome.answer == "again" and session.started.pid != first


async def test_an_agent_that_never_polls_is_an_error_of_its_own(talk: Any):
    """The error quotes its last output."""
    with pytest.raises(AgentError, match=r"was not ready within 1 s .no poll of the chat service came."):
        async with talk("import time; time.sleep(60)", start_s=1):
            pass
    with pytest.raises(AgentError, match="no hat"):
        async with talk("import sys; sys.exit('no hat')"):
            pass


STOPPABLE = (
    CLIENT
    + """\
    stopped = threading.Event()
    def work(text):
        if not stopped.wait(30):
            call("sendMessage", chat_id=7, text="the answer")
        elif text != "be silent":
            call("sendMessage", chat_id=7, text="Stopped.")
    while True:
        for update in call("getUpdates", offset=offset, timeout=30):
            offset, text = update["update_id"] + 1, update["message"]["text"]
            if text == "/stop":
                stopped.set()
            else:
                stopped.clear()
                threading.Thread(target=work, args=[text]).start()
"""
)


@pytest.mark.parametrize(("text", "answer"), [("Hello", "Stopped."), ("be silent", "")])
async def test_its_user_stops_a_turn_by_a_message(talk: Any, text: str, answer: str):
    """The turn is over when the agent is quiet after it, with a word or without."""
    async with talk(STOPPABLE, chat={**CHAT, "quiet_s": 0.5, "abort": "/stop"}) as session:
        saying = asyncio.create_task(session.say(text, first=True))
        await asyncio.sleep(0.3)
        await session.abort()
        outcome = await asyncio.wait_for(saying, PATIENCE_S)
        assert (outcome.ended, outcome.answer) == ("aborted", answer)
        saying = asyncio.create_task(session.say("be silent", first=False))
        await asyncio.sleep(0.3)
        assert not saying.done(), "the next turn begins anew"
        await session.abort()
        assert (await asyncio.wait_for(saying, PATIENCE_S)).ended == "aborted"


@pytest.mark.parametrize("how", ["at once", "in turn"])
async def test_a_second_message_gets_what_is_sent_after_it_came(talk: Any, how: str):
    """An agent may work on both at once, or on one after the other; the first turn does not wait for the second."""
    code = STOPPABLE.replace("stopped.wait(30)", "time.sleep(1.2 if text == 'slow' else 0.2)")
    code = code.replace('text="the answer"', "text=f'answer to {text}'").replace('"""', "")
    if how == "in turn":
        code = code.replace(".start()", ".run()")
    until_s = time.monotonic() + 3
    asked = work(since_s=lambda words, shown: math.inf if words == "slow" and time.monotonic() < until_s else None)
    async with talk(code, asked, chat={**CHAT, "quiet_s": 0.4}) as session:
        second = session.beside()
        first = asyncio.create_task(session.say("slow", first=True))
        await asyncio.sleep(0.3)
        later = await asyncio.wait_for(second.say("fast", first=False), PATIENCE_S)
        assert "answer to slow" in (await asyncio.wait_for(first, PATIENCE_S)).answer
        assert "answer to fast" in later.answer
