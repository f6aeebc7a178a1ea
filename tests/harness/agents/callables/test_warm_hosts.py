"""The processes of a callable are forked from one that has imported its SDK, and are what started ones are."""

import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from wedgehog.harness.agents.base import Outcome
from wedgehog.harness.agents.callables.first_imports import first_imports
from wedgehog.harness.agents.callables.warm_hosts import OFF, WarmHosts
from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.cleanup import FORKS, RUN_VARIABLE, carrying, mark_of
from wedgehog.harness.sandbox.run_queue import RunQueue

AGENT = """
    '''Says how it is.'''
    from __future__ import annotations
    import json, os, sys
    import httpx
    from httpx import state

    def answer(message, *, session_dir, key):
        if message == "end":
            os._exit(4)
        state.append(message)
        has = {name: os.environ.get(name) for name in ("HOME", "TMPDIR", "KEY", "SAME", "WEDGEHOG_RUN")}
        print("printed", message)
        print("wrong", message, file=sys.stderr)
        group = os.getpgid(0) == os.getsid(0) == os.getpid()
        said = {"has": has, "cwd": os.getcwd(), "state": state, "parent": os.getppid(), "group": group}
        return json.dumps({**said, "argv": sys.argv[2:], "imported": os.path.basename(httpx.__file__)})
"""
SDK = "import os\nstate = []\nwith open(os.path.dirname(__file__) + '/imports', 'a') as file:\n    file.write('x')\n"


@pytest.fixture
async def warm(context: AgentContext) -> AsyncIterator[WarmHosts]:
    """The hosts of a campaign with the mark of the context."""
    async with WarmHosts(context.run_id.partition("/")[0]) as hosts:
        yield hosts


def sdk_agent(spec_of: Callable[..., AgentSpec], folder: Path, *more: str, agent: str = AGENT, **env: str) -> AgentSpec:
    """An agent with a package `httpx` that counts its imports and has these lines more."""
    (folder / "lib").mkdir()
    (folder / "lib/httpx.py").write_text("\n".join([SDK, *map(dedent, more)]))
    fixed = {"PYTHONPATH": "{here}/lib", "SAME": "1", "KEY": "{key}"} | env
    return spec_of(agent, callable="agent:answer", env=fixed)


def imports(folder: Path) -> int:
    """How often the package was imported."""
    return len((folder / "lib/imports").read_text())


async def said(spec: AgentSpec, context: AgentContext, warm: WarmHosts, run: str, *texts: str) -> list[Outcome]:
    """What one run of the agent says."""
    context = replace(
        context, folder=context.folder / run, key=f"key-{run}", run_id=f"{context.run_id}{run}", warm=warm
    )
    async with open_agent(spec, context) as session:
        return [await session.say(text, first=not number) for number, text in enumerate(texts)]


async def test_each_fork_is_like_a_started_process(
    spec_of: Callable[..., AgentSpec],
    context: AgentContext,
    warm: WarmHosts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Folders, environment, output, group, parent and modules are its own; the package is imported once for all."""
    spec = sdk_agent(spec_of, tmp_path)
    forked = [(await said(spec, context, warm, run, "a", "b"))[-1] for run in ("1", "2")]
    assert imports(tmp_path) == 1
    monkeypatch.setenv(OFF, "no")
    started = [(await said(spec, context, warm, run, "a", "b"))[-1] for run in ("1", "2")]
    assert imports(tmp_path) == 3
    for one, other in zip(forked, started, strict=True):
        assert (one.answer, one.stdout, one.stderr, one.error) == (other.answer, other.stdout, other.stderr, "")
    assert f'"parent": {os.getpid()}, "group": true' in forked[0].answer and '"state": ["a", "b"]' in forked[1].answer
    assert f'"KEY": "key-2", "SAME": "1", "{RUN_VARIABLE}": "{context.run_id}2/agent"' in forked[1].answer


@pytest.mark.parametrize(
    "line",
    [
        "print('hello')",
        "raise ValueError",
        "os.environ['HOME']",
        "os.environ.copy()",
        "os.environ.get('KEY')",
        "held = open(__file__)",
        "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
        "os._exit(3)",
    ],
)
async def test_an_import_that_does_more_is_made_by_each_run(
    spec_of: Callable[..., AgentSpec], context: AgentContext, warm: WarmHosts, tmp_path: Path, line: str
) -> None:
    """One that prints, raises, ends the process, holds a file, begins a thread, or reads what differs by run."""
    spec = sdk_agent(spec_of, tmp_path, line)
    for number in (1, 2):
        (outcome,) = await said(spec, context, warm, str(number), "a")
        assert imports(tmp_path) == 1 + number
        assert ("hello" in outcome.stdout, outcome.raised or "", outcome.answer == "") == (
            line.startswith("print"),
            "ValueError" if "raise" in line else "the process ended with exit code 3" if "_exit" in line else "",
            "raise" in line or "_exit" in line,
        )


@pytest.mark.parametrize("env", [{"PYTHONHASHSEED": "{time_scale}"}, {"LD_X": "{home}"}])
async def test_what_is_read_before_the_imports_must_be_the_same_in_each_run(
    spec_of: Callable[..., AgentSpec], context: AgentContext, warm: WarmHosts, tmp_path: Path, env: dict[str, str]
) -> None:
    """A value that a template fills is another one in each run."""
    spec = sdk_agent(spec_of, tmp_path, **env)
    for number in (1, 2):
        await said(spec, context, warm, str(number), "a")
        assert imports(tmp_path) == number


async def test_an_edited_agent_imports_what_it_imports_now(
    spec_of: Callable[..., AgentSpec], context: AgentContext, warm: WarmHosts, tmp_path: Path
) -> None:
    """What stands before the import is executed before it."""
    spec = sdk_agent(spec_of, tmp_path, "late = os.environ.get('X')")
    await said(spec, context, warm, "1", "a")
    first = "import os; os.environ['X'] = '1'\n"
    (tmp_path / "agent.py").write_text(first + dedent(AGENT.replace("from __future__ import annotations", "")))
    await said(spec, context, warm, "2", "a")
    assert imports(tmp_path) == 2


async def test_its_end_and_a_signal_are_seen(
    spec_of: Callable[..., AgentSpec], context: AgentContext, warm: WarmHosts, tmp_path: Path
) -> None:
    """The exit code is that of the fork, and the next message gets a new one; none is left."""
    spec, context = sdk_agent(spec_of, tmp_path), replace(context, warm=warm)
    async with open_agent(spec, context) as session:
        ended = await session.say("end", first=True)
        assert ended.raised == "the process ended with exit code 4"
        await session.say("a", first=False)
        assert session.leader is not None and session.started.pid == session.leader.pid
        process = psutil.Process(session.leader.pid)
        assert process.environ()["HOME"] == str(context.home) and mark_of(process) == f"{context.run_id}/agent"
        os.kill(process.pid, signal.SIGKILL)
        assert await session.leader.ended() == -signal.SIGKILL
        assert (await session.say("b", first=False)).answer
        last = session.leader.pid if session.leader else 0
    assert not psutil.pid_exists(last) and imports(tmp_path) == 1


async def test_a_host_that_has_ended_is_no_loss(
    spec_of: Callable[..., AgentSpec], context: AgentContext, warm: WarmHosts, tmp_path: Path
) -> None:
    """Then each run starts a process. The host counts for no run, and ends with the campaign."""
    spec, mark = sdk_agent(spec_of, tmp_path), context.run_id.partition("/")[0]
    await said(spec, context, warm, "1", "a")
    (host,) = carrying(mark)
    assert mark_of(host) == f"{mark}/{FORKS}" and RunQueue(mark).look() == {}
    host.kill()
    for number in (2, 3):
        (outcome,) = await said(spec, context, warm, str(number), "a")
        assert outcome.answer and imports(tmp_path) == number


async def test_the_hosts_end_with_the_campaign(
    spec_of: Callable[..., AgentSpec], context: AgentContext, tmp_path: Path
) -> None:
    """Also one that still imports."""
    spec, mark = sdk_agent(spec_of, tmp_path), context.run_id.partition("/")[0]
    async with AsyncExitStack() as stack:
        warm = await stack.enter_async_context(WarmHosts(mark))
        await said(spec, context, warm, "1", "a")
        assert carrying(mark)
    assert not carrying(mark)


async def test_asyncio_alone_learns_how_a_host_ended(
    spec_of: Callable[..., AgentSpec], context: AgentContext, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else it writes to the user's terminal that it does not know the process."""
    spec, mark = sdk_agent(spec_of, tmp_path), context.run_id.partition("/")[0]
    for number in range(12):
        async with WarmHosts(mark) as warm:
            await said(spec, context, warm, str(number), "a")
    assert imports(tmp_path) == 12 and caplog.records == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import json\nimport anthropic, httpx\nx = 1\nimport openai", ("import json", "import anthropic, httpx")),
        ("'doc'\nfrom __future__ import annotations\nfrom openai import A as B", ("from openai import A as B",)),
        ("import json, sqlite3", ()),
        ("import os\nos.environ['A'] = '1'\nimport openai", ()),
        ("import gevent\nimport openai", ()),
        ("import mine\nimport openai", ()),
        ("from . import mine\nimport openai", ()),
        ("import yaml\nimport openai", ()),
        ("try:\n    import openai\nexcept ImportError: pass", ()),
        ("import openai =", ()),
    ],
)
def test_the_first_imports_are_those_before_anything_else(tmp_path: Path, code: str, found: tuple[str, ...]) -> None:
    """Of the standard library and of well-known packages, unless the agent has a module of that name."""
    (tmp_path / "agent.py").write_text(code)
    (tmp_path / "yaml.py").touch()
    assert first_imports("agent:answer", str(tmp_path / "agent.py"), [tmp_path]) == found


@pytest.mark.parametrize(("init", "found"), [("", 1), ("'doc'", 1), ("import os", 0)])
def test_a_package_that_does_something_comes_first(tmp_path: Path, init: str, found: int) -> None:
    """It is executed before its module; a file that is named by its path has none."""
    (tmp_path / "app/agents").mkdir(parents=True)
    (tmp_path / "app/agents/mine.py").write_text("import openai")
    (tmp_path / "app/__init__.py").write_text(init)
    entry = str(tmp_path / "app/agents/mine.py")
    assert len(first_imports("app.agents.mine:answer", entry, [tmp_path])) == found
    assert len(first_imports(f"{entry}:answer", entry, [tmp_path])) == 1
