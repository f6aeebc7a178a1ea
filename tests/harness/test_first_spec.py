"""The first spec, from a few answers."""

from pathlib import Path

import pytest

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.first_spec import WIRES, Answers, spec_text, wrong_command, wrong_name


@pytest.mark.parametrize("wire", WIRES)
def test_it_is_a_spec_that_loads(tmp_path: Path, wire: str):
    """For every wire format, with what that provider's own SDK reads."""
    path = tmp_path / "agent.yaml"
    path.write_text(spec_text(Answers("mine", wire, "python bot.py --say {message}"), "agent.yaml"))
    spec = load_spec(path)
    assert (spec.name, spec.wire) == ("mine", wire)
    assert spec.command == ("{python}", "{here}/bot.py", "--say", "{message}")
    assert any("{llm_url}" in value for value in spec.env.values()) and spec.resume is None


def test_files_that_are_named_from_here_lie_beside_the_spec(tmp_path: Path):
    """The agent's own working folder is another one; words with spaces stay one argument."""
    answers = Answers("mine", "ollama", './run.sh --style "very kind" {message}', "node src/cli.js {message}")
    text = spec_text(answers, "x")
    (tmp_path / "x.yaml").write_text(text)
    spec = load_spec(tmp_path / "x.yaml")
    assert spec.command == ("{here}/run.sh", "--style", "very kind", "{message}")
    assert spec.resume == ("node", "{here}/src/cli.js", "{message}")


def test_wrong_answers_say_what_is_wrong():
    """Before the file is written."""
    assert wrong_name("my agent") and not wrong_name("my-agent.2")
    assert "{message}" in wrong_command("python bot.py")
    assert wrong_command('python "bot') and wrong_command("  ")
    assert not wrong_command("python bot.py {message}")
