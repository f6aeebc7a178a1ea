"""What the tutorial and the pages about specs promise is what happens: their files run as they stand."""

import json
import re
import shlex
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import pytest


@pytest.fixture
def folder(docs: Path, tmp_path: Path) -> Path:
    """The tutorial's folder, as its reader would have it."""
    return Path(shutil.copytree(docs / "examples" / "tutorial", tmp_path / "tutorial"))


@pytest.fixture
def played(wedgehog: Any) -> Any:
    """Runs the command; its exit code, the one row of its summary, and what it printed."""

    def run(scenario: Path, agent: Path, out: Path, *more: str) -> tuple[int, dict[str, Any], str]:
        words = ("run", str(scenario), "--agent", str(agent), *more, "--network", "embedded", "--out", str(out))
        done = wedgehog(*words)
        rows = pd.read_csv(out / "latest" / "summary.csv", keep_default_na=False).to_dict("records")
        assert len(rows) == 1, done.stderr
        return done.returncode, rows[0], " ".join(done.stdout.split())

    return run


def test_the_tutorials_agent_is_red(played: Any, folder: Path, docs: Path, tmp_path: Path):
    """Without a time-out one stalled answer is a turn that never ends; the page shows what is said of it."""
    code, row, said = played(folder / "stall-once.yaml", folder / "my-agent.yaml", tmp_path / "runs")
    assert (code, row["verdict"], row["violated"], row["faults_fired"]) == (1, "fail", "turn_deadline", 1)
    page = " ".join((docs / "tutorial.md").read_text().split())
    parts = (
        ("≥ The agent was stopped, or recording ended", "lower bounds."),
        ("turn 1 gave no answer and no error", "open since"),
        ("How to fix turn_deadline:", r"at least \$[\d.]+"),
    )
    for begins, ends in parts:
        shown = re.search(f"{begins}.*?{ends}", page)
        assert shown is not None and shown[0] in said


def test_the_tutorials_fix_makes_it_green(played: Any, folder: Path, tmp_path: Path):
    """With a time-out and one more try the same fault costs a call and no answer."""
    shutil.copy(folder / "agent_fixed.py", folder / "agent.py")
    code, row, _ = played(folder / "stall-once.yaml", folder / "my-agent.yaml", tmp_path / "runs")
    assert (code, row["verdict"], row["paid_calls"], row["faults_fired"]) == (0, "pass", 2, 1)


def test_the_tutorials_next_fault_is_red_again(played: Any, folder: Path, tmp_path: Path):
    """A body that ends too soon raises an exception that the fixed agent does not catch."""
    shutil.copy(folder / "agent_fixed.py", folder / "agent.py")
    scenario = folder / "stall-once.yaml"
    scenario.write_text(scenario.read_text().replace("{stall: forever}", "{cut: fin}"))
    code, row, _ = played(scenario, folder / "my-agent.yaml", tmp_path / "runs")
    assert (code, row["violated"], row["paid_calls"]) == (1, "turn_answered", 1)
    assert "IncompleteRead" in (tmp_path / "runs" / "latest" / row["run_dir"] / "agent.log").read_text()


@pytest.mark.parametrize(
    ("do", "verdict"), [("{cut: rst}", "pass"), ("{drip: 1}", "fail"), ("{status: 429}", "pass")], ids=str
)
def test_the_faults_to_try_next_can_be_played(played: Any, folder: Path, tmp_path: Path, do: str, verdict: str):
    """Each fault that the page proposes, written as it says."""
    shutil.copy(folder / "agent_fixed.py", folder / "agent.py")
    scenario = folder / "stall-once.yaml"
    text = scenario.read_text().replace("{stall: forever}", do)
    scenario.write_text(text.replace(", byte: 100", "") if "status" in do else text)
    soon = ("--turn-s", "0.1") if verdict == "fail" else ()  # a turn without an end need not be watched for long
    _, row, _ = played(scenario, folder / "my-agent.yaml", tmp_path / "runs", *soon)
    assert (row["verdict"], row["faults_fired"]) == (verdict, 1)


def test_the_tutorial_shows_what_the_catalogue_finds_in_the_fixed_agent(
    wedgehog: Any, folder: Path, docs: Path, tmp_path: Path
):
    """Each red that its reader gets stands on the page, word by word."""
    shutil.copy(folder / "agent_fixed.py", folder / "agent.py")
    names = ("empty-reply-once", "key-expires-in-a-session", "rate-limited-once")
    options = ("--agent", str(folder / "my-agent.yaml"), "--network", "embedded", "--out", str(tmp_path / "runs"))
    done = wedgehog("run", *names, *options)
    found = re.findall(r"✗ .*?: (?=\w+: )(.*)", done.stdout.split("Not passed")[1])
    page = " ".join((docs / "tutorial.md").read_text().split())
    shown = {re.sub(r"\d+\.\d\d s, ", "N s, ", reason) for reason in found}
    assert (done.returncode, len(shown)) == (1, 3), done.stdout
    assert all(reason in re.sub(r"\d+\.\d\d s, ", "N s, ", page) for reason in shown), shown


def test_the_tutorial_ends_green(wedgehog: Any, folder: Path, docs: Path, tmp_path: Path):
    """Its last agent passes the starters, with the totals that the page shows, and a body that ends too early."""
    shutil.copy(folder / "agent_green.py", folder / "agent.py")
    options = ("--agent", str(folder / "my-agent.yaml"), "--network", "embedded", "--out", str(tmp_path / "runs"))
    done = wedgehog("run", *options)
    totals = re.search(r"\d+ passed, 0 failed, \d+ skipped", done.stdout)
    assert done.returncode == 0 and totals, done.stdout
    assert totals[0] in (docs / "tutorial.md").read_text()
    cut = folder / "cut.yaml"
    cut.write_text((folder / "stall-once.yaml").read_text().replace("{stall: forever}", "{cut: fin}"))
    assert wedgehog("run", str(cut), *options).returncode == 0


@pytest.mark.parametrize("spec", ["callable/callable.yaml", "service/service.yaml"])
def test_the_example_specs_talk_to_their_agents(played: Any, docs: Path, tmp_path: Path, spec: str):
    """A function and a service pass their control run and surface an overloaded provider."""
    examples = docs / "examples"
    code, row, said = played(examples / "overloaded.yaml", examples / spec, tmp_path / "runs")
    assert (code, row["verdict"], row["refused_calls"]) == (0, "pass", 1), said


def test_the_example_plugins_are_used_by_a_scenario_and_by_its_replay(
    played: Any, wedgehog: Any, docs: Path, tmp_path: Path
):
    """A fault and an invariant from two files; without them the scenario can't be read, and says so."""
    examples, out = docs / "examples", tmp_path / "runs"
    spec = Path(str(files("wedgehog.scenarios"))) / "incidents" / "dangling-call" / "agents" / "both.yaml"
    plugins = [f"--plugin={examples / name}.py" for name in ("renamed_tool", "one_answer_per_turn")]
    code, row, said = played(examples / "renamed-tool.yaml", spec, out, *plugins)
    assert (code, row["verdict"], row["faults_fired"]) == (0, "pass", 1), said
    kept = json.loads((out / "latest" / row["run_dir"] / "verdicts.json").read_text())
    assert "one_answer_per_turn" in [verdict["name"] for verdict in kept["verdicts"]]
    for again in (["check", str(out / "latest"), *plugins], [*shlex.split(row["replay"])[1:], "--network=embedded"]):
        done = wedgehog(*again)
        assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stderr
    bare = wedgehog("check", str(out / "latest"))
    assert (bare.returncode, bare.stdout) == (2, "") and "no fault is called 'renamed_tool'" in bare.stderr


@pytest.mark.parametrize("page", ["tutorial.md", "write-an-invariant.md", "write-a-fault.md", "agents.md", "script.md"])
def test_a_page_shows_its_example_as_it_is(docs: Path, page: str):
    """A code block under a link to docs/examples holds the file, letter by letter."""
    shown = re.findall(r"\[`[^`]+`\]\((examples/[^)]+)\):\n\n```\w+\n(.*?)```", (docs / page).read_text(), re.DOTALL)
    assert shown
    for name, text in shown:
        assert text == (docs / name).read_text(), name
