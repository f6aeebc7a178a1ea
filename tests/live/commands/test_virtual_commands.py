"""The commands of a shell tool in virtual time: an incident with its report's own numbers, judged as it is live."""

import csv
import json
from pathlib import Path
from typing import Any

INCIDENT = Path(__file__).parents[3] / "scenarios" / "incidents" / "dangling-call"


def test_a_tool_that_outlasts_the_timeout_is_judged_as_it_is_live(wedgehog: Any, tmp_path: Path):
    """A timeout of 90 s, an abort, a service whose client hangs up, and a tool of 180 s."""
    names = ("timeout-mid-tool", "user-abort-mid-tool", "outside-cancel-mid-tool", "no-timeout-slow-tool")
    files = [INCIDENT / "scenarios" / f"{name}.yaml" for name in names]
    done = wedgehog("run", *map(str, files), "--world", "sim")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = list(csv.DictReader((tmp_path / "runs" / "latest" / "summary.csv").read_text().splitlines()))
    verdicts = {(row["scenario"], row["agent"]): (row["verdict"], row["violated"]) for row in rows}
    lost = ("fail", "session_recovers;tool_call_pairing")
    assert verdicts["timeout-mid-tool", "buggy"] == lost
    assert verdicts["timeout-mid-tool", "fixed"] == ("pass", "")
    assert verdicts["outside-cancel-mid-tool", "only-cleanup-in-run-service"] == lost
    assert verdicts["user-abort-mid-tool", "buggy"] == ("pass", "")
    turns = {row["scenario"]: float(row["turn_s"]) for row in rows}
    assert 89 < turns["timeout-mid-tool"] < 91
    assert 180 <= turns["no-timeout-slow-tool"] < 181
    both_clocks_are_shown(tmp_path / "runs" / "latest", rows, done.stderr + done.stdout)


def test_a_quick_service_without_a_limit_runs_until_its_user_leaves(wedgehog: Any):
    """In virtual time it takes no time to compute: 250 rounds, after which a turn is stopped, last longer than 90 s."""
    incident = INCIDENT.parent / "endless-loop"
    spec = f"{incident / 'agents/service.yaml'}@only-multi-row-insert"
    done = wedgehog("run", str(incident / "scenarios/endless-tools.yaml"), "--agent", spec, "--world", "sim")
    assert done.returncode == 0 and "fail (expected)" in done.stdout, done.stdout + done.stderr


def both_clocks_are_shown(campaign: Path, rows: list[dict[str, str]], told: str) -> None:
    """The virtual and the real seconds of each run: in summary.csv, on the page, and their sums for the terminal."""
    page = (campaign / "report.html").read_text()
    for row in rows:
        clocks = json.loads((campaign / row["run_dir"] / "verdicts.json").read_text())
        assert (float(row["virtual_s"]), float(row["real_s"])) == (clocks["virtual_s"], clocks["real_s"])
        assert f"Virtual time: {clocks['virtual_s']:g} s, played in {clocks['real_s']:g} s." in page
    assert f"virtual time: {sum(float(row['virtual_s']) for row in rows):.0f} s; the runs took " in told
