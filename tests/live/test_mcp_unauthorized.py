"""Agents whose MCP server refuses a call, with 429 or 401: one makes it a result, one repeats it, one waits."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the MCP package is not installed")

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "tools"
FAILED = 'return f"The tool failed: {type(wrong).__name__}"'
AGENTS = {
    "sound": FAILED,
    "repeats": "await asyncio.sleep(0.5)\n            return await self.result(call)",
    "waits": "await asyncio.Event().wait()",
}
"""What each agent does with a call that failed."""
SCENARIOS = ("mcp-rate-limited-once", "mcp-unauthorized-always")


@pytest.fixture
def environment(environment: dict[str, str], warm_python: str) -> dict[str, str]:
    """Agents and servers are forked from a process that has imported the MCP package."""
    return environment | {"WEDGEHOG_TEST_PYTHON": warm_python}


def written(folder: Path, name: str) -> str:
    """The spec of an agent that does so."""
    code, spec = (EXAMPLE / "agent.py").read_text(), (EXAMPLE / "http.yaml").read_text()
    assert code.count(FAILED) == 1
    (folder / f"{name}.py").write_text(code.replace(FAILED, AGENTS[name]))
    spec = spec.replace("agent.py", f"{name}.py").replace("tools-over-http", name)
    if name != "sound":
        spec = spec.replace("turn_s: 30, tool_s: 20", "turn_s: 5, tool_s: 4")
    (folder / f"{name}.yaml").write_text(spec)
    return str(folder / f"{name}.yaml")


def test_an_agent_passes_that_tells_of_a_refusal_and_fails_if_it_never_ends(wedgehog: Any, tmp_path: Path):
    """A repeat helps where the refusal comes once, and never ends where it comes always."""
    agents = [word for name in AGENTS for word in ("--agent", written(tmp_path, name))]
    out = ("--out", str(tmp_path / "runs"))
    done = wedgehog("run", *SCENARIOS, *agents, "--network", "embedded", "--jobs", "2", *out, timeout=300)
    rows = pd.read_csv(tmp_path / "runs" / "latest" / "summary.csv", keep_default_na=False)
    red = {(row.agent, row.scenario.rpartition("-")[2]): row.violated for row in rows.itertuples()}
    assert {key: bool(violated) for key, violated in red.items()} == {
        ("sound", "once"): False,
        ("sound", "always"): False,
        ("repeats", "once"): False,
        ("repeats", "always"): True,
        ("waits", "once"): True,
        ("waits", "always"): True,
    }, done.stdout
    assert all("turn_deadline" in violated for violated in red.values() if violated), red
    assert (rows.faults_fired > 0).all() and set(rows.verdict) == {"pass", "fail"}
