"""What `wedgehog init` reads in a project, and what it proposes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.commands.cli import app
from wedgehog.harness.commands.propose import Proposal, propose

MAIN = "if __name__ == '__main__': ...\n"


def proposed(folder: Path, **files: str) -> Proposal:
    """The proposal for a project with these files; `__` in a name is a dot."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return propose(folder)


@pytest.mark.parametrize(
    ("text", "wire"),
    [
        ("from anthropic import AsyncAnthropic", "anthropic"),
        ("from google import genai", "gemini"),
        ("import ollama", "ollama"),
        ("client.responses.create(model='m')", "openai-responses"),
        ("client.chat.completions.create()", "openai-chat"),
        ("import requests; requests.post(f'{base}/v1/messages')", "anthropic"),
        ("print('nothing of the kind')", "openai-chat"),
    ],
)
def test_the_wire_is_that_of_the_client(tmp_path: Path, text: str, wire: str):
    assert proposed(tmp_path, agent__py=text).wire == wire


def test_the_wire_of_most_files_wins(tmp_path: Path):
    found = proposed(tmp_path, a__py="import ollama", b__py="import anthropic", c__py="import anthropic")
    assert found.wire == "anthropic"


@pytest.mark.parametrize(
    ("files", "kind", "command"),
    [
        ({"agent__py": MAIN, "zebra__py": MAIN}, "command", "python agent.py {message}"),
        ({"index__js": "main()"}, "command", "node index.js {message}"),
        (
            {"pyproject__toml": '[project]\nname = "bot"\n[project.scripts]\nbot = "bot:main"', "main__py": MAIN},
            "command",
            "bot {message}",
        ),
        ({"app__py": "app = FastAPI()", "main__py": MAIN}, "http", "python -m uvicorn app:app --port {port}"),
        (
            {"web__py": "import flask\nsite = flask.Flask(__name__)"},
            "http",
            "python -m flask --app web run --port {port}",
        ),
        ({"core__py": "def _hidden(message): ...\nasync def reply(message, *, key): ..."}, "callable", "core.py:reply"),
    ],
)
def test_the_start_is_what_the_files_say(tmp_path: Path, files: dict[str, str], kind: str, command: str):
    found = proposed(tmp_path, **files)
    assert (found.kind, found.command) == (kind, command)
    assert (tmp_path / found.because).is_file()


@pytest.mark.parametrize("files", [{}, {"agent__py": "def broken(:"}, {"notes__md": "app = FastAPI()"}])
def test_a_project_that_says_nothing_gets_no_start(tmp_path: Path, files: dict[str, str]):
    assert proposed(tmp_path, **files).command is None


def test_a_file_that_is_no_text_is_left_out(tmp_path: Path):
    (tmp_path / "agent.py").write_bytes(b"\xff\xfe\x00")
    assert propose(tmp_path).command is None


@pytest.mark.parametrize(("given", "name"), [("My Bot!", "My-Bot"), ("???", "my-agent")])
def test_the_name_is_the_projects(tmp_path: Path, given: str, name: str):
    assert proposed(tmp_path, pyproject__toml=f'[project]\nname = "{given}"').name == name


def test_init_proposes_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An empty answer takes the proposal; an option that contradicts it takes none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("import anthropic\n" + MAIN)
    ran = CliRunner().invoke(app, ["init", "one.yaml"], input="\n\n\n")
    spec = load_spec(tmp_path / "one.yaml")
    assert "agent.py suggests: python agent.py {message}" in ran.stderr
    assert (spec.wire, spec.command) == ("anthropic", ("{python}", "{here}/agent.py", "{message}"))
    assert CliRunner().invoke(app, ["init", "two.yaml", "--kind", "lines"], input="\n\n\n").exit_code == 2
