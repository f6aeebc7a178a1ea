"""Access tokens that expire in the middle of a session, in virtual time."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

AGENTS = Path(__file__).with_name("token_agents.py")
NAMES = ("sound", "keeps_it", "storms", "has_a_key", "waits")
EXPIRES, ONCE, ALWAYS = "token-expires-mid-session", "token-refresh-refused-once", "token-refresh-refused-always"
HANGS = "token-refresh-hangs-once"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokens")


@pytest.fixture
def rows(wedgehog: Any, out: Path) -> pd.DataFrame:
    """All agents in all scenarios, played once."""
    if not (out / "runs").exists():
        words = []
        for name in NAMES:
            spec = f"name: {name}\nwire: openai-chat\ncallable: '{AGENTS}:{name}'\nrecover_s: 0\n"
            (out / f"{name}.yaml").write_text(spec)
            words += ["--agent", str(out / f"{name}.yaml")]
        wedgehog("run", EXPIRES, ONCE, ALWAYS, HANGS, *words, "--world", "sim", "--out", str(out / "runs"))
    return pd.read_csv(out / "runs" / "latest" / "summary.csv", keep_default_na=False)


def verdicts(rows: pd.DataFrame, agent: str) -> dict[str, tuple[str, str]]:
    mine = rows[rows.agent == agent]
    return {row.scenario: (row.verdict, row.violated) for row in mine.itertuples()}


def test_an_agent_passes_that_asks_for_one_new_token(rows: pd.DataFrame):
    assert verdicts(rows, "sound") == dict.fromkeys((EXPIRES, ONCE, ALWAYS, HANGS), ("pass", ""))


def test_an_agent_fails_that_keeps_an_expired_token(rows: pd.DataFrame):
    found = verdicts(rows, "keeps_it")
    assert all(verdict == "fail" and "session_recovers" in violated for verdict, violated in found.values()), found


def test_an_agent_fails_that_asks_a_hundred_times_for_a_token(rows: pd.DataFrame):
    found = verdicts(rows, "storms")
    assert found[EXPIRES] == ("pass", "") and found[ONCE] == ("fail", "retry_discipline")
    assert "token_request_bound" in found[ALWAYS][1]


def test_an_agent_fails_that_waits_for_a_token_without_an_end(rows: pd.DataFrame):
    """It is as sound as the first one, but for its time limit."""
    found = verdicts(rows, "waits")
    assert found.pop(HANGS) == ("fail", "turn_deadline")
    assert found == dict.fromkeys((EXPIRES, ONCE, ALWAYS), ("pass", ""))


def test_an_agent_with_an_api_key_skips_the_scenarios(rows: pd.DataFrame):
    assert {verdict for verdict, _ in verdicts(rows, "has_a_key").values()} <= {"skipped"}


def test_no_token_is_stored(rows: pd.DataFrame, out: Path):
    """The history has a fingerprint of each token."""
    history = next((out / "runs" / "latest").glob(f"{EXPIRES}/sound/history.jsonl")).read_text()
    assert history.count('"token_asked"') == 2 and '"client_credentials"' in history
    stored = [file for file in (out / "runs").rglob("*") if file.is_file() and b"wht-" in file.read_bytes()]
    assert stored == []


def test_a_command_agent_takes_the_address_of_the_endpoint_from_its_spec(wedgehog: Any, tmp_path: Path):
    """As a command, the agent has no other address than `TOKEN_URL`."""
    command = f'["{{python}}", "{AGENTS}", "{{llm_url}}", "{{session_dir}}", "{{message}}"]'
    spec = f"name: command\nwire: openai-chat\ncommand: {command}\nenv: {{TOKEN_URL: '{{token_url}}'}}\n"
    (tmp_path / "agent.yaml").write_text(f"{spec}recover_s: 0\n")
    out = ("--network", "embedded", "--out", str(tmp_path / "runs"))
    wedgehog("run", EXPIRES, "--agent", str(tmp_path / "agent.yaml"), *out)
    rows = pd.read_csv(tmp_path / "runs" / "latest" / "summary.csv", keep_default_na=False)
    assert verdicts(rows, "command") == {EXPIRES: ("pass", "")}
    history = next((tmp_path / "runs" / "latest").glob(f"{EXPIRES}/command/history.jsonl")).read_text()
    assert history.count('"token_asked"') == 2
