"""Programs, scripts and modules of a spec that do not exist."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.agents.missing import what_is_missing
from wedgehog.harness.agents.spec import load_spec

SERVICE = {"url": "/", "body": {"message": "{message}"}}


@pytest.fixture
def missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is missing from a spec, without the spec's path; `agent.py` and the module `mine` are in its folder."""
    monkeypatch.setenv("PATH", "/usr/bin")
    (tmp_path / "agent.py").touch()
    (tmp_path / "mine.py").touch()
    path = tmp_path / "agent.yaml"

    def found(**words: Any) -> str:
        path.write_text(yaml.safe_dump({"name": "a", "wire": "anthropic", **words}))
        says = what_is_missing(load_spec(path))
        assert not says or says.startswith(f"{path}: ")
        return says.removeprefix(f"{path}: ").replace(str(tmp_path), "HERE")

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
        ({"command": ["{here}/agent.py", "{message}"]}, "command: there is no program 'HERE/agent.py'"),
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
        ({"callable": "{here}/gone.py:call"}, "callable: there is no module '{here}/gone.py'"),
        ({"callable": "gone.py:call"}, "callable: there is no module '{here}/gone.py'"),
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
        {"command": ["./gone", "{message}"]},
        {"command": ["{cwd}/gone", "{message}"]},
        {"command": ["{python}", "{session_dir}/gone.py", "{message}"]},
        {"command": ["gone", "{message}"], "env": {"PATH": "{here}/bin"}},
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
