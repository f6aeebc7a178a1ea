"""A command line per message: when the turn ends, its output, how it is stopped, and which processes remain."""

import asyncio
import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.sandbox.cleanup import carrying
from wedgehog.harness.sandbox.owned import Tree

ECHO = """
    import sys
    print("said", *sys.argv[1:])
    print("log", file=sys.stderr)
"""

SLEEPER = """
    import os, pathlib, sys, time
    try:
        pathlib.Path("up").write_text(str(os.getpid()))
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.exit(130)
"""

IGNORES_SIGINT = """
    import os, pathlib, signal, subprocess, sys, time
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tool = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    pathlib.Path("tool").write_text(str(tool.pid))
    pathlib.Path("up").write_text(str(os.getpid()))
    time.sleep(60)
"""


async def until(file: Path) -> str:
    """The content of a file that the agent writes when it is ready."""
    async with asyncio.timeout(15):
        while not file.exists() or not file.read_text():
            await asyncio.sleep(0.01)
    return file.read_text()


async def until_gone(mark: str) -> list[psutil.Process]:
    """The processes that still have `mark` after a bounded wait."""
    for _ in range(100):
        if not carrying(mark):
            return []
        await asyncio.sleep(0.05)
    return carrying(mark)


async def test_the_answer_is_what_it_prints_and_the_error_what_it_logs(spec_of, context):
    """Exit code, both streams, and how it ended."""
    async with open_agent(spec_of(ECHO), context) as session:
        outcome = await session.say("{home} $HOME", first=True)
    assert (outcome.answer, outcome.error, outcome.exit_code) == ("said {home} $HOME\n", "log\n", 0)
    assert (outcome.ended, outcome.raised, outcome.status) == ("by itself", None, None)
    log = context.log.read_text()
    assert "said {home}" in log and "log\n" in log


@pytest.mark.parametrize(
    ("before_s", "after_s", "answer", "least_s", "most_s"),
    [(3.0, 0.0, "stdout", 0.0, 3.0), (0.0, 0.3, "jsonl:said", 0.3, 30.0), (0.0, 0.0, "file:answer", None, None)],
)
async def test_the_time_after_the_answer_begins_when_it_is_out(
    spec_of, context, before_s, after_s, answer, least_s, most_s
):
    """Not when the program has it. An answer in a file has no known time."""
    code = f"""
        import pathlib, sys, time
        time.sleep({before_s})
        pathlib.Path("answer").write_text("yes")
        print('{{"said": "yes"}}', flush=True)
        time.sleep({after_s})
        print("bye", file=sys.stderr)
    """
    async with open_agent(spec_of(code, answer=answer), context) as session:
        took_s = (await session.say("go", first=True)).after_answer_s
    assert took_s is None if least_s is None else least_s <= took_s < most_s


async def test_the_first_message_the_next_ones_and_a_wake_up_have_their_own_command_lines(spec_of, context):
    """`resume` replaces `command` from the second message on; `wake_up` runs for wake-ups."""
    line = ["{python}", "{here}/agent.py"]
    spec = spec_of(ECHO, command=[*line, "first"], resume=[*line, "next", "{message}"], wake_up=[*line, "tick"])
    async with open_agent(spec, context) as session:
        said = [
            (await session.say("a", first=True)).answer,
            (await session.say("b", first=False)).answer,
            (await session.say("c", kind="wake_up", first=False)).answer,
            (await session.say("d", kind="resume", first=False)).answer,
        ]
    assert said == ["said first\n", "said next b\n", "said tick\n", "said next d\n"]


async def test_without_resume_the_command_is_used_again_and_without_wake_up_it_is_refused(spec_of, context):
    """The runner skips such scenarios; a request for it is an error."""
    async with open_agent(spec_of(ECHO), context) as session:
        assert (await session.say("b", first=False)).answer == "said b\n"
        with pytest.raises(AgentError, match="no wake_up"):
            await session.say("c", kind="wake_up", first=False)


async def test_an_answer_in_json_and_an_error_in_json_are_read_apart(spec_of, context):
    """`json:` reads stdout, and for errors also stderr."""
    code = """
        import sys
        print('{"answer": "fine"}')
        print('{"error": {"message": "bad"}}', file=sys.stderr)
    """
    async with open_agent(spec_of(code, answer="json:answer", error="json:error.message"), context) as session:
        outcome = await session.say("x", first=True)
    assert (outcome.answer, outcome.error) == ("fine", "bad")


async def test_an_answer_file_counts_only_if_this_turn_wrote_it(spec_of, context):
    """The file of an earlier turn is no answer to this one."""
    code = """
        import pathlib, sys
        if sys.argv[1] == "write": pathlib.Path("out.txt").write_text("the answer")
    """
    async with open_agent(spec_of(code, answer="file:{cwd}/out.txt"), context) as session:
        first, second = [(await session.say(text, first=True)).answer for text in ("write", "do not")]
    assert (first, second) == ("the answer", "")


async def test_of_endless_output_a_beginning_and_the_last_megabyte_are_kept_and_the_log_has_all(spec_of, context):
    """Memory is bounded, the log is not."""
    async with open_agent(spec_of("print('x' * 3_000_000)\nprint('the end')"), context) as session:
        outcome = await session.say("x", first=True)
    assert outcome.stdout.endswith("the end\n")
    assert 1_000_000 <= len(outcome.stdout) < 1_300_000
    assert context.log.stat().st_size > 3_000_000


async def test_a_grandchild_that_holds_stdout_does_not_hold_the_turn(spec_of, context):
    """The leader's exit ends the turn after a short wait; its output is complete."""
    code = """
        import subprocess, sys
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        print("done", flush=True)
    """
    async with open_agent(spec_of(code), context) as session:
        async with asyncio.timeout(20):
            outcome = await session.say("x", first=True)
        assert outcome.answer == "done\n"
        assert len(carrying(context.run_id)) == 1, "a background tool runs until the end of the run"
    assert await until_gone(context.run_id) == []


async def test_nothing_outlives_the_run(spec_of, context):
    """No child, no tool with its own session, no double-forked daemon, none with a cleaned environment.

    Another run that has started nothing yet is not in the way.
    """
    other = Tree(f"{context.run_id}-other/1")
    code = """
        import os, subprocess, sys, time
        code = "import os,sys,time; open(sys.argv[1],'w').write(str(os.getpid())); time.sleep(60)"
        sleep = [sys.executable, "-c", code]
        subprocess.Popen([*sleep, "child"])
        subprocess.Popen([*sleep, "own-session"], start_new_session=True)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execv(sleep[0], [*sleep, "daemon"])
            os._exit(0)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execve(sleep[0], [*sleep, "washed"], {})
            os._exit(0)
        names = ("child", "own-session", "daemon", "washed")
        while not all(os.path.exists(name) and os.path.getsize(name) for name in names): time.sleep(0.01)
    """
    async with open_agent(spec_of(code), context) as session:
        await session.say("x", first=True)
        pids = {name: int((context.cwd / name).read_text()) for name in ("child", "own-session", "daemon", "washed")}
        assert all(psutil.pid_exists(pid) for pid in pids.values())
    assert {name: pid for name, pid in pids.items() if psutil.pid_exists(pid)} == {}
    await other.end()


async def test_a_child_of_ours_that_is_none_of_the_agents_is_left_alone(spec_of, context):
    """Neither another run's process nor a process of ours without a mark."""
    env = {**os.environ, "WEDGEHOG_RUN": context.run_id + "0/agent"}
    other = await asyncio.create_subprocess_exec("sleep", "60", env=env, start_new_session=True)
    before = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    during = None
    try:
        async with open_agent(spec_of(ECHO), context) as session:
            during = await asyncio.create_subprocess_exec("sleep", "60")
            await session.say("x", first=True)
        assert [process.returncode for process in (other, before, during)] == [None, None, None]
    finally:
        for process in (other, before, during):
            if process:
                process.kill()
                await process.wait()


async def test_an_abort_is_a_ctrl_c_to_the_whole_group(spec_of, context):
    """Leader and tool get SIGINT, as from a terminal; the leader's output is kept."""
    code = """
        import pathlib, subprocess, sys, time
        tool = "import pathlib,time,signal\\n" \\
               "def heard(*_): pathlib.Path('heard').write_text('yes'); raise SystemExit\\n" \\
               "signal.signal(signal.SIGINT, heard)\\n" \\
               "pathlib.Path('up').write_text('1')\\n" \\
               "time.sleep(60)"
        child = subprocess.Popen([sys.executable, "-c", tool])
        try:
            pathlib.Path("ready").write_text("1")
            child.wait()
        except KeyboardInterrupt:
            child.wait()
            print("stopped")
            sys.exit(130)
    """
    async with open_agent(spec_of(code), context) as session:
        turn = asyncio.create_task(session.say("x", first=True))
        await until(context.cwd / "up")
        await until(context.cwd / "ready")
        await session.abort()
        outcome = await turn
        assert (outcome.answer, outcome.exit_code, outcome.ended) == ("stopped\n", 130, "aborted")
        assert (context.cwd / "heard").read_text() == "yes"


async def test_the_abort_signal_is_the_specs(spec_of, context):
    """An agent that its user stops with SIGTERM."""
    async with open_agent(spec_of(SLEEPER, abort="SIGTERM"), context) as session:
        turn = asyncio.create_task(session.say("x", first=True))
        await until(context.cwd / "up")
        await session.abort()
        assert (await turn).exit_code == -signal.SIGTERM


async def test_at_the_deadline_an_agent_may_end_at_sigint(spec_of, context):
    """Its own exit code and output are kept."""
    async with open_agent(spec_of(SLEEPER), context) as session:
        turn = asyncio.create_task(session.say("x", first=True))
        await until(context.cwd / "up")
        await session.end_turn()
        outcome = await turn
    assert (outcome.exit_code, outcome.answer, outcome.ended) == (130, "interrupted\n", "deadline")


async def test_an_agent_gets_ctrl_c_although_we_were_started_to_ignore_it(spec_of, context):
    """In the background or under nohup, children would inherit that."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        async with open_agent(spec_of(SLEEPER), context) as session:
            turn = asyncio.create_task(session.say("x", first=True))
            await until(context.cwd / "up")
            await session.end_turn(grace_s=3)
            assert (await turn).exit_code == 130
    finally:
        signal.signal(signal.SIGINT, before)


async def test_at_the_deadline_an_agent_that_ignores_sigint_is_killed_with_its_tree(spec_of, context):
    """After the grace period, SIGKILL, also for a tool in its own session."""
    async with open_agent(spec_of(IGNORES_SIGINT), context) as session:
        turn = asyncio.create_task(session.say("x", first=True))
        await until(context.cwd / "up")
        await session.end_turn(grace_s=0.2)
        outcome = await turn
        assert (outcome.exit_code, outcome.ended) == (-signal.SIGKILL, "deadline")
        assert await until_gone(context.run_id) == []


async def test_stopping_a_turn_that_is_over_changes_nothing(spec_of, context):
    """A late abort is no error, and does not affect a later turn."""
    async with open_agent(spec_of(ECHO), context) as session:
        await session.abort()
        await session.say("x", first=True)
        await session.abort()
        await session.end_turn()
        await session.give_up()
        assert (await session.say("y", first=False)).ended == "by itself"


async def test_a_cancelled_turn_leaves_nothing(spec_of, context):
    """At once, not only at the end of the run."""
    async with open_agent(spec_of(IGNORES_SIGINT), context) as session:
        turn = asyncio.create_task(session.say("x", first=True))
        await until(context.cwd / "up")
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert await until_gone(context.run_id) == []


async def test_an_error_in_the_run_ends_the_agent_too(spec_of, context):
    """However the run ends."""
    with pytest.raises(ZeroDivisionError):
        async with open_agent(spec_of(SLEEPER), context) as session:
            turn = asyncio.create_task(session.say("x", first=True))
            await until(context.cwd / "up")
            raise ZeroDivisionError
    assert await until_gone(context.run_id) == []
    assert (await turn).exit_code == -signal.SIGKILL


async def test_a_program_that_does_not_exist_is_reported_in_one_line(spec_of, context):
    """No traceback: the spec's file and the program's name."""
    async with open_agent(spec_of(command=["no-such-agent"]), context) as session:
        with pytest.raises(AgentError, match=r"agent.yaml: cannot start 'no-such-agent': No such file"):
            await session.say("x", first=True)


async def test_a_message_that_no_command_line_can_hold_is_an_error(spec_of, context):
    """A NUL byte ends arguments."""
    async with open_agent(spec_of(ECHO), context) as session:
        with pytest.raises(AgentError, match="embedded null byte"):
            await session.say("a\0b", first=True)


async def test_what_really_runs_is_known(spec_of, context):
    """Command line, real program, the script's hash, the pid of the latest turn."""
    async with open_agent(spec_of("import os; print(os.getpid())"), context) as session:
        assert session.started.pid is None
        outcome = await session.say("x", first=True)
        started = session.started
    assert started.pid == int(outcome.answer)
    assert started.entry and started.entry.endswith("agent.py")
    assert started.entry_hash and len(started.entry_hash) == 64
    assert Path(started.executable).resolve() == Path(started.executable)
    json.dumps(started.argv)


WAITS_FOR_STDIN = """
    import os, select, sys
    ready, _, _ = select.select([0], [], [], 0)
    print("the end" if ready and not os.read(0, 1) else "an agent that reads it would wait")
"""


@pytest.mark.parametrize(
    ("keys", "found"), [({}, "the end"), ({"stdin": "open"}, "an agent that reads it would wait")], ids=["none", "open"]
)
async def test_an_open_stdin_never_comes_to_its_end(spec_of, context, keys, found):
    """Only then does an agent hang that reads its stdin although it has its message."""
    async with open_agent(spec_of(WAITS_FOR_STDIN, **keys), context) as session:
        assert (await session.say("hello", first=True)).answer.strip() == found


async def test_the_model_that_its_user_chooses_is_in_the_command_line(spec_of, context):
    """The first of the spec until another one is chosen; a turn that says nothing of it leaves the choice."""
    spec = spec_of(ECHO, command=["{python}", "{here}/agent.py", "{model}", "{message}"], models=["one", "two"])
    async with open_agent(spec, context) as session:
        said = []
        for choice in (None, "second", None, "first"):
            session.choose(choice)
            said.append((await session.say("hi", first=not said)).answer.split()[1])
    assert said == ["one", "two", "two", "one"]
