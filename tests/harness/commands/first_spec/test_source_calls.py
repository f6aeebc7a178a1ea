"""The keys for tool calls in text, which `wedgehog init` writes for a prompt that asks for them."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.commands.cli import app
from wedgehog.harness.commands.first_spec.source_calls import calls_in_text

REACT = 'PROMPT = """\nAction: one of {tools}\nAction Input: the input\nObservation: the result\n"""\n'
TAGS = 'PROMPT = "Run a command: <execute_command><command>ls</command></execute_command>"\n'
MAIN = 'import sys\n\nprint(sys.argv[1])\n\nif __name__ == "__main__":\n    pass\n'


@pytest.mark.parametrize(
    ("text", "begins"),
    [(REACT, "Thought: {words}\nAction: shell"), (TAGS, "<execute_command>\n<command>"), ("print('An Action')", "")],
)
def test_a_prompt_shows_how_its_model_writes_a_call(text: str, begins: str):
    """A line that begins with `Action Input`, or an element for commands."""
    found = calls_in_text(["import os", text]).get("calls_in_text", {"shell": ""})
    assert isinstance(found, dict) and found["shell"].startswith(begins) and bool(found["shell"]) is bool(begins)


@pytest.mark.parametrize(
    ("text", "call", "finish"),
    [
        ("from llama_index.core.agent import ReActAgent\na = ReActAgent(tools=[run])", '"command": "', "text"),
        ("from smolagents import CodeAgent\na = CodeAgent(tools=[run], model=m)", "<code>\nprint(shell(", "text"),
        ("from smolagents import ToolCallingAgent\na = ToolCallingAgent(tools=[run], model=m)", "", "tool"),
        ("class CodeAgent: pass\na = CodeAgent()", "", ""),
    ],
)
def test_a_library_shows_how_its_model_writes(text: str, call: str, finish: str):
    """Its prompt is in the library, so that no source of the project has it."""
    found = calls_in_text([text])
    assert call in str(found.get("calls_in_text", {}).get("shell", "")) and bool(found.get("calls_in_text")) is bool(
        call
    )
    assert [*found.get("finish", {})][:1] == ([finish] if finish else [])


@pytest.mark.parametrize("prompt", [REACT, TAGS, "from smolagents import ToolCallingAgent\nToolCallingAgent()\n"])
def test_the_spec_has_them_as_a_comment_that_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prompt: str):
    """The name of the agent's own tool is not known, so its user decides."""
    (tmp_path / "agent.py").write_text(prompt + MAIN)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["init", "a.yaml"], input="\n" * 9)
    assert done.exit_code == 0, done.output
    spec = Path("a.yaml")
    assert not load_spec(spec).calls_in_text
    text = spec.read_text()
    spec.write_text(text.replace("# calls_in_text:", "calls_in_text:").replace("# finish:", "finish:"))
    assert load_spec(spec).calls_in_text == calls_in_text([prompt]).get("calls_in_text", {})
    assert load_spec(spec).finish is not None
