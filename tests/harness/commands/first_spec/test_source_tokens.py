"""The variables of an OAuth token endpoint that `wedgehog init` proposes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.commands.cli import app
from wedgehog.harness.commands.first_spec.source_tokens import token_env

OWN = {"TOKEN_URL": "{token_url}", "CLIENT_ID": "wedgehog", "CLIENT_SECRET": "wedgehog"}


@pytest.mark.parametrize(
    ("text", "env"),
    [
        ("os.environ['TOKEN_URL'], os.getenv('CLIENT_ID'), os.environ.get('CLIENT_SECRET', '')", OWN),
        ("const { PORT, TOKEN_URL, CLIENT_ID, CLIENT_SECRET } = process.env", OWN),
        ("process.env.AZURE_TOKEN_ENDPOINT!", {"AZURE_TOKEN_ENDPOINT": "{token_url}"}),
        (
            'process.env["OAUTH_TOKEN_URI"]; process.env.OAUTH_REFRESH_TOKEN',
            {"OAUTH_TOKEN_URI": "{token_url}", "OAUTH_REFRESH_TOKEN": "wedgehog"},
        ),
        ("os.environ['CLIENT_ID'], os.environ['CLIENT_SECRET']", {}),
        ("print('set TOKEN_URL'); os.environ['MAX_TOKEN_URLS']", {}),
    ],
)
def test_a_program_that_asks_for_tokens_gets_our_endpoint(text: str, env: dict[str, str]):
    """And a client, if it reads one. A client alone may be of another service."""
    assert token_env([text, "os.environ['OTHER_CLIENT_ID']"]) == env


@pytest.mark.parametrize("code", ["def main(): pass\nsys.argv[1]", "async def ask(question: str) -> str: ..."])
def test_the_spec_sets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str):
    """The agent gets no variable of the user's, so it needs them all."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(f"import os, sys\nURL = os.environ['TOKEN_URL']\n{code}\n")
    assert CliRunner().invoke(app, ["init", "-y"]).exit_code == 0
    env = load_spec(tmp_path / "agent.yaml").env
    assert (env["TOKEN_URL"], env["OPENAI_API_KEY"]) == ("{token_url}", "{key}")
