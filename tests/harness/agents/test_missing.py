"""Programs, scripts, modules and packages of a spec that do not exist."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.agents.missing import ProgramError, check_agents, what_is_missing
from wedgehog.harness.agents.spec import load_spec

SERVICE = {"url": "/", "body": {"message": "{message}"}}
NEW = "in the agent's working folder, which is new in each run"


@pytest.fixture
def missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is missing from a spec, without the spec's path; `agent.py` and the module `mine` are in its folder."""
    monkeypatch.setenv("PATH", "/usr/bin")
    for name in ("agent.py", "mine.py"):
        (tmp_path / name).write_text("def call(message): ...\n")
    path = tmp_path / "agent.yaml"

    def found(**words: Any) -> str:
        path.write_text(yaml.safe_dump({"name": "a", "wire": "anthropic", **words}))
        says = what_is_missing(load_spec(path))
        lines = path.read_text().splitlines()
        for line in says.splitlines():
            named = re.match(rf"{path}:(\d+): (?:\w+: )?(\w+): ", line)
            assert line.startswith(f"{path}: ") or (named and named[2] in lines[int(named[1]) - 1]), says
        return re.sub(rf"{path}:(\d+:)? ", "", says).replace(str(tmp_path), "HERE")

    return found


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            {"command": ["no-such-program", "{message}"]},
            "command: there is no program 'no-such-program' in /usr/bin",
        ),
        ({"command": ["/no/such/program", "{message}"]}, "command: there is no program '/no/such/program'"),
        ({"command": ["{here}/gone", "{message}"]}, "command: there is no program 'HERE/gone'"),
        (
            {"command": ["{here}/agent.py", "{message}"]},
            "command: there is no program 'HERE/agent.py': this file is not executable",
        ),
        ({"command": ["{python}", "-S", "{here}/gone.py", "{message}"]}, "command: there is no file 'HERE/gone.py'"),
        (
            {"command": ["{python}", "{here}/agent.py", "{message}"], "resume": ["gone", "{message}"]},
            "resume: there is no program 'gone' in /usr/bin",
        ),
        (
            {"http": {"start": ["gone", "{port}"], **SERVICE}},
            "http: start: there is no program 'gone' in /usr/bin",
        ),
        ({"chat": {"start": ["gone"]}}, "chat: start: there is no program 'gone' in /usr/bin"),
        (
            {"command": ["gone", "{message}"], "env": {"PATH": "{here}/bin"}},
            "command: there is no program 'gone' in HERE/bin",
        ),
        (
            {"command": ["./gone", "{message}"]},
            f"command: there is no program './gone' {NEW}; {{here}} is the folder of this file",
        ),
        (
            {"command": ["./agent.py", "{message}"]},
            f"command: there is no program './agent.py' {NEW}: write {{here}}/agent.py",
        ),
        (
            {"command": ["{python}", "agent.py", "{message}"]},
            f"command: there is no file 'agent.py' {NEW}: write {{here}}/agent.py",
        ),
        (
            {"http": {"start": ["python3", "src/agent.py", "{port}"], **SERVICE}},
            f"http: start: there is no file 'src/agent.py' {NEW}; {{here}} is the folder of this file",
        ),
        ({"callable": "{here}/gone.py:call"}, "callable: there is no module 'HERE/gone.py'"),
        ({"callable": "gone.py:call"}, "callable: there is no module 'HERE/gone.py'"),
        ({"callable": "no_such_module.sub:call"}, "callable: there is no module 'no_such_module.sub'"),
    ],
)
def test_what_cannot_be_found_is_named_with_its_key(missing: Any, words: dict[str, Any], says: str):
    """A file without permission to run counts as missing."""
    assert missing(**words) == says


@pytest.mark.parametrize(
    "words",
    [
        {"command": ["{python}", "-S", "-E", "{here}/agent.py", "{message}"]},
        {"command": ["sh", "-c", "exec gone.py", "{message}"]},
        {"command": ["./mine.py", "{message}"], "workdir": "{here}"},
        {"command": ["{python}", "mine.py", "{message}"], "workdir": "{here}"},
        {"command": ["{python}", "-m", "gone.py", "{message}"]},
        {"command": ["{python}", "made.py", "{message}"], "files": {"made.py": "pass"}},
        {"command": ["{python}", "{here}/agent.py", "{message}"], "resume": ["./made", "{message}"]},
        {"command": ["gone", "{message}"], "env": {"PATH": "{home}/bin"}},
        {"command": ["{cwd}/gone", "{message}"]},
        {"command": ["{python}", "{session_dir}/gone.py", "{message}"]},
        {"http": {"base": "http://127.0.0.1:1", **SERVICE}},
        {"callable": "{here}/agent.py:call"},
        {"callable": "mine:call"},
        {"callable": "json.decoder:call"},
        {"callable": "elsewhere:call", "env": {"PYTHONPATH": "/lib"}},
    ],
)
def test_what_exists_or_only_the_run_can_show_is_not_missing(missing: Any, words: dict[str, Any]):
    """A file in the agent's own folder may exist by then."""
    assert missing(**words) == ""


@pytest.mark.parametrize(("kind", "package", "extra"), [("acp", "acp", "acp"), ("tui", "pyte", "pty")])
def test_a_package_that_this_kind_of_agent_needs_is_named_with_its_extra(
    missing: Any, monkeypatch: pytest.MonkeyPatch, kind: str, package: str, extra: str
):
    for name in (package, f"wedgehog.harness.agents.{kind}", "wedgehog.harness.agents.acp_process"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    ready = {"ready": "> "} if kind == "tui" else {}
    says = missing(**{kind: {"start": ["{python}", "{here}/agent.py"], **ready}})
    assert says == f"`{kind}` needs the package {package}: pip install 'wedgehog[{extra}]'"


LOST = "the user's message does not reach the agent: write {message} where it takes it"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"command": ["{here}/gone", "hi"]}, f"command: there is no program 'HERE/gone'\ncommand: {LOST}"),
        ({"command": ["sh", "-c", "echo {message}"]}, ""),
        ({"command": ["sh"], "resume": ["sh", "{message}"]}, f"command: {LOST}"),
        ({"http": {"start": ["sh", "{port}"], "url": "/ask", "body": {"text": "hi"}}}, f"http: {LOST}"),
        ({"http": {"start": ["sh", "{port}"], "url": "/ask?q={message}"}}, ""),
        ({"lines": {"start": ["sh"], "send": {"text": "hi"}, "done": "x"}}, f"lines: send: {LOST}"),
        ({"lines": {"start": ["sh"], "send": {"messages": [{"text": "{message}"}]}, "done": "x"}}, ""),
        ({"acp": {"start": ["sh"]}}, ""),
        ({"chat": {"start": ["sh", "{chat_url}"]}}, ""),
    ],
)
def test_a_message_that_cannot_reach_the_agent_is_a_mistake_of_the_spec(missing: Any, words: dict[str, Any], says: str):
    """Nothing is played; agents that take it by their protocol need no template."""
    assert missing(**words) == says


def test_all_agents_that_lack_something_are_named_at_once(tmp_path: Path):
    """A line for each."""
    specs = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump({"name": name, "wire": "anthropic", "command": [f"/no/{name}", "{message}"]}))
        specs.append(load_spec(path))
    with pytest.raises(ProgramError) as wrong:
        check_agents([*specs, specs[0]])
    assert str(wrong.value).splitlines() == [
        f"{tmp_path}/{name}.yaml:1: command: there is no program '/no/{name}'" for name in ("a", "b")
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nowhere_at_all\nanswer = print", "there is no module 'nowhere_at_all', which HERE/own.py:1 imports"),
        ("def reply(message): ...", "HERE/own.py has no 'answer'"),
    ],
)
def test_what_a_callables_file_lacks_in_our_own_python_is_named(missing: Any, tmp_path: Path, text: str, says: str):
    """A mistake of the set-up ends the command, and is no failure of the agent."""
    (tmp_path / "own.py").write_text(text)
    assert missing(callable="{here}/own.py:answer") == f"callable: {says}"


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import nowhere_at_all\nexcept ImportError:\n    pass\nanswer = print",
        "import sys\nsys.path.append('lib')\nimport nowhere_at_all\nanswer = print",
        "import mine\nanswer = print",
        "from os import *",
        "def __getattr__(name): ...",
        "this is no Python",
    ],
)
def test_what_a_callables_file_may_have_in_the_run_is_not_called_missing(missing: Any, tmp_path: Path, text: str):
    """Only the call shows it."""
    (tmp_path / "own.py").write_text(text)
    assert missing(callable="{here}/own.py:answer") == ""
