"""What a command imports before it does anything."""

import subprocess
import sys

import pytest

DEAR = ("aiohttp", "genai_prices", "hypothesis", "mcp", "pandas", "requests", "toxiproxy", "uvloop")
"""Packages that take a tenth of a second and more to import."""
WORK = ("asyncio", "wedgehog.fake_llm", "wedgehog.harness.faults", "wedgehog.harness.record.events", "yaml")
"""What only a command needs that reads a file or plays."""


def imported(code: str) -> set[str]:
    """The modules that a new Python process has imported after this code."""
    code = f"import sys\ntry:\n    {code}\nfinally:\n    print('\\0', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\0")[1].split())


def test_a_campaign_starts_without_what_only_some_runs_need():
    """An HTTP client or server is imported where an agent, a service or Toxiproxy needs it."""
    assert not imported("import wedgehog.harness.run.campaign") & set(DEAR)


@pytest.mark.parametrize(
    ("words", "dear"),
    [
        (["--version"], {"pydantic"}),
        (["--help"], {"pydantic"}),
        (["run", "--help"], set()),  # Typer reads the types of its options with pydantic
        (["agents", "check", "--help"], set()),
    ],
)
def test_a_command_that_only_tells_imports_nothing_for_work(words: list[str], dear: set[str]):
    """Each new process would pay for these imports several times what its answer costs."""
    modules = imported(f"from wedgehog.harness.commands.cli import main; main({words})")
    assert "wedgehog.harness.commands.cli" in modules
    assert not modules & {*DEAR, *WORK, *dear}


def test_a_list_of_runs_starts_without_what_plays_them():
    """`run --dry-run` needs the options of a campaign, and neither its provider nor the simulated world."""
    modules = imported("import wedgehog.harness.run.campaign_options")
    assert not modules & {*DEAR, "wedgehog.fake_llm.server", "wedgehog.harness.sim.world"}
