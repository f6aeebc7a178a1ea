"""Several sessions of one agent: which agents can have them, and what tells one from another."""

import asyncio
import os
import signal
from dataclasses import replace
from typing import Any

import pytest

from wedgehog.harness.agents.base import DeliveredSignal
from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.sessions import contexts, one_session_reason, open_sessions, session_folders

PRINTS = """
import os, sys
print(*sys.argv[1:], os.environ.get("FOLDER", ""), os.environ["HOME"], os.getcwd())
"""


@pytest.mark.parametrize(
    "keys",
    [
        {"command": ["agent", "--id", "{session}", "{message}"]},
        {"command": ["agent", "{message}"], "env": {"SESSIONS": "{session_dir}"}},
        {"command": ["agent", "{session}"], "resume": ["agent", "--resume", "{session}"]},
        {"callable": "agent.py:call"},
        {"acp": {"start": ["agent"]}},
        {"chat": {"start": ["agent"], "users": 2}},
        {"page": {"start": ["agent", "{port}"]}},
        {"lines": {"start": ["agent"], "done": "^$"}},
        {"tui": {"start": ["agent", "{session}"], "resume": ["agent", "-r", "{session}"], "ready": ">"}},
        {"http": {"base": "http://127.0.0.1:9", "url": "/", "body": {"session": "{session}", "text": "{message}"}}},
    ],
)
def test_an_agent_whose_sessions_are_told_apart_can_have_several(spec_of: Any, keys: dict[str, Any]):
    """By a name, a folder, a process of its own, or the protocol."""
    assert one_session_reason(spec_of(**keys)) is None


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"command": ["agent", "{message}"]}, "{session} or {session_dir} in command"),
        ({"command": ["agent", "{session}"], "resume": ["agent", "--last"]}, "{session} or {session_dir} in command"),
        ({"lines": {"start": ["a"], "resume": ["a", "-c"], "done": "^$"}}, "{session} or {session_dir} in lines"),
        ({"http": {"base": "http://127.0.0.1:9", "url": "/"}, "env": {"S": "{session}"}}, "in http: url, headers"),
        ({"chat": {"start": ["agent", "{session}"]}}, "it promises to answer one user"),
    ],
)
def test_an_agent_whose_sessions_are_one_says_why(spec_of: Any, keys: dict[str, Any], says: str):
    """Nothing names the session, or a later message goes to the last one, whichever that is."""
    assert says in (one_session_reason(spec_of(**keys)) or "")


def test_a_session_has_a_folder_of_its_own_unless_it_gets_a_name(spec_of: Any, context: AgentContext):
    """With a name they share the folder, as an agent with an index of its sessions has it."""
    named = spec_of(command=["agent", "{session_dir}", "{session}"])
    found = contexts(named, context, ("A", "B"))
    assert [(it.session, it.session_folder) for it in found.values()] == [("s1", "session"), ("s1B", "session")]
    nameless = spec_of(command=["agent", "{session_dir}"])
    assert [it.session_folder for it in contexts(nameless, context, ("A", "B")).values()] == ["session", "session-B"]
    assert session_folders(nameless, ("A", "B")) == ["session", "session-B"]
    assert session_folders(named, ("A", "B")) == ["session"]


async def test_sessions_share_home_and_working_folder(spec_of: Any, context: AgentContext):
    """Name, folder and environment are the session's own; a second process of a session has the same."""
    spec = spec_of(PRINTS, command=["{python}", "{here}/agent.py", "{message}"], env={"FOLDER": "{session_dir}"})
    async with open_sessions(spec, contexts(spec, context, ("A", "B"))) as sessions:
        said = {it.name: (await it.say("hello", first=True)).answer.split() for it in sessions}
        beside = sessions[1].beside()
        assert beside is not None and beside.name == "B"
        again = (await beside.say("hello", first=False)).answer.split()
    shared = [str(context.home), str(context.cwd)]
    assert said["A"] == ["hello", str(context.session_dir), *shared]
    other = replace(context, session_folder="session-B")
    assert said["B"] == again == ["hello", str(other.session_dir), *shared]


COUNTS = """
import asyncio
import os
CALLS = []

def call(message, *, session_dir, llm_url, key):
    CALLS.append(message)
    return f"{os.getpid()} {len(CALLS)} {os.path.basename(session_dir)}"
"""


@pytest.mark.parametrize("at_once", [False, True])
async def test_sessions_of_a_function_share_a_process_unless_they_overlap(
    spec_of: Any, context: AgentContext, at_once: bool
):
    """As in a service: what one call leaves in a global variable is there for the next one, of any session."""
    spec = spec_of(COUNTS, callable="agent.py:call")
    async with open_sessions(spec, contexts(spec, context, ("A", "B")), at_once=at_once) as (a, b):
        said = [(await it.say("hello", first=True)).answer.split() for it in (a, b, a)]
        pids = {it.leader.pid for it in (a, b) if it.leader is not None}
        await b.end_turn()
    assert [words[2] for words in said] == ["session", "session-B", "session"]
    assert [words[1] for words in said] == (["1", "1", "2"] if at_once else ["1", "2", "3"])
    assert {int(words[0]) for words in said} == pids and len(pids) == 1 + at_once


async def test_a_process_of_two_sessions_that_is_killed_is_started_again_for_both(spec_of: Any, context: AgentContext):
    """Whichever of them speaks next."""
    spec = spec_of(COUNTS, callable="agent.py:call")
    async with open_sessions(spec, contexts(spec, context, ("A", "B")), at_once=False) as (a, b):
        first = (await a.say("hello", first=True)).answer.split()
        assert (await b.say("hello", first=True)).answer.split()[0] == first[0]
        b.signalled(DeliveredSignal(signal.SIGKILL, 0.0))
        os.kill(int(first[0]), signal.SIGKILL)
        again = [(await it.say("hello", first=False)).answer.split() for it in (a, b)]
    assert [words[1] for words in again] == ["1", "2"] and again[0][0] == again[1][0] != first[0]


SERVICE = """
import http.server, json, os, sys

class Service(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply("ready")

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.reply(f"{os.getpid()} {asked['session']} {asked['text']}")

    def reply(self, text):
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service).serve_forever()
"""


async def test_sessions_of_a_service_are_requests_to_one_process(spec_of: Any, context: AgentContext):
    """Each with its own name; they may be asked at the same time."""
    http = {"start": ["{python}", "{here}/agent.py", "{port}"], "url": "/"}
    spec = spec_of(SERVICE, http={**http, "body": {"session": "{session}", "text": "{message}"}})
    async with open_sessions(spec, contexts(spec, context, ("A", "B"))) as sessions:
        outcomes = await asyncio.gather(*(it.say(f"to {it.name}", first=True) for it in sessions))
    said = [it.answer.split(" ", 1) for it in outcomes]
    assert [words[1] for words in said] == ["s1 to A", "s1B to B"] and said[0][0] == said[1][0]
