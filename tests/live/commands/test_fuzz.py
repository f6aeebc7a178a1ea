"""`wedgehog fuzz` on an agent with a bug, as its user runs it."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live.conftest import PLAIN_HTTP

SILENT = '''\
"""A small agent that hides errors: its user reads nothing, and its exit code is 0."""
import json, os, sys
from plain_http import post
body = {"model": "m", "max_tokens": 999, "messages": [{"role": "user", "content": sys.argv[2]}]}
headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
try:
    print(json.loads(post(sys.argv[1] + "/v1/messages", body, headers, timeout_s=3).read())["content"][-1]["text"])
except Exception as wrong:
    sys.exit(0 if len(sys.argv) == 3 else f"Error: {wrong}")
'''


@pytest.fixture
def specs(tmp_path: Path) -> None:
    """An agent that hides errors, and one that says them."""
    (tmp_path / "agent.py").write_text(SILENT)
    shutil.copy(PLAIN_HTTP, tmp_path)
    for name, more in (("silent", []), ("honest", ["honest"])):
        command = ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}", "{message}", *more]
        spec = {"name": name, "wire": "anthropic", "command": command, "recover_s": 0, "limits": {"turn_s": 20}}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))


BUDGETS = ("3s", "15s", "2m")
"""A busy machine plays too few scenarios in the first ones."""


def searched(wedgehog: Any, *agents: str) -> Any:
    """What a search found, or one with more time if that found nothing."""
    for budget in BUDGETS:
        ran = wedgehog("fuzz", *agents, "--budget", budget, "--network=embedded")
        if ran.returncode == 1:
            break
    return ran


@pytest.mark.usefixtures("specs")
def test_a_bug_is_found_shrunk_saved_and_played_again(wedgehog: Any, tmp_path: Path):
    """What is saved is a scenario file of one turn and one fault, red for this agent."""
    ran = searched(wedgehog, "--agent", "silent.yaml")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    found = sorted((tmp_path / "fuzz" / "silent" / "found").glob("*.yaml"))
    assert found and all(str(path.relative_to(tmp_path)) in ran.stdout for path in found)
    smallest = min((yaml.safe_load(path.read_text()) for path in found), key=lambda it: len(repr(it)))
    assert (len(smallest["turns"]), len(smallest["faults"])) == (1, 1)
    again = wedgehog("run", str(tmp_path / f"fuzz/silent/found/{smallest['name']}.yaml"), "--agent", "silent.yaml")
    assert again.returncode == 1, again.stdout


@pytest.mark.usefixtures("specs")
def test_a_difference_of_two_agents_is_found(wedgehog: Any):
    """The one that hides the error is named."""
    ran = searched(wedgehog, "-a", "honest.yaml", "-a", "silent.yaml")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "(silent)" in ran.stdout and "(honest)" not in ran.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--agent", "none.yaml"), "none.yaml: no such file"),
        (
            ("--agent", "silent.yaml", "--budget", "soon"),
            "--budget: expected a time such as 60s, 5m or 1h, found 'soon'",
        ),
        (("--agent", "a", "--agent", "b", "--agent", "c"), "--agent: one agent, or two to find where they differ"),
    ],
)
@pytest.mark.usefixtures("specs")
def test_a_mistake_is_one_line(wedgehog: Any, words: tuple[str, ...], said: str):
    """And exit code 2."""
    ran = wedgehog("fuzz", *words)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert said in ran.stderr
