"""The page of the fake provider: its test is one that passes, its commands answer what it says."""

import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wedgehog.fake_llm.admin.api import Admin
from wedgehog.fake_llm.admin.request_log import LoggedRequest
from wedgehog.fake_llm.admin.sessions import ProviderSessions
from wedgehog.fake_llm.observer import Conn, RequestSeen
from wedgehog.harness.commands.serve import Provider

SEEN = RequestSeen(1, Conn(1, ("", 0)), "any", "/", "POST", "", None, b"", 0)


@pytest.fixture
def page(docs: Path) -> str:
    return (docs / "fake-provider.md").read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_example_is_a_test_that_passes(page: str, tmp_path: Path):
    """As it stands there, and short enough to be read at once."""
    pytest.importorskip("openai")
    (example,) = blocks(page, "python")
    assert len(example.splitlines()) <= 15
    (tmp_path / "test_example.py").write_text(example, encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_example.py"]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, "1 passed" in ran.stdout) == (0, True), ran.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_commands_answer_what_the_page_says(page: str, docs: Path):
    """In their order, against one server."""
    commands = [
        exchange.partition("\n")
        for block in blocks(page, "console")
        for exchange in block.removeprefix("$ ").split("\n$ ")
        if exchange.startswith("curl")
    ]
    assert len(commands) >= 9
    with Provider(docs / "examples" / "script.yaml") as llm:
        for command, _, says in commands:
            there = command.replace("http://127.0.0.1:8931", llm.url)
            there = there.replace("http://127.0.0.1:8932/_wedgehog", llm.admin_url)
            ran = subprocess.run(there, shell=True, capture_output=True, text=True, check=True, timeout=20)
            expected = ".*".join(map(re.escape, says.strip().split("…")))
            assert re.fullmatch(expected, ran.stdout.strip(), re.DOTALL), (command, ran.stdout)


def test_every_field_of_the_ledger_is_explained(page: str):
    """None is missing in its table, and none stands there that is gone."""
    fields = LoggedRequest(SEEN, arrived=datetime.now(UTC)).as_json(None)
    table = page.partition("## The ledger")[2].partition("\n## ")[0]
    told = {word for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for word in re.findall(r"`(\w+)`", row)}
    assert told == set(fields)


def test_every_request_of_the_admin_api_is_in_its_table(page: str):
    """With its method."""
    table = set(re.findall(r"^\| `(\w+) /_wedgehog/(\w+)[^`]*` \|", page, re.MULTILINE))
    story: Any = SimpleNamespace(balance=None)
    assert table == set(Admin(ProviderSessions(story), lambda text: story)._answers)
