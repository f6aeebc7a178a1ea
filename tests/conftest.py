"""What all tests share: their order, their workers, and a process that forks commands."""

import contextlib
import gc
import json
import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import hypothesis
import psutil
import pytest
from xdist.remote import Producer
from xdist.workermanage import WorkerController

from tests.spread import Spread, give_way
from tests.whole_files import collect_late

PATIENCE_S = 600.0
"""So long a command may take that takes a minute on a quiet machine: an extra worker gets little of a busy one."""
LONGEST = (
    *("/live/pages/test_pages", "/live/test_planted_bugs", "/live/staying/test_staying"),
    *("/live/staying/test_sessions", "/commands/test_two_fault_bugs", "/live/chat/test_chat_scenarios"),
    *("/live/chat/test_gateway", "/live/chat/test_webhook", "/live/faults/test_links", "/live/chat/test_socket_mode"),
    *("/live/faults/test_timers", "/parity/test_exact", "/parity/worlds/", "/live/chat/test_chat"),
    *("/live/chat/test_many_chats", "/live/staying/test_driving", "/live/commands/test_killed_harness"),
    *("/parity/test_tool_host", "/parity/pipes/test_faults", "/docs/test_tools_page", "/live/provider/test_hosts"),
    *("/live/faults/test_kills", "/live/commands/test_run", "/commands/test_fuzz_in_virtual_time", "/live/"),
    *("/docs/test_tutorial", "/scenarios/", "/parity/", "/commands/test_given_faults", "/conformance/"),
    *("/commands/test_agents_check", "/sim/test_determinism", "/campaign/test_campaign", "/campaign/test_cluster"),
    *("/properties/", "/search/", "/sdk/", "/reports/test_page_in_browser", "/commands/test_cli"),
    *("/commands/test_pytest_plugin", "/docs/", "/sim/"),
)
"""Parts of paths; the first part that fits is a test's place in the order."""

TOOLS = (
    *("mcp.client.stdio", "mcp.server.lowlevel", "mcp.server.stdio", "uvicorn", "uvicorn.protocols.http.h11_impl"),
    *("uvicorn.lifespan.on", "uvicorn.loops.auto", "anyio._backends._asyncio", "httpcore2", "encodings.idna"),
    *("wedgehog.harness.faults", "wedgehog.harness.network.base"),
    *("wedgehog.harness.services.mcp.refused_calls", "wedgehog.harness.services.mcp.response_faults", "aiohttp"),
)
"""What tool servers, their clients and agents of tests import."""
SIMULATED = (
    "wedgehog.harness.run.plugins",
    "wedgehog.harness.run.runner",
    "wedgehog.harness.agents.callables.sim_callable",
)
"""What the process of the simulated runs imports."""
SHARED = pytest.StashKey[contextlib.ExitStack]()
PYTHONS = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    """An extra worker gives way to the others; so no example has a time limit.

    A shell lets its background jobs ignore SIGINT. The programs that tests start would inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # until all tests are collected: hardly anything of what is imported and collected is garbage
    give_way(getattr(config, "workerinput", {}).get("workerid", "gw0"))
    hypothesis.settings.register_profile("unhurried", deadline=None)
    hypothesis.settings.load_profile("unhurried")
    if getattr(config, "workerinput", {}).get("whole_files"):
        collect_late(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Spread | None:
    """With `--dist loadfile`, a file goes to a worker that suits it."""
    return Spread(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """All workers share the processes from which theirs are forked: importing takes seconds of each."""
    shared = config.stash[SHARED] = contextlib.ExitStack()
    folder = Path(shared.enter_context(tempfile.TemporaryDirectory(prefix="warm-")))
    config.stash[PYTHONS] = {name: shared.enter_context(python(folder / name)) for name, python in WARM.items()}


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """A worker is told of them, and whether it gets whole files."""
    node.workerinput["pythons"] = node.config.stash[PYTHONS]
    node.workerinput["whole_files"] = node.config.getoption("dist") == "loadfile"


def pytest_unconfigure(config: pytest.Config) -> None:
    """They end with the run."""
    config.stash.get(SHARED, contextlib.ExitStack()).close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest begin first, so that no worker waits for one that began last."""
    items.sort(key=_rank)


def pytest_collection_finish() -> None:
    """Thousands of collected tests are live for the whole session: the garbage collector need not walk them."""
    gc.freeze()
    gc.set_threshold(5_000, 20, 20)
    gc.enable()


def _rank(item: pytest.Item) -> int:
    path = item.path.as_posix()
    return next((number for number, part in enumerate(LONGEST) if part in path), len(LONGEST))


class Command:
    """A forked command that runs beside the test."""

    def __init__(self, pid: int, code: Path) -> None:
        self.pid, self._code = pid, code

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        return int(self._code.read_text()) if self._code.exists() else None

    def wait(self, within_s: float) -> int:
        """Its exit code. Errors: TimeoutExpired."""
        end = time.monotonic() + within_s
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("wedgehog", within_s)
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Leave it no time."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """`fork_server.py` and what it is asked for."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process, self._read = process, b""

    def run(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], timeout_s: float = PATIENCE_S
    ) -> "subprocess.CompletedProcess[str]":
        """Run `wedgehog WORDS` in a folder to its end. Errors: TimeoutExpired."""
        number = len(list(folder.glob(".command-*.out")))
        out, err = (folder / f".command-{number}.{name}" for name in ("out", "err"))
        pid, code = self._started(words, folder, environment, out=out, err=err), self._line(timeout_s)
        if not code:
            psutil.Process(pid).kill()
            self._line(None)
            raise subprocess.TimeoutExpired(["wedgehog", *words], timeout_s, out.read_text(), err.read_text())
        return subprocess.CompletedProcess(["wedgehog", *words], int(code), out.read_text(), err.read_text())

    def start(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], out: Path, err: Path
    ) -> Command:
        """Start `wedgehog WORDS` in a folder."""
        code = err.with_suffix(".code")
        err.touch()
        return Command(self._started(words, folder, environment, out=out, err=err, code=code), code)

    def _started(self, words: Sequence[str], folder: Path, environment: Mapping[str, str], **files: Path) -> int:
        told = {"words": list(words), "folder": str(folder), "environment": dict(environment)}
        assert self._process.stdin is not None
        line = json.dumps(told | {name: str(path) for name, path in files.items()})
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        return int(self._line(None))

    def _line(self, timeout_s: float | None) -> str:
        """The next line, which may have come with the one before it: a short command has ended by then."""
        assert self._process.stdout is not None
        while b"\n" not in self._read:
            if not select.select([self._process.stdout], [], [], timeout_s)[0]:
                return ""
            self._read += os.read(self._process.stdout.fileno(), 999) or b"\n"
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()


@pytest.fixture(scope="session", autouse=True)
def _savings() -> Iterator[None]:
    """No page has the drawings of matplotlib, which take a second and more of each; see `drawings`.

    Looks for connections are as rare as in `fork_server.py`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wedgehog.reports.page.latency_section.DRAWS", False)
        patch.setattr("wedgehog.harness.run.watching.connection_watch.LOOK_EVERY_S", 0.6)
        yield


@pytest.fixture(scope="module", autouse=True)
def _leaves_nothing_open() -> Iterator[None]:
    """What a file leaves open fails there, and not in whichever test of the worker Python finds the garbage."""
    yield
    gc.collect()
    gc.freeze()  # what is left are modules and what they hold: the next search need not walk them


@pytest.fixture
def drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages that this test writes in its own process have them."""
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("wedgehog.reports.page.latency_section.DRAWS", True)


@pytest.fixture(scope="session")
def simulating_python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A `python` for the process that plays simulated runs, forked from one that has imported what it needs."""
    with _warm_python("simulating", request.config, tmp_path_factory) as python:
        yield python


@pytest.fixture(scope="session")
def fork_server(simulating_python: str) -> Iterator[ForkServer]:
    """Runs `wedgehog …` in forked processes; so is the process that plays its simulated runs."""
    argv = [sys.executable, "-P", str(Path(__file__).with_name("fork_server.py")), simulating_python]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield ForkServer(process)


@pytest.fixture(scope="session")
def warm_python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A `python` for programs that use the `mcp` package; their processes are forked from one that has imported it."""
    pytest.importorskip("mcp")
    with _warm_python("tools", request.config, tmp_path_factory) as python:
        yield python


@contextlib.contextmanager
def _warm_python(name: str, config: pytest.Config, folders: pytest.TempPathFactory) -> Iterator[str]:
    """The one that all workers share, or one for this process alone where it is no worker."""
    if shared := getattr(config, "workerinput", {}).get("pythons"):
        yield shared[name]
    else:
        with WARM[name](folders.mktemp("warm")) as python:
            yield python


@contextlib.contextmanager
def warm(folder: Path, modules: Sequence[str], **environment: str) -> Iterator[str]:
    """A `python` whose processes are forked from one that imports the modules once."""
    if not hasattr(os, "pidfd_open"):
        yield sys.executable
        return
    folder.mkdir(exist_ok=True)
    here = Path(__file__).parent
    server = [sys.executable, "-P", str(here / "warm_python.py"), str(folder / "socket"), *modules]
    start = [sys.executable, "-S", "-I", str(here / "warm_start.py"), str(folder / "socket")]
    (folder / "python").write_text(f'#!/bin/sh\nexec {shlex.join(start)} "$@"\n')
    (folder / "python").chmod(0o700)
    env = {**os.environ, **environment}
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        yield str(folder / "python")


WARM = {"simulating": partial(warm, modules=SIMULATED, PYTHONHASHSEED="0"), "tools": partial(warm, modules=TOOLS)}


@pytest.fixture
def environment() -> dict[str, str]:
    """What the command gets: no colours, a wide terminal."""
    return {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}


@pytest.fixture
def wedgehog(
    tmp_path: Path, environment: dict[str, str], fork_server: ForkServer
) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs `wedgehog …` to its end."""

    def ran(*words: str, timeout: float = PATIENCE_S, **more: str) -> "subprocess.CompletedProcess[str]":
        return fork_server.run(words, tmp_path, {**environment, **more}, timeout)

    return ran
