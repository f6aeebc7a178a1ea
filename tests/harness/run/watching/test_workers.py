"""Which process is an agent's worker: real processes, with connections that the test makes up."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack

import psutil
import pytest

from wedgehog.harness.run.watching.workers import subagents_below, workers_below
from wedgehog.harness.sandbox.process_info import Peer

STARTS = "import subprocess, sys; it = subprocess.Popen({below!r}, **{how}); print(it.pid, flush=True); it.wait()"
SLEEPS = ["sleep", "60"]
PIPED = {"stdout": subprocess.PIPE}


@pytest.fixture
def started() -> Iterator[Callable[..., tuple[int, int]]]:
    """Starts a program that starts another one; the pids of both."""
    with ExitStack() as ends:

        def start(below: Sequence[str] = SLEEPS, **how: int) -> tuple[int, int]:
            code = STARTS.format(below=list(below), how=how)
            top = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE, text=True)
            ends.callback(_end, top)
            assert top.stdout is not None
            return top.pid, int(top.stdout.readline())

        yield start


def _end(top: "subprocess.Popen[str]") -> None:
    for process in (*psutil.Process(top.pid).children(recursive=True), top):
        process.kill()
    top.communicate()


def asking(*pids: int, link: str = "llm") -> Callable[[Iterable[psutil.Process]], list[Peer]]:
    """These processes have a connection to a link."""
    return lambda found: [Peer(it.pid, link, "", "", "ESTABLISHED") for it in found if it.pid in pids]


def pids(found: Iterable[psutil.Process]) -> list[int]:
    return [process.pid for process in found]


def test_a_process_whose_output_the_agent_reads_and_that_asks_the_model_is_its_worker(
    started: Callable[..., tuple[int, int]],
):
    """A connection to anything else says nothing."""
    agent, below = started(**PIPED)
    assert pids(workers_below(agent, asking(below))) == [below]
    assert pids(workers_below(agent, asking(below, link="tool:mcp"))) == []
    assert pids(workers_below(agent, asking())) == []


def test_a_worker_is_known_while_the_session_is_idle(started: Callable[..., tuple[int, int]]):
    """It has asked before; one that has ended is none."""
    agent, below = started(**PIPED)
    worker = psutil.Process(below)
    assert pids(workers_below(agent, asking(), asked=[worker])) == [below]
    worker.kill()
    psutil.wait_procs([worker])
    assert pids(workers_below(agent, asking(), asked=[worker])) == []


def test_a_launcher_and_its_program_are_one_agent(started: Callable[..., tuple[int, int]]):
    """The program writes where the launcher would."""
    launcher, program = started()
    assert pids(workers_below(launcher, asking(program))) == []


def test_an_agent_that_asks_the_model_itself_has_no_worker(started: Callable[..., tuple[int, int]]):
    """A tool that asks a model of its own is none."""
    agent, tool = started(**PIPED)
    assert pids(workers_below(agent, asking(agent, tool))) == []


def test_a_worker_is_all_that_the_agent_started_for_it(started: Callable[..., tuple[int, int]]):
    """A launcher of the worker too, though only its program has the connection."""
    agent, launcher = started([sys.executable, "-S", "-c", STARTS.format(below=SLEEPS, how={})], **PIPED)
    program = _child_of(launcher)
    assert pids(workers_below(agent, asking(program))) == [launcher, program]


def test_while_a_tool_runs_its_worker_is_found_without_a_connection(started: Callable[..., tuple[int, int]]):
    """A shell right below the agent is a tool of the agent's own."""
    agent, worker = started([sys.executable, "-S", "-c", STARTS.format(below=SLEEPS, how={})], **PIPED)
    shell = psutil.Process(_child_of(worker))
    assert pids(workers_below(agent, asking(), shell)) == [worker, shell.pid]
    assert pids(workers_below(worker, asking(), shell)) == []
    alone, piped = started(**PIPED)
    assert pids(workers_below(alone, asking(), psutil.Process(piped))) == []


def test_an_agent_that_has_ended_has_no_worker(started: Callable[..., tuple[int, int]]):
    """Its pid says nothing."""
    agent, _ = started(**PIPED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psutil, "Process", _no_such_process)
        assert pids(workers_below(agent, asking())) == []


def _no_such_process(pid: int) -> psutil.Process:
    raise psutil.NoSuchProcess(pid)


def _child_of(pid: int) -> int:
    """The child of a process, which may not have been started yet."""
    while True:
        for child in psutil.Process(pid).children():
            return int(child.pid)


def test_a_process_that_asks_beside_its_agent_is_a_subagents(started: Callable[..., tuple[int, int]]):
    """The agent reads what it writes; a launcher does not. What it has started lives on."""
    agent, below = started(**PIPED)
    assert pids(subagents_below(agent, asking(agent, below))) == [below]
    assert pids(subagents_below(agent, asking(agent))) == []
    launcher, program = started()
    assert pids(subagents_below(launcher, asking(program))) == []
