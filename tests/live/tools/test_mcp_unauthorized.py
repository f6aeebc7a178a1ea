"""Agents whose MCP server refuses them, with 429 or 401: one tells the model or goes on, one repeats it, one waits."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the MCP package is not installed")

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "tools"
FAILED = 'return f"The tool failed: {type(wrong).__name__}"'
UNREACHED = "            return []"
AGENTS = {
    "sound": (FAILED, UNREACHED),
    "repeats": (
        "await asyncio.sleep(0.5)\n            return await self.result(call)",
        "            await asyncio.sleep(0.1)\n            return await self.listed()",
    ),
    "waits": ("await asyncio.Event().wait()", "            await asyncio.Event().wait()"),
}
"""What each agent does with a call that failed, and with a server to which it cannot connect."""
SCENARIOS = ("mcp-rate-limited-once", "mcp-unauthorized-always", "mcp-unauthorized-at-start")


@pytest.fixture
def environment(environment: dict[str, str], warm_python: str) -> dict[str, str]:
    """Agents and servers are forked from a process that has imported the MCP package."""
    return environment | {"WEDGEHOG_TEST_PYTHON": warm_python}


def written(folder: Path, name: str) -> str:
    """The spec of an agent that does so."""
    code, spec = (EXAMPLE / "agent.py").read_text(), (EXAMPLE / "http.yaml").read_text()
    failed, unreached = AGENTS[name]
    assert code.count(FAILED) == code.count(UNREACHED) == 1
    (folder / f"{name}.py").write_text(code.replace(FAILED, failed).replace(UNREACHED, unreached))
    spec = spec.replace("agent.py", f"{name}.py").replace("tools-over-http", name)
    assert "turn_s: 30, tool_s: 20" in spec  # agents with different limits would all get the stock bound
    spec = spec.replace("turn_s: 30, tool_s: 20", "turn_s: 8, tool_s: 4")
    (folder / f"{name}.yaml").write_text(spec)
    return str(folder / f"{name}.yaml")


def test_an_agent_passes_that_tells_of_a_refusal_and_fails_if_it_never_ends(wedgehog: Any, tmp_path: Path):
    """A repeat helps where the refusal comes once, and never ends where it comes always."""
    agents = [word for name in AGENTS for word in ("--agent", written(tmp_path, name))]
    out = ("--out", str(tmp_path / "runs"))
    for turn_s in ("6", "24"):  # (on a busy machine an agent makes too few requests in the first)
        # The agents of one campaign share one bound of a turn: 120 s, whatever their specs say.
        done = wedgehog("run", *SCENARIOS, *agents, "--network=embedded", "--turn-s", turn_s, "--jobs=3", *out)
        rows = pd.read_csv(tmp_path / "runs" / "latest" / "summary.csv", keep_default_na=False)
        red = {(row.agent, row.scenario.rpartition("-")[2]): row.violated for row in rows.itertuples()}
        if "tool_refusal_bound" in red["repeats", "start"]:
            break
    assert "tool_refusal_bound" in red["repeats", "start"] and "tool_refusal_bound" not in red["waits", "start"], red
    assert {key: bool(violated) for key, violated in red.items()} == {
        ("sound", "once"): False,
        ("sound", "always"): False,
        ("sound", "start"): False,
        ("repeats", "once"): False,
        ("repeats", "always"): True,
        ("repeats", "start"): True,
        ("waits", "once"): True,
        ("waits", "always"): True,
        ("waits", "start"): True,
    }, done.stdout
    assert all("turn_deadline" in violated for violated in red.values() if violated), red
    assert (rows.faults_fired > 0).all() and set(rows.verdict) == {"pass", "fail"}
