"""An agent that gets a signal to end: the turn's outcome, and the next message on the same session."""

import asyncio
import os
import signal
from typing import Any

import pytest

from wedgehog.harness.agents.base import DeliveredSignal, Session
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.sandbox.signals import deliver, tree

COMMAND = """
    import pathlib, signal, sys, time
    how = sys.argv[1].split()[-1]
    if how == "polite": signal.signal(signal.SIGTERM, lambda *_: (print("I was asked to end"), sys.exit(0)))
    if how == "deaf": signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pathlib.Path("up").write_text("1")
    time.sleep(1.5 if how == "deaf" else 30 if how != "fast" else 0)
    print("answer")
"""
SERVICE = """
    import json, os, pathlib, signal, subprocess, sys, threading, time
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Service(BaseHTTPRequestHandler):
        def log_message(self, *_): pass
        def say(self, text):
            body = json.dumps({"answer": text}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        def do_GET(self): self.say("ready")
        def do_POST(self):
            text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
            if "heir" in text:
                subprocess.Popen(["sleep", "30"], close_fds=False, pass_fds=[self.server.fileno()])
            if "slow" in text:
                pathlib.Path("up").write_text("1")
                time.sleep(1.5 if "deaf" in text else 30)
            self.say(f"{os.getpid()} says {text} on {self.server.server_port}")

    if pathlib.Path("broken").exists(): sys.exit("the session is broken")
    if "deaf" in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service)
    server.daemon_threads = True
    if "tidy" in sys.argv:
        def stop(*_):
            server.socket.close()
            time.sleep(2)
            os._exit(0)
        signal.signal(signal.SIGTERM, stop)
    if "patient" in sys.argv: signal.signal(signal.SIGTERM, lambda *_: threading.Timer(1.5, os._exit, [0]).start())
    server.serve_forever()
"""
HTTP = {
    "start": ["{python}", "{here}/agent.py", "{port}"],
    "url": "/message",
    "body": {"text": "{message}"},
    "answer": "json:answer",
}
CALLABLE = """
    import os, pathlib, time
    def call(message, *, session_dir, llm_url, key):
        pathlib.Path("up").write_text("1")
        time.sleep(30 if "slow" in message else 0)
        return f"{os.getpid()} says {message}"
"""


async def hit(session: Session, context: Any, number: signal.Signals, *, grace_s: float = 1.0) -> None:
    """Send one signal to its whole tree, once the agent works."""
    async with asyncio.timeout(30):
        while not (context.cwd / "up").exists():
            await asyncio.sleep(0.01)
    (context.cwd / "up").unlink()
    assert session.leader is not None
    leader = session.leader.pid
    assert deliver(lambda: tree(leader), number)
    session.signalled(DeliveredSignal(number, context.clock.now() + grace_s))


@pytest.mark.parametrize(
    ("how", "number", "grace_s", "ended", "code"),
    [
        ("slow", signal.SIGKILL, 20, "killed", -9),
        ("slow", signal.SIGTERM, 20, "killed", -15),
        ("polite", signal.SIGTERM, 20, "killed", 0),
        ("deaf", signal.SIGTERM, 0.1, "by itself", 0),
    ],
)
async def test_a_command_was_killed_if_it_ended_by_the_signal(
    spec_of: Any, context: Any, how: str, number: signal.Signals, grace_s: float, ended: str, code: int
):
    """An agent that handles it and ends soon counts too; an agent that goes on does not."""
    async with open_agent(spec_of(COMMAND), context) as session:
        saying = asyncio.create_task(session.say(how, first=True))
        await hit(session, context, number, grace_s=grace_s)
        outcome = await saying
        assert (outcome.ended, outcome.exit_code) == (ended, code)
        assert (await session.say("fast", first=False)).answer == "answer\n"


async def test_a_command_that_ended_in_the_same_moment_was_not_killed(spec_of: Any, context: Any):
    """The exit code shows it: SIGKILL always gives its own."""
    async with open_agent(spec_of(COMMAND), context) as session:
        saying = asyncio.create_task(session.say("fast", first=True))
        await asyncio.sleep(0)
        while session.leader is None and not saying.done():
            await asyncio.sleep(0.001)
        session.signalled(DeliveredSignal(signal.SIGKILL, context.clock.now() + 5))
        assert (await saying).ended == "by itself"


async def test_a_killed_service_is_started_again_for_the_next_message(spec_of: Any, context: Any):
    """Another process, the same address."""
    async with open_agent(spec_of(SERVICE, http=HTTP), context) as session:
        first = (await session.say("hello", first=True)).answer
        saying = asyncio.create_task(session.say("slow", first=False))
        await hit(session, context, signal.SIGKILL)
        outcome = await saying
        assert (outcome.ended, outcome.status) == ("killed", None)
        assert session.leader is None
        again = (await session.say("hello", first=False)).answer
        assert again.split()[0] != first.split()[0] and again.split()[-1] == first.split()[-1]


async def test_a_service_that_ended_in_its_time_is_started_again_however_late_the_next_message_is(
    spec_of: Any, context: Any
):
    """The time of its end counts, not the time of the check."""
    async with open_agent(spec_of(SERVICE, http=HTTP), context) as session:
        first = (await session.say("hello", first=True)).answer
        saying = asyncio.create_task(session.say("slow", first=False))
        await hit(session, context, signal.SIGTERM, grace_s=1.0)
        over_s = context.clock.now() + 1.0
        assert (await saying).ended == "killed"
        while context.clock.now() < over_s:
            await asyncio.sleep(0.01)
        again = await session.say("hello", first=False)
        assert again.answer and again.answer.split()[0] != first.split()[0], again.error


async def test_a_service_that_is_killed_between_messages_is_started_again_too(spec_of: Any, context: Any):
    """The user only notices the delay."""
    async with open_agent(spec_of(SERVICE, http=HTTP), context) as session:
        first = (await session.say("hello", first=True)).answer
        (context.cwd / "up").touch()
        await hit(session, context, signal.SIGKILL)
        assert (await session.say("hello", first=False)).answer.split()[0] != first.split()[0]


async def test_a_service_whose_port_an_orphan_holds_gets_another_one(spec_of: Any, context: Any):
    """A tool that inherited the listening socket lives on, as it would in reality."""
    async with open_agent(spec_of(SERVICE, http=HTTP), context) as session:
        first = (await session.say("heir", first=True)).answer
        saying = asyncio.create_task(session.say("slow", first=False))
        while not (context.cwd / "up").exists():
            await asyncio.sleep(0.01)
        assert session.leader is not None
        os.kill(session.leader.pid, signal.SIGKILL)
        session.signalled(DeliveredSignal(signal.SIGKILL, context.clock.now() + 1))
        assert (await saying).ended == "killed"
        again = await session.say("hello", first=False)
        assert again.answer.split()[-1] != first.split()[-1], again


async def test_a_service_that_cannot_start_again_is_the_turns_failure(spec_of: Any, context: Any):
    """Leftovers of the crash are the agent's problem; each message tries again."""
    async with open_agent(spec_of(SERVICE, http=HTTP, start_s=10), context) as session:
        saying = asyncio.create_task(session.say("slow", first=True))
        await hit(session, context, signal.SIGKILL)
        await saying
        (context.cwd / "broken").touch()
        outcome = await session.say("hello", first=False)
        assert outcome.ended == "by itself" and "the session is broken" in (outcome.raised or "")
        (context.cwd / "broken").unlink()
        assert "says hello" in (await session.say("hello", first=False)).answer


async def test_a_service_that_survives_a_signal_goes_on(spec_of: Any, context: Any):
    """A later crash is its own, and it is not started again."""
    deaf = {**HTTP, "start": [*HTTP["start"], "deaf"]}
    async with open_agent(spec_of(SERVICE, http=deaf), context) as session:
        saying = asyncio.create_task(session.say("slow deaf", first=True))
        await hit(session, context, signal.SIGTERM, grace_s=0.3)
        outcome = await saying
        assert (outcome.ended, outcome.status) == ("by itself", 200)
        assert (await session.say("hello", first=False)).status == 200
        assert session.leader is not None
        os.kill(session.leader.pid, signal.SIGKILL)
        await session.leader.ended()
        assert (await session.say("hello", first=False)).raised is not None


@pytest.mark.parametrize("how", ["tidy", "patient"])
async def test_a_service_that_takes_its_time_to_end_is_started_again(spec_of: Any, context: Any, how: str):
    """It ends well, later than its grace: it closes its port first, or answers until it ends."""
    slow = {**HTTP, "start": [*HTTP["start"], how]}
    async with open_agent(spec_of(SERVICE, http=slow), context) as session:
        first = (await session.say("hello", first=True)).answer
        saying = asyncio.create_task(session.say("slow", first=False))
        await hit(session, context, signal.SIGTERM, grace_s=0.3)
        assert (await saying).ended == "killed"
        again = await session.say("hello", first=False)
        assert again.answer and again.answer.split()[0] != first.split()[0], again.error


async def test_a_killed_callables_host_is_started_again(spec_of: Any, context: Any):
    """The running call counts as killed."""
    spec = spec_of(CALLABLE, callable="{here}/agent.py:call")
    async with open_agent(spec, context) as session:
        first = (await session.say("hello", first=True)).answer
        (context.cwd / "up").unlink()
        saying = asyncio.create_task(session.say("slow", first=False))
        await hit(session, context, signal.SIGKILL)
        outcome = await saying
        assert (outcome.ended, outcome.exit_code) == ("killed", -9)
        assert (await session.say("hello", first=False)).answer.split()[0] != first.split()[0]


async def test_a_second_message_runs_beside_the_first(spec_of: Any, context: Any):
    """A second process, a second request; a callable takes one call at a time."""
    async with open_agent(spec_of(COMMAND), context) as session:
        saying = asyncio.create_task(session.say("slow", first=True))
        twin = session.beside()
        assert twin is not None and (await twin.say("fast", first=False)).answer == "answer\n"
        assert not saying.done()
        await session.end_turn(0.1)
        assert (await saying).ended == "deadline"
    async with open_agent(spec_of(SERVICE, http=HTTP), context) as session:
        saying = asyncio.create_task(session.say("slow deaf", first=True))
        twin = session.beside()
        assert twin is not None and "says hello" in (await twin.say("hello", first=False)).answer
        assert not saying.done() and (await saying).status == 200
    async with open_agent(spec_of(CALLABLE, callable="{here}/agent.py:call"), context) as session:
        assert session.beside() is None


@pytest.mark.parametrize(
    ("number", "exit_code", "now_s", "ended"),
    [
        (signal.SIGINT, -2, 9.0, True),
        (signal.SIGINT, 0, 1.0, True),
        (signal.SIGINT, 0, 9.0, False),
        (signal.SIGTERM, -2, 9.0, False),
        (signal.SIGKILL, -9, 9.0, True),
        (signal.SIGKILL, 0, 1.0, False),
    ],
)
def test_an_end_belongs_to_a_signal_if_it_is_soon_or_by_that_signal(
    number: signal.Signals, exit_code: int, now_s: float, ended: bool
):
    """A service that finishes its turn before it obeys a Ctrl-C has not crashed: it is started again."""
    assert DeliveredSignal(number, until_s=2.0).ended(exit_code, now_s) == ended
