"""A callable in a Python of the user's own, in which no package of ours is installed."""

import ast
import asyncio
import os
import signal
import sys
import venv
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.callables import callable_host, python_probe
from wedgehog.harness.agents.callables.callable_python import PythonError, check_pythons, python_of
from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.missing import what_is_missing
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.agents.simulated import why_not_simulated
from wedgehog.harness.agents.spec import AgentSpec, load_spec
from wedgehog.harness.commands.cli import app
from wedgehog.harness.scenario.document import BadFileError

AGENT = """
import http.client, sys
import only_there

def answer(message, **given):
    assert "wedgehog" not in sys.modules and not any("pydantic" in name for name in sys.modules)
    return f"{message} {only_there.WORD} {sys.prefix}"

async def later(message, **given):
    return answer(message)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with its own environment, `.venv`, in which alone the module `only_there` is installed."""
    folder = tmp_path_factory.mktemp("project")
    venv.create(folder / ".venv", symlinks=True)
    [packages] = (folder / ".venv").glob("lib/python3*/site-packages")
    (packages / "only_there.py").write_text("WORD = 'there'")
    (folder / "agent.py").write_text(AGENT)
    return folder


@pytest.fixture
def spec_of(project: Path, request: pytest.FixtureRequest) -> Any:
    """Writes and loads a spec in the project; `python` is on its fourth line."""

    def made(**words: Any) -> AgentSpec:
        path = project / "agent.yaml"
        words = {
            "name": "a",
            "wire": "openai-chat",
            "callable": "agent.py:answer",
            "python": ".venv/bin/python",
        } | words
        path.write_text(yaml.safe_dump({key: value for key, value in words.items() if value}, sort_keys=False))
        return load_spec(path)

    return made


@pytest.mark.parametrize("target", ["agent.py:answer", "agent:later"])
async def test_the_function_runs_in_the_environment_of_the_project(
    spec_of: Any, project: Path, context: AgentContext, target: str
):
    """A module of it is imported, and the standard library's `http` is not our file of that name."""
    async with open_agent(spec_of(callable=target), context) as session:
        outcome = await session.say("hello", first=True)
        started = session.started
    assert outcome.answer == f"hello there {project / '.venv'}", outcome.stderr
    assert (started.executable, started.entry) == (str(project / ".venv/bin/python"), str(project / "agent.py"))


def test_the_spec_is_complete_where_only_that_python_has_the_module(spec_of: Any):
    spec = spec_of(callable="only_there:answer")
    check_pythons([spec])
    assert what_is_missing(spec) == ""


def test_without_the_key_it_is_our_own_python(spec_of: Any):
    assert python_of(spec_of(python=None)) == sys.executable


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"python": ".venv/bin/gone"}, "4: python: there is no file HERE/.venv/bin/gone"),
        ({"python": "no-such-python"}, "4: python: there is no program 'no-such-python' in PATH"),
        ({"python": "./.venv"}, "4: python: HERE/.venv is a folder; expected the Python in it, such as"),
        ({"python": "./agent.py"}, "4: python: HERE/agent.py is not executable"),
        ({"python": "./broken"}, "4: python: HERE/broken is a link to gone, which does not exist"),
        ({"python": "./noise"}, "4: python: expected Python 3.9 or newer, and HERE/noise cannot be run: Exec format"),
        ({"python": "/bin/ls"}, "4: python: expected Python 3.9 or newer, and /bin/ls does not answer as a Python: "),
        (
            {"python": "/bin/true"},
            "4: python: expected Python 3.9 or newer, and /bin/true does not answer as a Python: ",
        ),
        ({"python": "./old"}, "4: python: expected Python 3.9 or newer, and HERE/old is 3.8"),
        ({"callable": "pydantic:main"}, "3: callable: there is no module 'pydantic' in HERE/.venv/bin/python"),
        ({"callable": "only_there.sub:f"}, "3: callable: there is no module 'only_there.sub' in HERE/.venv/bin/python"),
        (
            {"callable": "callable_host:load"},
            "3: callable: there is no module 'callable_host' in HERE/.venv/bin/python",
        ),
        ({"callable": "gone.py:f"}, "3: callable: there is no module 'HERE/gone.py' in HERE/.venv/bin/python"),
        (
            {"python": sys.executable},
            f"4: python: {sys.executable} has no module 'only_there', which HERE/agent.py:3 imports",
        ),
    ],
)
def test_a_python_that_cannot_run_it_is_one_line_before_anything_is_started(
    spec_of: Any, project: Path, words: dict[str, Any], says: str
):
    (project / "noise").write_bytes(b"\x7fELF nothing")
    (project / "old").write_text('#!/bin/sh\necho \'{"version": [3, 8], "path": [], "file": null, "missing": []}\'\n')
    for program in ("noise", "old"):
        (project / program).chmod(0o755)
    if not (project / "broken").is_symlink():
        (project / "broken").symlink_to("gone")
    with pytest.raises(PythonError) as wrong:
        check_pythons([spec_of(**words)])
    line = str(wrong.value).replace(str(project), "HERE")
    assert line.startswith(f"HERE/agent.yaml:{says}") and "\n" not in line


@pytest.mark.parametrize("command", [["agents", "check"], ["run", "--network", "embedded", "--agent"]])
def test_the_command_line_shows_only_that_line_and_exits_with_2(
    spec_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
):
    monkeypatch.chdir(tmp_path)
    path = spec_of(python=".venv/bin/gone").path
    done = CliRunner().invoke(app, [*command, str(path)])
    assert done.exit_code == 2 and "Traceback" not in done.output
    assert list(tmp_path.iterdir()) == [], "no run folder"
    assert done.output.replace("\n", "").endswith(f"{path}:4: python: there is no file {path.parent}/.venv/bin/gone")


async def test_a_python_that_is_gone_is_an_error_of_the_agent(spec_of: Any, context: AgentContext):
    with pytest.raises(AgentError, match="there is no file"):
        async with open_agent(spec_of(python="./gone/python"), context):
            pass


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nsys.path.insert(0, 'src')\nimport nowhere",
        "try:\n    import nowhere\nexcept ImportError:\n    nowhere = None",
        "from . import sibling",
        "this is no Python",
    ],
)
def test_an_import_that_may_succeed_or_is_caught_is_left_to_the_call(spec_of: Any, project: Path, text: str):
    name = f"agent_{abs(hash(text))}.py"
    (project / name).write_text(text)
    check_pythons([spec_of(callable=f"{name}:answer")])


def test_a_module_that_the_specs_own_path_may_have_is_left_to_the_call(spec_of: Any):
    check_pythons([spec_of(callable="elsewhere:answer", env={"PYTHONPATH": "/lib"})])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"callable": None, "command": ["{python}", "{message}"]}, "'python' goes with 'callable'"),
        ({"python": "{home}/bin/python"}, "expected the path of a Python, such as .venv/bin/python, found"),
    ],
)
def test_a_key_without_a_meaning_is_refused(spec_of: Any, words: dict[str, Any], says: str):
    with pytest.raises(BadFileError, match=r"agent\.yaml:\d: " + says):
        spec_of(**words)


def test_it_is_not_simulated(spec_of: Any):
    """In virtual time the function would run in our own Python."""
    assert why_not_simulated(spec_of()).startswith("its function runs in another Python (python): ")
    assert why_not_simulated(spec_of(python=None)) == ""


@pytest.mark.parametrize("program", [callable_host, python_probe])
def test_what_runs_there_needs_only_the_standard_library_of_python_3_9(program: Any):
    tree = ast.parse(Path(program.__file__).read_text(), feature_version=(3, 9))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT interrupts, also where the tests run in the background and it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_an_older_python_calls_an_async_function_on_one_loop_and_lets_it_clean_up():
    """Python 3.9 and 3.10 have no asyncio.Runner."""
    done: list[str] = []

    async def answers() -> int:
        return id(asyncio.get_running_loop())

    async def interrupted() -> None:
        try:
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            done.append("cleaned up")

    with closing(callable_host.OneLoop()) as loop:
        assert loop.run(answers()) == loop.run(answers())
        with pytest.raises(KeyboardInterrupt):
            loop.run(interrupted())
        assert done == ["cleaned up"]
        assert loop.run(answers())
