"""`wedgehog run --world sim`: the same scenarios, runner, history, invariants and reports, in virtual time."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.live.together import entry, play
from wedgehog.harness.campaign.options import Options

AGENT = Path(__file__).with_name("virtual_agents.py")


Wedgehog = Callable[..., "subprocess.CompletedProcess[str]"]


def in_a_new_process(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "wedgehog.harness.commands.cli", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def spec(folder: Path, function: str, more: str = "") -> Path:
    file = folder / f"{function}.yaml"
    file.write_text(f"name: {function}\nwire: anthropic\ncallable: '{AGENT}:{function}'\nrecover_s: 0\n{more}")
    return file


def played(wedgehog: Wedgehog, folder: Path, function: str, *scenarios: str, out: str = "runs") -> list[Path]:
    """Folders of the runs."""
    agent = spec(folder, function)
    done = wedgehog("run", *scenarios, "--agent", str(agent), "--world", "sim", "--out", out)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [folder / out / "latest" / scenario / function for scenario in scenarios]


def judgement(run: Path) -> dict[str, object]:
    return json.loads((run / "verdicts.json").read_text())


def test_minutes_are_judged_by_the_virtual_clock(wedgehog: Wedgehog, tmp_path: Path):
    once, always = played(wedgehog, tmp_path, "answer", "stall-once", "stall-always")
    assert (judgement(once)["verdict"], judgement(always)["verdict"]) == ("pass", "pass")
    for run in (once, always):
        told = judgement(run)
        assert (told["world"], told["network"]) == ("sim", "sim")
        assert float(str(told["virtual_s"])) > 50 > float(str(told["real_s"]))
    page = (tmp_path / "runs" / "latest" / "report.html").read_text()
    assert "Virtual time: " in page and " s, played in " in page


@pytest.mark.parametrize("function", ["blocks", "runs_a_loop"])
def test_a_function_that_blocks_is_played_in_virtual_time_too(wedgehog: Wedgehog, tmp_path: Path, function: str):
    pytest.importorskip("greenlet")
    (run,) = played(wedgehog, tmp_path, function, "stall-always")
    told = judgement(run)
    assert told["verdict"] == "pass" and float(str(told["virtual_s"])) > 100 > float(str(told["real_s"]))


def test_an_agent_that_ends_its_process_is_an_error_of_that_run_alone(wedgehog: Wedgehog, tmp_path: Path):
    """The other run is judged, and the reports are written."""
    agent = spec(tmp_path, "dies")
    done = wedgehog("run", "stall-once", "reset-mid-reply", "--agent", str(agent), "--world", "sim")
    assert done.returncode == 3 and "Traceback" not in done.stdout + done.stderr
    stalled, cut = (judgement(tmp_path / "runs" / "latest" / it / "dies") for it in ("stall-once", "reset-mid-reply"))
    assert (stalled["verdict"], cut["verdict"]) == ("error", "pass")
    assert "the process of the simulated run ended: by the agent's code" in str(stalled["says"])
    assert stalled["virtual_s"] is None, "five seconds after the last event of its history"
    assert f"virtual time: {cut['virtual_s']:.0f} s; the runs took " in done.stdout
    assert "Virtual time: 0 s" not in (tmp_path / "runs" / "latest" / "report.html").read_text()


def test_an_agent_that_computes_without_an_end_is_an_error_of_that_run_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """No virtual time passes meanwhile, so it is stopped by the processor time that it has used."""
    monkeypatch.setattr("wedgehog.harness.run.simulated.sim_worker.CPU_LIMIT_S", 2.0)
    pairs = [entry(story, spec(tmp_path, "computes")) for story in ("stall-once", "reset-mid-reply")]
    found = play(pairs, Options(tmp_path / "runs", world="sim"))
    stalled, cut = (found[story, "computes"] for story in ("stall-once", "reset-mid-reply"))
    assert (stalled.verdict, cut.verdict) == ("error", "pass")
    assert "was stopped after 2 s of processor time: the agent computed without waiting" in stalled.says


def test_the_same_seed_gives_the_same_history(tmp_path: Path):
    """Byte for byte, in another campaign, by another process with another hash seed."""
    wedgehog = partial(in_a_new_process, tmp_path)
    histories = {
        (played(wedgehog, tmp_path, "answer", "stall-once", out=out)[0] / "history.jsonl").read_bytes()
        for out in ("one", "two")
    }
    assert len(histories) == 1


def test_a_hang_is_found_and_its_tasks_say_where(wedgehog: Wedgehog, tmp_path: Path):
    (run,) = played(wedgehog, tmp_path, "hangs", "stall-always")
    assert judgement(run)["violated"] == ["turn_deadline"]
    told = json.loads((run / "hang-1.json").read_text())
    assert "it waited for the reply to call 1 on llm" in told["says"]
    assert any("hangs at virtual_agents.py:" in line for line in told["tasks"])


def test_the_replay_is_simulated_too(wedgehog: Wedgehog, tmp_path: Path):
    (run,) = played(wedgehog, tmp_path, "hangs", "stall-always")
    words = str(judgement(run)["replay"]).split()
    assert words[-2:] == ["--world", "sim"]
    again = wedgehog(*words[1:], "--out", "again")
    assert again.returncode == 1, again.stderr
    replayed = tmp_path / "again" / "latest" / "stall-always" / "hangs"
    assert (replayed / "history.jsonl").read_bytes() == (run / "history.jsonl").read_bytes()


def test_a_stored_run_is_judged_again_with_its_clocks(wedgehog: Wedgehog, tmp_path: Path):
    (run,) = played(wedgehog, tmp_path, "answer", "stall-once")
    before = judgement(run)
    assert wedgehog("check", str(run)).returncode == 0
    assert judgement(run) == before


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("starts_a_thread", "a thread ("),
        ("starts_a_process", "a child process is not simulated: it needs the live world (`--world live`)"),
    ],
)
def test_an_agent_that_needs_the_live_world_gets_one_clear_line(
    wedgehog: Wedgehog, tmp_path: Path, function: str, says: str
):
    agent = spec(tmp_path, function)
    done = wedgehog("run", "stall-once", "--agent", str(agent), "--world", "sim")
    assert done.returncode == 3
    assert says in str(judgement(tmp_path / "runs" / "latest" / "stall-once" / function)["says"])


def test_what_runs_as_a_process_is_skipped_with_the_reason(wedgehog: Wedgehog, tmp_path: Path):
    agent = tmp_path / "command.yaml"
    agent.write_text("name: command\nwire: anthropic\ncommand: [echo, '{message}']\n")
    done = wedgehog("run", "stall-once", "--agent", str(agent), "--world", "sim")
    told = judgement(tmp_path / "runs" / "latest" / "stall-once" / "command")
    assert (
        told["skipped"]
        == "a command runs as a process, and the spec has no `simulate`: it needs the live world (`--world live`)"
    )
    assert done.returncode == 3, "nothing was judged"


def test_an_incident_runs_at_full_scale_with_its_own_expectations(wedgehog: Wedgehog, tmp_path: Path):
    """The same scenario and specimen as live, with the report's 60, 75 and 90 s."""
    incident = Path(__file__).parents[3] / "scenarios" / "incidents" / "endless-loop"
    done = wedgehog("run", str(incident / "scenarios" / "continuation-stalls.yaml"), "--world", "sim")
    assert done.returncode == 0, done.stdout + done.stderr
    runs = sorted((tmp_path / "runs" / "latest" / "continuation-stalls").iterdir())
    told = {run.name: judgement(run) for run in runs}
    assert all(one["as_expected"] for one in told.values())
    assert 60 < float(str(told["buggy"]["virtual_s"])) < 90 < float(str(told["fixed-report"]["virtual_s"]))
    started = json.loads((runs[0] / "history.jsonl").read_text().splitlines()[0])
    assert started["time_scale"] == 1.0


def test_a_storm_of_a_command_is_simulated(wedgehog: Wedgehog, tmp_path: Path):
    """160 attempts, each a connection of its own in memory."""
    incident = Path(__file__).parents[3] / "scenarios" / "incidents" / "retry-storm"
    scenario, agent = incident / "scenarios" / "storm-after-headers.yaml", incident / "agents" / "anthropic.yaml"
    done = wedgehog("run", str(scenario), "--agent", str(agent), "--world", "sim")
    assert done.returncode == 0, done.stdout + done.stderr
    told = judgement(tmp_path / "runs" / "latest" / "storm-after-headers" / "buggy")
    assert told["violated"] == ["paid_call_bound", "retry_discipline"]
    assert "step 1 of turn 1 was paid 160 times" in str(told["says"])
