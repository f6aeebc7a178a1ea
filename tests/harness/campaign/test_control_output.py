"""A control run that failed: where the agent's output is."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from wedgehog.harness.commands.cli import app


def test_the_sentence_names_the_file_with_all_that_the_agent_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A new user's first run fails there; the sentence quotes one line, and the reason may be in another."""
    (tmp_path / "agent.py").write_text("print('reading settings')\nraise SystemExit('Error: no model is chosen')\n")
    spec = {"name": "mute", "wire": "openai-chat", "command": ["{python}", "{here}/agent.py", "{message}"]}
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(spec))
    monkeypatch.chdir(tmp_path)
    words = ["run", "stall-once", "--agent", "agent.yaml", "--network", "embedded", "--out", "runs"]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "1000"})
    assert done.exit_code == 3
    (told,) = (line for line in done.output.splitlines() if "all that it printed: " in line)
    log = Path(told.partition("all that it printed: ")[2].rstrip(") "))
    assert "reading settings" in log.read_text()
