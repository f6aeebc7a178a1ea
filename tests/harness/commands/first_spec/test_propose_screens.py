"""What `wedgehog init` proposes for programs that talk on a screen, and for those whose kind the user says."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.commands.cli import app
from wedgehog.harness.commands.first_spec.propose import Proposal, propose

TOOLKIT = """
from prompt_toolkit import PromptSession
session = PromptSession(history=None)
while True:
    print(ask(session.prompt("you> ")))
"""
TEXTUAL = """
from textual.app import App
class Chat(App): ...
if __name__ == "__main__":
    Chat().run()
"""


@pytest.mark.parametrize(
    ("code", "talks"),
    [
        (TOOLKIT, {"ready": "^you> *$"}),
        (TOOLKIT.replace("while True:", "def main():"), {"ready": "^you> *$"}),
        (TOOLKIT.replace("session.prompt(", "await session.prompt_async("), {"ready": "^you> *$"}),
        (TOOLKIT.replace("history=None", "'say (q ends): '").replace("'you> '", ""), {"ready": "^you> *$"}),
        (TOOLKIT.replace("history=None", "'say (q): '").replace('"you> "', ""), {"ready": r"^say \(q\): *$"}),
        (TOOLKIT.replace('"you> "', 'message="\\nMe: "'), {"ready": "^Me: *$"}),
        (TOOLKIT.replace('"you> "', "HTML('<b>me</b>')"), {}),
        ("from prompt_toolkit.shortcuts import prompt\nprompt('> ')", {"ready": "^> *$"}),
        ("import prompt_toolkit\nprompt_toolkit.prompt('> ')", {"ready": "^> *$"}),
        (TEXTUAL, {}),
        (
            TEXTUAL.replace("from textual.app import App", "import textual.app").replace("(App)", "(textual.app.App)"),
            {},
        ),
    ],
)
@pytest.mark.parametrize("file", ["chat.py", "screen.py"])
def test_a_program_with_a_screen_is_a_terminal(tmp_path: Path, code: str, talks: dict[str, object], file: str):
    """Its prompt stays before the message that was typed: only the line with the prompt alone waits for one."""
    (tmp_path / file).write_text(code)
    found = propose(tmp_path)
    assert (found.kind, found.command, found.talks) == ("tui", f"python {file}", talks)
    assert not talks or not re.search(str(talks["ready"]), "you> hello")


@pytest.mark.parametrize(
    "code",
    [
        "from prompts import prompt\nprompt('you> ')",
        "from prompt_toolkit import HTML\nfrom prompts import prompt\nprompt('you> ')",
        "from textual.app import App\nclass Chat(App): ...",
        "class Chat(App): ...\nChat().run()",
        "from prompt_toolkit import print_formatted_text\nprint_formatted_text('hello')",
    ],
)
def test_a_program_without_a_screen_is_none(tmp_path: Path, code: str):
    (tmp_path / "screen.py").write_text(code)
    assert propose(tmp_path).command is None


def test_a_program_that_also_takes_a_message_as_an_argument_is_a_command(tmp_path: Path):
    """One that only has other options is a terminal."""
    options = "import argparse\nparser.add_argument('--model')\n"
    (tmp_path / "chat.py").write_text(options + TOOLKIT)
    assert propose(tmp_path).kind == "tui"
    (tmp_path / "chat.py").write_text(options.replace("--model", "--prompt") + TOOLKIT)
    assert (propose(tmp_path).kind, propose(tmp_path).command) == ("command", "python chat.py --prompt {message}")
    (tmp_path / "chat.py").write_text("import sys\nFAST = '--fast' in sys.argv\n" + TOOLKIT)
    assert propose(tmp_path).kind == "tui"
    (tmp_path / "chat.py").write_text("import sys\nsys.argv\n" + TOOLKIT)
    assert (propose(tmp_path).kind, propose(tmp_path).command) == ("command", "python chat.py {message}")


def test_a_script_of_the_project_with_a_screen_is_a_terminal(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bot"\n[project.scripts]\nbot = "bot:main"')
    (tmp_path / "bot.py").write_text(TOOLKIT)
    assert (propose(tmp_path).kind, propose(tmp_path).command) == ("tui", "bot")


@pytest.mark.parametrize(("code", "ready"), [(TOOLKIT, "^you> *$"), (TEXTUAL, "^> *$")])
def test_the_spec_of_a_terminal_says_when_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, ready: str
):
    """Without a prompt in the source, by a guess that the message's own line does not fit."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chat.py").write_text(code)
    assert CliRunner().invoke(app, ["init", "--yes"]).exit_code == 0
    spec = load_spec(tmp_path / "agent.yaml")
    assert spec.tui is not None and spec.tui.ready == ready


GROUP = """
import json, click
@click.group()
def cli(): ...
@cli.command()
@click.option("--name", default="default")
@click.argument("text")
def chat(name, text): ...
"""
TYPER = """
import typer
app = typer.Typer()
@app.command(name="ask")
def asks(message: str): ...
@app.command()
def load(file: str): ...
"""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (GROUP, "chat {message}"),
        (GROUP.replace("@cli.command()", '@cli.command("say")'), "say {message}"),
        (TYPER, "ask {message}"),
    ],
)
def test_a_group_of_commands_in_a_file_of_any_name_is_proposed(tmp_path: Path, code: str, words: str):
    """If it has a command that takes a message, and no other file has one."""
    (tmp_path / "talk.py").write_text(f"{code}\nif __name__ == '__main__': main()")
    found = propose(tmp_path)
    assert (found.kind, found.command, found.because) == ("command", f"python talk.py {words}", "talk.py")
    (tmp_path / "other.py").write_text((tmp_path / "talk.py").read_text())
    assert propose(tmp_path).kind != "command" or propose(tmp_path).command is None
    (tmp_path / "other.py").unlink()
    (tmp_path / "talk.py").write_text(code)
    assert propose(tmp_path).command in (None, "talk.py:asks"), "nothing starts it"


PROGRAM = "import anthropic\nif __name__ == '__main__': ...\n"


@pytest.mark.parametrize("kind", ["lines", "tui", "acp"])
def test_a_kind_that_the_user_says_takes_the_one_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str):
    """A folder with two programs, or with none, proposes nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.py").write_text(PROGRAM)
    (tmp_path / "app.py").write_text("def used(): ...")
    ran = CliRunner().invoke(app, ["init", "-y", "--kind", kind])
    assert ran.exit_code == 2 and "no file in this folder shows how the agent is started" in ran.stderr
    (tmp_path / "agent.py").write_text(PROGRAM)
    ran = CliRunner().invoke(app, ["init", "one.yaml", "-y", "--kind", kind])
    assert ran.exit_code == 0 and "agent.py suggests: python agent.py" in ran.stderr
    assert getattr(load_spec(tmp_path / "one.yaml"), kind).start == ("{python}", "{here}/agent.py")
    (tmp_path / "bot.py").write_text(PROGRAM)
    assert CliRunner().invoke(app, ["init", "two.yaml", "-y", "--kind", kind]).exit_code == 2


@pytest.mark.parametrize("kind", ["lines", "tui", "acp"])
def test_a_kind_that_the_user_says_takes_the_one_program_of_node(tmp_path: Path, kind: Any):
    """Not beside one of Python."""
    (tmp_path / "package.json").write_text('{"bin": {"mine": "./talk.mjs"}}')
    (tmp_path / "tools.mjs").write_text("")
    (tmp_path / "talk.mjs").write_text("render(process.argv[2])")
    found: Proposal = propose(tmp_path, kind)
    assert (found.kind, found.command, found.because) == (kind, "node talk.mjs", "talk.mjs")
    (tmp_path / "agent.py").write_text(PROGRAM)
    assert propose(tmp_path, kind).command is None


def test_a_kind_that_the_user_says_takes_what_fits_it(tmp_path: Path):
    """Not only what is surest."""
    (tmp_path / "app.py").write_text("app = FastAPI()")
    (tmp_path / "chat.py").write_text(TOOLKIT)
    found: Proposal = propose(tmp_path, "tui")
    assert (found.kind, found.command, found.talks) == ("tui", "python chat.py", {"ready": "^you> *$"})
    assert propose(tmp_path).kind == "http"
    assert (propose(tmp_path, "callable").kind, propose(tmp_path, "callable").command) == ("callable", None)


CURSES = """
import curses
def main(screen):
    screen.addstr(0, 0, "The best agent")
    while True:
        SHOWS
        text = screen.getstr().decode()
curses.wrapper(main)
"""


@pytest.mark.parametrize(
    ("shows", "talks"),
    [
        ('screen.addstr("\\nask> ")', {"ready": "^ask> *$"}),
        ("screen.addstr(prompt)", {}),
        ('screen.addstr(9, 0, "you: ", curses.A_BOLD)', {"ready": "^you: *$"}),
    ],
)
def test_a_program_of_curses_has_a_screen(tmp_path: Path, shows: str, talks: dict[str, str]):
    """The prompt is what it shows last before it reads."""
    (tmp_path / "loop.py").write_text(CURSES.replace("SHOWS", shows))
    found = propose(tmp_path)
    assert (found.kind, found.talks) == ("tui", talks)
    (tmp_path / "loop.py").write_text("import curses\nprint(curses.tigetnum('cols'))\n")
    assert propose(tmp_path).command is None


@pytest.mark.parametrize(
    ("made", "talks"),
    [
        ('Input(placeholder="Ask me (anything)")', {"ready": r"Ask me \(anything\)"}),
        ("Input(id='box')", {}),
        ("Input(placeholder=words)", {}),
    ],
)
def test_the_words_of_an_empty_input_of_textual_are_the_sign(tmp_path: Path, made: str, talks: dict[str, str]):
    """They are there while it waits for a message."""
    code = (
        f"from textual.app import App\nclass Chat(App):\n    def compose(self):\n        yield {made}\nChat().run()\n"
    )
    (tmp_path / "app.py").write_text(code)
    found = propose(tmp_path)
    assert (found.kind, found.talks) == ("tui", talks)
