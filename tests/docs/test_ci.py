"""The GitHub Action and the GitLab job: their scripts are run, with a wedgehog and a gh that write down their words."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.network.toxiproxy.server import VERSION

ROOT = Path(__file__).parents[2]
STUB = '#!/bin/bash\nprintf "%s|" "$@" >> "$CALLS"; echo >> "$CALLS"\n'
WEDGEHOG = (
    f'{STUB}mkdir -p runs/1; ln -sfn 1 runs/latest; echo "## page" > runs/1/gate.md; echo "<gate/>" > runs/1/gate.xml\n'
    "exit 3\n"
)


class Machine:
    """A folder in which the steps of a job run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls = folder, folder / "calls"
        for name in ("calls", "output", "summary"):
            (folder / name).touch()

    def program(self, path: str, text: str) -> None:
        program = self.folder / path
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)

    def run(self, script: str, **env: str) -> subprocess.CompletedProcess[str]:
        own = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "CALLS": str(self.calls)}
        own |= {"RUNNER_TEMP": str(self.folder), "GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary"}
        bash = ["bash", "-eo", "pipefail", "-c", script]
        return subprocess.run(bash, cwd=self.folder, env=own | env, text=True, capture_output=True, check=False)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def step(name: str) -> Any:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    return next(it for it in action["runs"]["steps"] if it.get("name") == name)


def test_the_action_plays_with_its_inputs_and_keeps_the_exit_code(machine: Machine):
    """A path with a space stays one word, scenarios may stand on lines of their own, and the page is kept."""
    machine.program("wedgehog/bin/wedgehog", WEDGEHOG)
    (machine.folder / "base line.yaml").touch()
    inputs = {"SCENARIOS": "a.yaml\nb\n", "AGENT": "my agent.yaml", "BASELINE": "base line.yaml"}
    ran = machine.run(step("Play")["run"], **inputs, REPEAT="3", ARGS="--network embedded", NAME="chaos")
    assert ran.returncode == 0, ran.stderr
    assert machine.calls.read_text().strip() == (
        "run|a.yaml|b|--agent|my agent.yaml|--repeat|3|--out|runs|--baseline|base line.yaml|--network|embedded|"
    )
    assert (machine.folder / "output").read_text() == "exit-code=3\n"
    assert (machine.folder / "summary").read_text() == "## page\n"
    assert (machine.folder / "wedgehog-comment.md").read_text() == "<!-- wedgehog: chaos -->\n## page\n"
    assert machine.run(step("Result")["run"], CODE="3").returncode == 3
    assert machine.run(step("Result")["run"], CODE="").returncode == 1


def test_no_file_of_the_run_has_a_name_that_an_artifact_may_not_have(machine: Machine):
    """An agent names its session files; with a colon in one of them the upload would fail, and so the job."""
    odd = 's/.a/agent:"main"\t?/x|y*.jsonl'
    files = f"mkdir -p '1/{odd.rpartition('/')[0]}'; echo kept > '1/{odd}'\n"
    machine.program("wedgehog/bin/wedgehog", f"#!/bin/bash\nmkdir -p runs; cd runs; ln -sfn 1 latest\n{files}")
    words = {"SCENARIOS": "", "AGENT": "a.yaml", "REPEAT": "1", "ARGS": "", "NAME": "n", "BASELINE": ""}
    ran = machine.run(step("Play")["run"], **words)
    assert ran.returncode == 0, ran.stderr
    kept = [path for path in (machine.folder / "runs" / "1").rglob("*") if path.is_file()]
    assert [str(path.relative_to(machine.folder)) for path in kept] == ["runs/1/s/.a/agent__main___/x_y_.jsonl"]
    assert step("Keep the run")["continue-on-error"] is True, "only the run decides"


def test_without_a_baseline_file_the_run_decides(machine: Machine):
    """The first run of a repository has none."""
    machine.program("wedgehog/bin/wedgehog", WEDGEHOG)
    words = {"SCENARIOS": "", "AGENT": "a.yaml", "REPEAT": "1", "ARGS": "", "NAME": "n"}
    ran = machine.run(step("Play")["run"], **words, BASELINE="none.yaml")
    assert ran.stdout.startswith("::warning::the baseline none.yaml does not exist, so the gate is off")
    assert "::warning::" not in machine.run(step("Play")["run"], **words, BASELINE="").stdout
    machine.calls.write_text("")
    machine.run(step("Play")["run"], **words, BASELINE="none.yaml")
    assert machine.calls.read_text().strip() == "run|--agent|a.yaml|--repeat|1|--out|runs|"


def test_a_refused_run_shows_no_earlier_result(machine: Machine):
    """Neither the folder of an earlier step nor the comment of an earlier push is taken for the result of this one."""
    words = {"SCENARIOS": "", "AGENT": "a.yaml", "BASELINE": "", "REPEAT": "1", "ARGS": "", "NAME": "n"}
    machine.program("wedgehog/bin/wedgehog", WEDGEHOG)
    machine.run(step("Play")["run"], **words)
    machine.program("wedgehog/bin/wedgehog", f"{STUB}exit 2\n")
    ran = machine.run(step("Play")["run"], **words)
    assert ran.returncode == 0, ran.stderr
    assert (machine.folder / "output").read_text() == "exit-code=3\nexit-code=2\n"
    said = "## Wedgehog: nothing was played\n\nThe exit code is 2; the log of the job says why.\n"
    assert (machine.folder / "wedgehog-comment.md").read_text() == f"<!-- wedgehog: n -->\n{said}"
    assert (machine.folder / "summary").read_text() == f"## page\n{said}"


@pytest.mark.parametrize(
    ("found", "asked"), [("17\n18", "repos/o/r/issues/comments/17"), ("", "repos/o/r/issues/5/comments")]
)
def test_one_comment_is_written_and_then_changed(machine: Machine, found: str, asked: str):
    """Not a new one for each push."""
    machine.program("bin/gh", f'{STUB}[[ "$*" == *--paginate* ]] && echo "{found}"; exit 0\n')
    (machine.folder / "wedgehog-comment.md").write_text("<!-- wedgehog: n -->\n")
    ran = machine.run(step("Comment")["run"], PULL="5", REPOSITORY="o/r")
    assert ran.returncode == 0, ran.stderr
    assert f"{asked}|" in machine.calls.read_text().splitlines()[-1]


def test_a_comment_of_somebody_else_is_not_changed(machine: Machine):
    """The author of a pull request could write the mark first, and later edit the comment to look green."""
    if shutil.which("jq") is None:
        pytest.skip("no jq, which is a part of gh")
    mark = "<!-- wedgehog: n -->"
    authors = ((7, "stranger"), (8, "github-actions[bot]"))
    listed = json.dumps([{"id": number, "body": mark, "user": {"login": who}} for number, who in authors])
    (machine.folder / "listed.json").write_text(listed)
    lists = (
        """case "$*" in *graphql*) echo "github-actions[bot]";; *--paginate*) jq -r "${@: -1}" listed.json;; esac\n"""
    )
    machine.program("bin/gh", f"{STUB}{lists}")
    (machine.folder / "wedgehog-comment.md").write_text(f"{mark}\n")
    ran = machine.run(step("Comment")["run"], PULL="5", REPOSITORY="o/r")
    assert ran.returncode == 0, ran.stderr
    assert "issues/comments/8|" in machine.calls.read_text().splitlines()[-1]


def test_a_comment_that_is_not_allowed_fails_nothing(machine: Machine):
    """A fork's token may not write: a warning. Comments that cannot be listed do not lead to a second one."""
    machine.program("bin/gh", f"{STUB}exit 1\n")
    (machine.folder / "wedgehog-comment.md").write_text("<!-- wedgehog: n -->\n")
    ran = machine.run(step("Comment")["run"], PULL="5", REPOSITORY="o/r")
    assert ran.returncode == 0
    assert ran.stdout.startswith("::warning::")
    assert len(machine.calls.read_text().splitlines()) == 1


@pytest.mark.parametrize(("extras", "installed"), [("", "src"), ("plots,acp", "src[plots,acp]")])
def test_the_cache_is_that_of_the_pinned_toxiproxy(machine: Machine, extras: str, installed: str):
    """Wedgehog names its folder and version: GitHub's hashFiles reads no file of an action."""
    (machine.folder / "wedgehog" / "__init__.py").parent.mkdir()
    (machine.folder / "wedgehog" / "__init__.py").touch()  # a repository's own module is not imported
    machine.program("bin/python3", f"{STUB}exit 0\n")
    machine.program("wedgehog/bin/pip", f"{STUB}exit 0\n")
    machine.program("wedgehog/bin/python", f'#!/bin/bash\nexec {sys.executable} "$@"\n')
    cache = {"XDG_CACHE_HOME": "/cache", "HOME": "/cache", "WEDGEHOG_SOURCE": "src", "EXTRAS": extras}
    ran = machine.run(step("Install")["run"], **cache)
    assert ran.returncode == 0, ran.stderr
    assert machine.calls.read_text().splitlines() == [
        f"-I|-m|venv|{machine.folder}/wedgehog|",
        f"install|-q|{installed}|",
    ]
    found = dict(line.split("=") for line in (machine.folder / "output").read_text().splitlines())
    assert found["toxiproxy"] == VERSION and found["cache"].startswith("/cache") and found["cache"].endswith(VERSION)
    assert step("Install")["id"] == "install" and set(found) == {"toxiproxy", "cache"}
    with_words = step("Cache Toxiproxy")["with"]
    assert with_words["path"] == "${{ steps.install.outputs.cache }}"
    assert "${{ steps.install.outputs.toxiproxy }}" in with_words["key"]
    assert "hashFiles" not in (ROOT / "action.yml").read_text()


def test_inputs_reach_scripts_only_as_variables():
    """An expression inside a script would run what a pull request writes."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert [it["name"] for it in action["runs"]["steps"] if "${{" in it.get("run", "")] == []


def test_the_gitlab_job_plays_and_keeps_the_result(machine: Machine):
    """Its script lines in one shell, as GitLab runs them."""
    job = yaml.safe_load((ROOT / "docs" / "ci" / "gitlab.yml").read_text())["wedgehog"]
    machine.program(".wedgehog/bin/wedgehog", WEDGEHOG)
    words = {key: value for key, value in job["variables"].items() if key.startswith("WEDGEHOG_")}
    words["WEDGEHOG_BASELINE"] = "my baseline.yaml"
    without = machine.run("\n".join(job["script"][2:]), **words)
    assert "my baseline.yaml does not exist, so the gate is off" in without.stderr
    assert "--baseline" not in machine.calls.read_text()
    machine.calls.unlink()
    (machine.folder / words["WEDGEHOG_BASELINE"]).touch()
    refused = machine.run(job["script"][0], **words)
    assert refused.returncode == 2 and "set WEDGEHOG_SOURCE" in refused.stderr
    assert machine.run(job["script"][0], WEDGEHOG_SOURCE=".").returncode == 0
    assert machine.run("\n".join(job["script"][2:]), **words).returncode == 3
    played = "run|--agent|my-agent.yaml|--repeat|3|--out|runs|--baseline|my baseline.yaml|"
    assert machine.calls.read_text().strip() == played
    assert machine.run("\n".join(job["after_script"])).returncode == 0
    assert (machine.folder / "wedgehog.xml").read_text() == "<gate/>\n"
