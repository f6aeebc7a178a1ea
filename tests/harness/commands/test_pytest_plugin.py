"""The pytest plugin, in a pytest of its own."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from wedgehog.harness.campaign.options import Options
from wedgehog.harness.commands.fuzz import FuzzOptions

pytest_plugins = ["pytester"]

AGENT = '''\
"""A small agent that hides errors."""
import json, sys, urllib.request
body = {"model": "m", "max_tokens": 999, "messages": [{"role": "user", "content": sys.argv[2]}]}
request = urllib.request.Request(sys.argv[1] + "/v1/messages", json.dumps(body).encode(), {
    "content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"})
try:
    print(json.load(urllib.request.urlopen(request, timeout=3))["content"][0]["text"])
except OSError:
    sys.exit(0)
'''
COMMAND = ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}", "{message}"]
FINE = {"name": "fine", "why": "w", "turns": [{"user": "Hi.", "model": [{"text": "Yes. {nonce}"}]}]}
REFUSED = {**FINE, "name": "refused", "faults": [{"do": {"status": 429}}]}
BESIDE = {**FINE, "name": "beside", "turns": [{"user": "Hi.", "model": [{"tool": "none_such"}, {"text": "{nonce}"}]}]}


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with an agent, three scenarios and a test."""
    (pytester.path / "agent.py").write_text(AGENT)
    (pytester.path / "me.yaml").write_text(
        yaml.safe_dump({"name": "me", "wire": "anthropic", "command": COMMAND, "recover_s": 0})
    )
    (pytester.path / "s").mkdir()
    for scenario in (FINE, REFUSED, BESIDE):
        (pytester.path / "s" / f"{scenario['name']}.yaml").write_text(yaml.safe_dump(scenario))
    pytester.makepyfile(
        test_own="""
        def test_by_name(chaos_agent):
            assert chaos_agent("s/fine.yaml").verdict == "pass"

        def test_the_provider(fake_llm):
            assert fake_llm({"replies": [{"reply": {"text": "Hi"}}]}).url.startswith("http://127.0.0.1:")
        """
    )
    return pytester


def test_scenarios_are_tests_of_the_configured_agent(project: pytest.Pytester):
    """A pass, a failure that says what happened, and a skip; fixtures play and serve."""
    (project.path / "pytest.ini").write_text("[pytest]\nwedgehog_agent = me.yaml\n")
    done = project.runpytest_subprocess("-v", "-rs", "-p", "no:xdist", "--wedgehog-network=embedded")
    done.assert_outcomes(passed=3, failed=1, skipped=1)
    said = done.stdout.str()
    for words in (
        "s/fine.yaml::fine[me] PASSED",
        "refused x me failed: error_surfaced: turn 1: no answer and no word of an error",
        "status: 429",
        "call 1: refused with 429",
        "again: wedgehog replay ",
        "the agent advertises no tool none_such",
    ):
        assert words in said, words
    assert "Traceback" not in said and "pytest_scenarios.py" not in said
    assert "-0.00 s" not in said
    again = project.runpytest_subprocess("--lf", "--collect-only", "-q")
    assert "s/refused.yaml::refused[me]" in again.stdout.str() and "fine" not in again.stdout.str()


def test_words_choose_scenarios_as_they_choose_tests(project: pytest.Pytester):
    """Only those that are wanted are played."""
    done = project.runpytest_subprocess("-k", "fine", "--wedgehog-agent=me.yaml", "--wedgehog-network=embedded")
    done.assert_outcomes(passed=1, deselected=4)


def test_a_broken_scenario_is_one_line(project: pytest.Pytester):
    """With file and line."""
    (project.path / "s" / "broken.yaml").write_text("name: broken\nwhy: w\nturns:\n  - usr: x\n")
    done = project.runpytest_subprocess("s/broken.yaml", "--wedgehog-agent=me.yaml")
    assert done.ret != 0
    assert "broken.yaml:4: unknown key 'usr'" in done.stdout.str()
    assert "Traceback" not in done.stdout.str()


def test_without_an_agent_no_file_is_read(project: pytest.Pytester):
    """Other people's YAML files are none of ours."""
    done = project.runpytest_subprocess("s", "--collect-only")
    assert "no tests collected" in done.stdout.str()


def test_unused_it_loads_nothing_of_ours():
    """Every pytest session in the same environment imports it."""
    imported = "print([name for name in sys.modules if name.startswith('wedgehog')])"
    code = f"import sys, wedgehog.harness.commands.pytest_plugin; {imported}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(
        ["wedgehog", "wedgehog.harness", "wedgehog.harness.commands", "wedgehog.harness.commands.pytest_plugin"]
    )


def test_the_entry_point_names_the_plugin():
    """pip installs it for pytest."""
    import tomllib

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"wedgehog": "wedgehog.harness.commands.pytest_plugin"}


def test_a_test_has_virtual_time_while_it_asks_for_it(pytester: pytest.Pytester):
    """An hour takes no time, in the calendar too; the next test has the real time again."""
    pytester.makepyfile(
        """
        import asyncio, time

        async def hour():
            began = time.time()
            await asyncio.sleep(3600)
            return time.time() - began

        def test_virtual(sim_world):
            assert sim_world.run(hour) == 3600

        def test_real():
            assert time.time() > 1.7e9 and "fake" not in time.time.__name__
        """
    )
    done = pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:randomly")
    done.assert_outcomes(passed=2)


def test_the_plugin_imports_nothing_of_ours_before_it_is_used():
    """Every pytest session of its user loads it."""
    program = (
        "import sys, pytest, wedgehog.harness.commands.pytest_plugin\n"
        "print([name for name in sys.modules if name.startswith('wedgehog.') and name.count('.') > 2])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['wedgehog.harness.commands.pytest_plugin']"


SEARCHED = """\
import wedgehog

@wedgehog.given_faults(wire="openai-chat", scenarios=7, seed=3)
async def test_mine(message, *, session_dir, llm_url, key):
    return ""
"""


@pytest.mark.parametrize(
    ("options", "searched"),
    [
        ((), "seed 3, 7 scenarios, 3600 s"),
        (("--wedgehog-seed", "0"), "seed 0, 7 scenarios, 3600 s"),
        (("--wedgehog-budget", "2m"), "seed 3, None scenarios, 120 s"),
    ],
)
def test_the_command_line_says_how_a_test_searches(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], searched: str
):
    """Seed and budget are those of the decorator without an option."""

    def shown(asked: FuzzOptions, options: Options, console: object) -> None:
        raise RuntimeError(f"seed {options.seed}, {asked.most} scenarios, {asked.budget_s:g} s")

    monkeypatch.setattr(importlib.import_module("wedgehog.harness.commands.given_faults"), "Fuzz", shown)
    pytester.makepyfile(SEARCHED)
    done = pytester.runpytest_inprocess("-p", "no:xdist", "-p", "no:randomly", *options)
    done.stdout.fnmatch_lines([f"*RuntimeError: {searched}"])


def test_a_budget_that_is_no_time_is_one_line(pytester: pytest.Pytester):
    """The line says what is expected."""
    done = pytester.runpytest_inprocess("--wedgehog-budget", "soon")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*--wedgehog-budget: expected a time such as 60s, 5m or 1h, found 'soon'"])
    assert " --budget" not in done.stderr.str()
