"""The first spec, from a few answers."""

from pathlib import Path
from typing import Literal

import pytest

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.commands.first_spec.spec_text import WIRES, spec_text, wrong_answer_to, wrong_command, wrong_name


@pytest.mark.parametrize("wire", WIRES)
def test_it_is_a_spec_that_loads(tmp_path: Path, wire: str):
    """For every wire format, with what that provider's own SDK reads."""
    path = tmp_path / "agent.yaml"
    path.write_text(spec_text("agent.yaml", "mine", wire, "python bot.py --say {message}"))
    spec = load_spec(path)
    assert (spec.name, spec.wire) == ("mine", wire)
    assert spec.command == ("{python}", "{here}/bot.py", "--say", "{message}")
    assert any("{llm_url}" in value for value in spec.env.values()) and spec.resume is None


@pytest.mark.parametrize("kind", ["lines", "acp", "tui"])
def test_an_agent_that_stays_gets_a_spec_of_its_kind(tmp_path: Path, kind: Literal["lines", "acp", "tui"]):
    """Its command line has no message; what must be looked up is marked as a guess."""
    path, resume = tmp_path / "agent.yaml", "" if kind == "acp" else "python bot.py --continue"
    path.write_text(spec_text("agent.yaml", "mine", "ollama", "python bot.py", resume, kind))
    spec = load_spec(path)
    assert (spec.kind, getattr(spec, kind).start) == (kind, ("{python}", "{here}/bot.py"))
    assert ("# A guess" in path.read_text()) == (kind != "acp")


def test_a_service_gets_a_spec_with_guesses(tmp_path: Path):
    path = tmp_path / "agent.yaml"
    path.write_text(spec_text("agent.yaml", "mine", "openai-chat", "python app.py --port {port}", kind="http"))
    spec = load_spec(path)
    assert spec.http is not None
    assert spec.http.start == ("{python}", "{here}/app.py", "--port", "{port}")
    assert "# A guess: change ready, url, body, answer, error" in path.read_text()


@pytest.mark.parametrize(
    ("file", "written"), [("a.yaml", "{here}/bot.py:answer"), ("sub/a.yaml", "{here}/../bot.py:answer")]
)
def test_a_function_gets_a_spec_that_says_how_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, written: str
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "bot.py").write_text("def answer(message, *, session_dir, llm_url, key): return ''")
    (tmp_path / file).write_text(spec_text(file, "mine", "openai-chat", "bot.py:answer", kind="callable"))
    assert load_spec(tmp_path / file).callable == written
    assert "session_dir, llm_url, key" in (tmp_path / file).read_text()


def test_files_that_are_named_from_here_lie_beside_the_spec(tmp_path: Path):
    """The agent's own working folder is another one; words with spaces stay one argument."""
    text = spec_text("x", "mine", "ollama", './run.sh --style "very kind" {message}', "node src/cli.js {message}")
    (tmp_path / "x.yaml").write_text(text)
    spec = load_spec(tmp_path / "x.yaml")
    assert spec.command == ("{here}/run.sh", "--style", "very kind", "{message}")
    assert spec.resume == ("node", "{here}/src/cli.js", "{message}")


@pytest.mark.parametrize(
    ("file", "word", "written"),
    [
        ("a.yaml", "/opt/bots/agent.py", "/opt/bots/agent.py"),
        ("a.yaml", "~/bots/agent.py", "/home/me/bots/agent.py"),
        ("a.yaml", "./agent.py", "{here}/agent.py"),
        ("sub/a.yaml", "agent.py", "{here}/../agent.py"),
        ("sub/a.yaml", "sub/agent.py", "{here}/agent.py"),
        ("sub/a.yaml", "../agent.py", "{here}/../../agent.py"),
    ],
)
def test_a_file_is_written_as_seen_from_the_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, word: str, written: str
):
    """It was named as seen from the shell's folder; from / and ~ it is the same everywhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    (tmp_path / "sub").mkdir()
    for command in (f"python {word} {{message}}", f"node {word} {{message}}"):
        (tmp_path / file).write_text(spec_text(file, "mine", "ollama", command))
        assert (load_spec(tmp_path / file).command or ())[1] == written


@pytest.mark.parametrize(
    ("file", "program", "written"),
    [
        ("a.yaml", "venv/bin/python", "{here}/venv/bin/python"),
        ("sub/a.yaml", "./run", "{here}/../run"),
        ("sub/a.yaml", "/usr/bin/python3", "/usr/bin/python3"),
        ("sub/a.yaml", "my-agent", "my-agent"),
        ("sub/a.yaml", "{here}/run", "{here}/run"),
    ],
)
def test_a_program_that_is_named_by_its_path_is_a_file_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, program: str, written: str
):
    """One without a slash is looked for in PATH."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / file).write_text(spec_text(file, "mine", "ollama", f"{program} {{message}}"))
    assert load_spec(tmp_path / file).command == (written, "{message}")


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("perl agent.pl s.json {message}", ["perl", "{here}/agent.pl", "s.json", "{message}"]),
        ("ruby bin/chat.rb {message}", ["ruby", "{here}/bin/chat.rb", "{message}"]),
        ("java -jar target/app.jar {message}", ["java", "-jar", "{here}/target/app.jar", "{message}"]),
        (
            "java -cp lib/a.jar:classes Main {message}",
            ["java", "-cp", "{here}/lib/a.jar:{here}/classes", "Main", "{message}"],
        ),
        ("bot chat conf/bot.ini {message}", ["bot", "chat", "{here}/conf/bot.ini", "{message}"]),
        ("bot conf/new.ini classes/none:x {message}", ["bot", "conf/new.ini", "classes/none:x", "{message}"]),
    ],
)
def test_files_in_any_language_lie_beside_the_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, written: list[str]
):
    """By a usual ending, or because a file of that name exists; a folder of the same name may be a subcommand."""
    monkeypatch.chdir(tmp_path)
    for folder in ("chat", "classes", "conf", "lib"):
        (tmp_path / folder).mkdir()
    (tmp_path / "lib/a.jar").touch()
    (tmp_path / "conf/bot.ini").touch()
    (tmp_path / "a.yaml").write_text(spec_text("a.yaml", "mine", "ollama", command))
    assert list(load_spec(tmp_path / "a.yaml").command or ()) == written


def test_environment_before_a_command_goes_under_env(tmp_path: Path):
    """As a shell reads it; where the model is and the key are Wedgehog's to say."""
    command = "MODEL='my model' OPENAI_API_KEY=secret python bot.py --level=2 {message}"
    assert not wrong_command(command) and wrong_command("MODEL=x") == "a command line is needed"
    assert "{message}" in wrong_command("SAYS={message} python bot.py")
    text = spec_text("a.yaml", "mine", "openai-chat", command, "LEVEL=3 python bot.py {message}")
    (tmp_path / "a.yaml").write_text(text)
    spec = load_spec(tmp_path / "a.yaml")
    assert spec.command == ("{python}", "{here}/bot.py", "--level=2", "{message}")
    assert spec.resume == ("{python}", "{here}/bot.py", "{message}")
    assert spec.env == {**WIRES["openai-chat"][0], "MODEL": "my model", "LEVEL": "3"}


def test_wrong_answers_say_what_is_wrong():
    """Before the file is written."""
    assert wrong_name("my agent") and not wrong_name("my-agent.2")
    assert "{message}" in wrong_command("python bot.py")
    assert wrong_command('python "bot') and wrong_command("  ")
    assert not wrong_command("python bot.py {message}")
    assert "file.py:function" in wrong_answer_to("callable", "bot") and not wrong_answer_to("callable", "a/bot.py:run")
    assert "{port}" in wrong_answer_to("http", "python app.py") and not wrong_answer_to("http", "app --port {port}")
