"""Agents that need two faults to break: `wedgehog fuzz` finds each bug, shrinks it to these, and it fails live too."""

import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

Wedgehog = Callable[..., "CompletedProcess[str]"]
AGENTS = Path(__file__).parent / "two_faults"


@pytest.mark.parametrize(
    ("agent", "wire", "scenarios", "violated"),
    [
        ("part_kept", "anthropic", 70, "truncation_noticed"),
        ("call_stored", "anthropic", 60, "tool_call_pairing"),
        ("abort_stored", "openai-chat", 60, "tool_call_pairing"),
        ("result_dropped", "openai-chat", 45, "tool_call_pairing"),
    ],
)
def test_a_bug_of_two_faults_is_found_soon(
    tmp_path: Path, wedgehog: Wedgehog, agent: str, wire: str, scenarios: int, violated: str
):
    """On two attempts of one call, on one attempt and by an abort of the next one, and on two calls of one turn."""
    shutil.copy(AGENTS / f"{agent}.py", tmp_path)
    spec = {"name": "mine", "wire": wire, "callable": f"{agent}:answer", "limits": {"turn_s": 120}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(spec))
    done = wedgehog("fuzz", "--agent", "mine.yaml", "--scenarios", str(scenarios), "--live", "--network", "embedded")
    found = sorted((tmp_path / "fuzz/mine/found").glob(f"{violated.replace('_', '-')}*.yaml"))
    assert done.returncode == 1 and found, done.stdout + done.stderr
    assert len(yaml.safe_load(found[0].read_text())["faults"]) == 2, done.stdout
    assert "live: fails too" in done.stdout, done.stdout + done.stderr
