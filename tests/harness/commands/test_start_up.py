"""What a command imports before it does anything."""

import subprocess
import sys
from pathlib import Path

import pytest

DEAR = ("aiohttp", "genai_prices", "hypothesis", "mcp", "numpy", "pandas", "requests", "toxiproxy", "uvloop")
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
    assert not imported("import wedgehog.harness.campaign.campaign") & set(DEAR)


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


EXTRA = ("matplotlib", "numpy", "pandas", "pyarrow")
"""What `pip install wedgehog` does not bring, and the commands below do without."""

COMMANDS = (
    "run endless-loop -k sends-again --world sim --out runs --repeat 5",
    "check runs/latest",
    "baseline runs/latest --into baseline.json",
    "compare baseline.json runs/latest",
    "export runs/latest",
)


def test_a_base_install_plays_judges_reports_and_compares(tmp_path: Path):
    """An import of an extra fails in this process; each command must work all the same, and write every report."""
    code = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRA}))
from wedgehog.harness.commands.cli import app
for words in {COMMANDS}:
    code = app(words.split(), standalone_mode=False)
    assert not code, (words, code)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    written = {path.name for path in (tmp_path / "runs" / "latest").iterdir()}
    assert written >= {"report.html", "summary.csv", "summary.md", "junit.xml", "trace.perfetto.json"}
    assert "wedgehog[plots]" in (tmp_path / "runs/latest/report.html").read_text(encoding="utf-8")


def test_serving_searching_and_judging_again_start_without_a_dear_package():
    """None of these commands needs an HTTP library, a table library or Hypothesis."""
    commands = "wedgehog.harness.commands.serve, wedgehog.harness.commands.fuzz"
    judging = "wedgehog.harness.campaign.stored, wedgehog.reports.facts, wedgehog.reports.terminal"
    assert not imported(f"import {commands}, {judging}") & {*DEAR, "acp", "urllib3"}


def test_the_worker_of_the_simulated_world_starts_without_the_command_line():
    """It prints no table; and nothing of it is imported before searches for garbage are rare."""
    begun = imported("import wedgehog.harness.run.simulated.sim_start")
    assert not {name for name in begun if name.startswith("wedgehog.harness.run.simulated.sim_worker")} | begun & {
        *DEAR,
        *WORK,
    }
    assert not imported("import wedgehog.harness.run.simulated.sim_worker") & {*DEAR, "acp", "rich", "typer"}


def test_a_list_of_runs_starts_without_what_plays_them():
    """`run --dry-run` needs the options of a campaign, and neither its provider nor the simulated world."""
    modules = imported("import wedgehog.harness.campaign.options")
    assert not modules & {*DEAR, "wedgehog.fake_llm.server", "wedgehog.harness.sim.world"}


def test_a_run_without_a_baseline_starts_without_the_gate():
    """It takes as long to import as the whole report."""
    modules = imported("from wedgehog.harness.commands.cli_gate import read_for_gate; read_for_gate(None)")
    assert "wedgehog.harness.commands.cli_gate" in modules and "wedgehog.reports.gate" not in modules
