"""A Python function as the agent: in a process of its own, called once per message."""

import asyncio
import signal
from pathlib import Path

import psutil
import pytest

from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.callables.callable_host import STACK_BELOW
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.sandbox.cleanup import carrying

AGENT = """
    import asyncio, os, pathlib, subprocess, sys, time

    calls = []

    def plain(message, *, session_dir, llm_url, key):
        calls.append(message)
        print("printed", message)
        return f"{message} {len(calls)} {key} {llm_url} {os.path.basename(session_dir)}"

    def simple(question, key="none"):
        return f"{question} {key}"

    async def asynchronous(message, **given):
        await asyncio.sleep(0)
        return f"async {message}"

    def fails(message, **given):
        raise ValueError("no " + message)

    def wrong(message, **given):
        return {"a": 1}

    def dies(message, **given):
        if message == "die": os._exit(4)
        return "alive"

    def sleeps(message, **given):
        if message != "sleep": return "awake"
        pathlib.Path("up").write_text("1")
        time.sleep(60)

    async def sleeps_async(message, **given):
        if message != "sleep": return "awake"
        try:
            pathlib.Path("up").write_text("1")
            await asyncio.sleep(60)
        finally:
            pathlib.Path("cleaned").write_text("1")

    def stubborn(message, **given):
        if message != "sleep": return "awake"
        tool = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
        while True:
            try:
                pathlib.Path("up").write_text("1")
                time.sleep(60)
            except KeyboardInterrupt: pass

    class Agent:
        @staticmethod
        def method(message, **given):
            return "from a class"
"""


def named(spec_of, function: str, **keys):
    return spec_of(AGENT, callable=f"{{here}}/agent.py:{function}", **keys)


async def until(file: Path) -> str:
    async with asyncio.timeout(15):
        while not file.exists() or not file.read_text():
            await asyncio.sleep(0.01)
    return file.read_text()


async def test_the_answer_is_what_the_function_returns(spec_of, context):
    """One process for the whole run; its output is kept and does not disturb the replies."""
    async with open_agent(named(spec_of, "plain"), context) as session:
        first = await session.say("a", first=True)
        second = await session.say("ü\n{home}", first=False)
        pid = session.started.pid
    assert first.answer == "a 1 canary http://127.0.0.1:9 session"
    assert second.answer.startswith("ü\n{home} 2 ")
    assert (first.stdout, second.stdout, first.error, first.raised) == ("printed a\n", "printed ü\n{home}\n", "", None)
    assert not psutil.pid_exists(pid)


async def test_a_function_gets_what_it_takes(spec_of, context):
    """The message, by any name, and those of the other values that it has a parameter for."""
    async with open_agent(named(spec_of, "simple"), context) as session:
        assert (await session.say("x", first=True)).answer == "x canary"


async def test_an_async_function_is_awaited(spec_of, context):
    """On one event loop for the whole run."""
    async with open_agent(named(spec_of, "asynchronous"), context) as session:
        outcome = await session.say("x", first=True)
        assert (outcome.answer, outcome.after_answer_s) == ("async x", 0.0)
        assert (await session.say("y", first=False)).answer == "async y"


async def test_a_function_may_be_in_a_module_beside_the_spec_or_in_a_class(spec_of, context):
    """`module:Class.method`; the file and its hash are found before it runs."""
    async with open_agent(spec_of(AGENT, callable="agent:Agent.method"), context) as session:
        assert session.started.entry and session.started.entry.endswith("agent.py")
        assert session.started.entry_hash
        assert (await session.say("x", first=True)).answer == "from a class"


async def test_an_exception_is_reported_with_its_type_and_message(spec_of, context):
    """The traceback is on stderr; the next message works."""
    async with open_agent(named(spec_of, "fails"), context) as session:
        outcome = await session.say("luck", first=True)
        again = await session.say("more", first=False)
    assert (outcome.raised, outcome.answer, outcome.error) == ("ValueError: no luck", "", "ValueError: no luck")
    assert f"{STACK_BELOW}\nTraceback" in outcome.stderr and "luck" not in again.stderr
    assert again.raised == "ValueError: no more"


@pytest.mark.parametrize(
    ("function", "raised"),
    [("wrong", "TypeError: the callable returned dict, expected str"), ("missing", "AttributeError: module")],
)
async def test_a_missing_function_or_one_that_returns_no_text_is_reported(spec_of, context, function: str, raised: str):
    """As an exception of that turn, not as an answer."""
    async with open_agent(named(spec_of, function), context) as session:
        assert (await session.say("x", first=True)).raised.startswith(raised)


async def test_an_abort_is_a_keyboard_interrupt_in_the_call(spec_of, context):
    """Only in the call: the process answers the next message."""
    async with open_agent(named(spec_of, "sleeps"), context) as session:
        pid = session.started.pid
        turn = asyncio.create_task(session.say("sleep", first=True))
        await until(context.cwd / "up")
        await session.abort()
        outcome = await turn
        assert (outcome.raised, outcome.ended) == ("KeyboardInterrupt", "aborted")
        assert ((await session.say("x", first=False)).answer, session.started.pid) == ("awake", pid)


async def test_an_abort_cancels_an_async_call_which_may_clean_up(spec_of, context):
    """As asyncio does at Ctrl-C."""
    async with open_agent(named(spec_of, "sleeps_async"), context) as session:
        turn = asyncio.create_task(session.say("sleep", first=True))
        await until(context.cwd / "up")
        await session.abort()
        assert (await turn).raised == "KeyboardInterrupt"
        assert (context.cwd / "cleaned").exists()
        assert (await session.say("x", first=False)).answer == "awake"


async def test_at_the_deadline_a_call_that_ignores_ctrl_c_is_killed_with_its_tools(spec_of, context):
    """The next message gets a new process."""
    async with open_agent(named(spec_of, "stubborn"), context) as session:
        turn = asyncio.create_task(session.say("sleep", first=True))
        await until(context.cwd / "up")
        await session.end_turn(grace_s=0.2)
        outcome = await turn
        assert (outcome.ended, outcome.exit_code) == ("deadline", -signal.SIGKILL)
        assert carrying(context.run_id) == []
        assert (await session.say("x", first=False)).answer == "awake"


async def test_a_process_that_ends_in_the_call_is_reported_with_its_exit_code(spec_of, context):
    """The next message gets a new process."""
    async with open_agent(named(spec_of, "dies"), context) as session:
        outcome = await session.say("die", first=True)
        assert (outcome.raised, outcome.exit_code) == ("the process ended with exit code 4", 4)
        assert (await session.say("x", first=False)).answer == "alive"


async def test_a_cancelled_turn_leaves_nothing(spec_of, context):
    """The host and its tools are killed at once."""
    async with open_agent(named(spec_of, "stubborn"), context) as session:
        turn = asyncio.create_task(session.say("sleep", first=True))
        await until(context.cwd / "up")
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        async with asyncio.timeout(15):
            while carrying(context.run_id):
                await asyncio.sleep(0.02)
        assert (await session.say("x", first=False)).answer == "awake"


async def test_a_signal_between_messages_does_not_end_it(spec_of, context):
    """SIGINT only interrupts a call."""
    async with open_agent(named(spec_of, "plain"), context) as session:
        await session.say("a", first=True)
        psutil.Process(session.started.pid).send_signal(signal.SIGINT)
        assert (await session.say("b", first=False)).answer.startswith("b 2 ")


async def test_a_callable_has_no_wake_up(spec_of, context):
    """It has no process with a timer of its own between messages."""
    async with open_agent(named(spec_of, "plain"), context) as session:
        with pytest.raises(AgentError, match="no wake_up"):
            await session.say("x", kind="wake_up", first=True)


async def test_a_message_longer_than_a_pipe_holds_goes_through_both_ways(spec_of, context):
    """Several hundred KB, as in a long prompt."""
    async with open_agent(named(spec_of, "asynchronous"), context) as session:
        assert len((await session.say("x" * 500_000, first=True)).answer) == 500_006
