"""Bugs of public reports, planted one by one: the catalogue sees each, and the agent without them passes."""

import csv
from pathlib import Path
from typing import Any

import pytest

SPEC = """\
name: {name}
wire: anthropic
command: ["{{python}}", {agent}, "{bugs}", "{{llm_url}}", "{{session_dir}}", "-", "{{message}}"]
simulate: {agent}:simulate
session_files: ["{{session_dir}}/*.jsonl"]
abort: SIGINT
recover_s: 0
"""
PLANTED = {
    "broken-event-once": ("skips-broken-events", {"truncation_noticed"}),
    "reply-has-only-thoughts": ("empty-is-an-answer", {"error_surfaced", "session_recovers"}),
    "abort-among-tools": ("no-repair", {"tool_call_pairing", "session_recovers"}),
    "unknown-tool": ("unknown-tool-is-empty", {"missing_tool_told"}),
    "server-error-always": ("stores-the-failure", {"session_recovers"}),
    "command-prints-nothing": (
        "empty-result-is-left-out",
        {"tool_call_pairing", "session_recovers", "tools_alive", "turn_answered"},
    ),
}
OF_TOOLS = {
    "two-kinds-of-tools-at-once": ("one-kind-of-tool", {"turn_answered"}),
    "mcp-tools-with-unusual-schemas": ("expects-properties", {"turn_answered", "session_recovers"}),
}
STRICT = {
    "command-prints-nothing": ("asks-twice", {"asked_once"}),
    "thoughts-before-a-tool": ("says-it-twice", {"said_once"}),
    "command-fails": ("no-words-of-a-failure", {"failure_told"}),
    "one-of-two-tools-fails": ("failure-looks-like-success", {"failure_told"}),
    "command-never-ends": ("a-stop-has-no-output", {"failure_told"}),
    "command-prints-a-lot": ("cuts-silently", {"cut_told"}),
    "server-error-after-tool-always": ("loses-history-after-an-error", {"history_kept"}),
    "key-refused": ("hides-the-cause", {"cause_told"}),
    "rate-limited-for-some-tries": ("tries-twice", {"turn_answered"}),
    "error-in-stream-after-tool": ("drops-words", {"words_kept"}),
    "abort-in-a-later-turn": ("an-old-lock-resets", {"history_kept"}),
    "killed-in-a-later-turn": ("an-old-lock-resets", {"history_kept"}),
    "slow-but-alive": ("stores-its-answer-twice", {"said_once"}),
    "window-reached": ("never-compacts", {"session_goes_on"}),
}


def _spec(folder: Path, name: str, bugs: str) -> str:
    path = folder / f"{name}.yaml"
    path.write_text(SPEC.format(name=name, bugs=bugs, agent=Path(__file__).with_name("plantable.py")))
    return str(path)


def _violated(campaign: Path, column: str = "violated") -> dict[tuple[str, str], set[str]]:
    rows = csv.DictReader((campaign / "summary.csv").read_text().splitlines())
    return {(row["agent"], row["verdict"]): set(filter(None, row[column].split(";"))) for row in rows}


@pytest.mark.parametrize("scenario", sorted(PLANTED))
def test_a_planted_bug_is_red_and_the_sound_agent_green(wedgehog: Any, tmp_path: Path, scenario: str):
    """In virtual time; exactly the invariants that the survey names."""
    bugs, red = PLANTED[scenario]
    agents = [word for it in (("sound", "none"), ("planted", bugs)) for word in ("--agent", _spec(tmp_path, *it))]
    done = wedgehog("run", scenario, *agents, "--world", "sim")
    found = _violated(tmp_path / "runs" / "latest")
    assert found == {("sound", "pass"): set(), ("planted", "fail"): red}, done.stdout + done.stderr


@pytest.mark.parametrize("scenario", sorted(OF_TOOLS))
def test_a_planted_bug_with_tools_of_a_server_is_red(wedgehog: Any, tmp_path: Path, scenario: str):
    """In the live world: the host of the tools is a process."""
    bugs, red = OF_TOOLS[scenario]
    agents = [word for it in (("sound", "none"), ("planted", bugs)) for word in ("--agent", _spec(tmp_path, *it))]
    for path in tmp_path.glob("*.yaml"):
        path.write_text(path.read_text().replace('"-"', '"{tool_url}"') + "tools: http\n")
    done = wedgehog("run", scenario, *agents)
    found = _violated(tmp_path / "runs" / "latest")
    assert found == {("sound", "pass"): set(), ("planted", "fail"): red}, done.stdout + done.stderr


@pytest.mark.parametrize("scenario", sorted(STRICT))
def test_a_planted_bug_of_a_lesser_kind_is_red_at_level_strict_only(wedgehog: Any, tmp_path: Path, scenario: str):
    """The sound agent is green at both levels. A kill needs a process, all else is played in virtual time."""
    bugs, red = STRICT[scenario]
    agents = [word for it in (("sound", "none"), ("planted", bugs)) for word in ("--agent", _spec(tmp_path, *it))]
    world = "live" if "killed" in scenario else "sim"
    done = wedgehog("run", scenario, *agents, "--world", world)
    found = _violated(tmp_path / "runs" / "latest", "strict")
    assert found == {("sound", "pass"): set(), ("planted", "pass"): red}, done.stdout + done.stderr


def test_half_a_thought_in_the_session_is_red_where_the_turn_is_stopped_in_it(wedgehog: Any, tmp_path: Path):
    """It has no signature, and the provider refuses it with each later message."""
    pairs = (("sound", "thinks"), ("planted", "thinks,keeps-half-a-thought"))
    agents = [word for it in pairs for word in ("--agent", _spec(tmp_path, *it))]
    done = wedgehog("run", "abort-in-mid-thought", *agents, "--world", "sim")
    found = _violated(tmp_path / "runs" / "latest")
    red = {"session_recovers"}
    assert found == {("sound", "pass"): set(), ("planted", "fail"): red}, done.stdout + done.stderr


def test_a_timer_over_the_whole_reply_is_red_at_level_strict_where_a_reply_takes_minutes(wedgehog: Any, tmp_path: Path):
    """Each try is cut by it; a timer of silence alone lets the reply come."""
    pairs = (("patient", "no-total-timer"), ("hasty", "none"))
    agents = [word for it in pairs for word in ("--agent", _spec(tmp_path, *it))]
    done = wedgehog("run", "reply-takes-minutes", *agents, "--world", "sim")
    found = _violated(tmp_path / "runs" / "latest", "strict")
    assert found == {("patient", "pass"): set(), ("hasty", "pass"): {"turn_answered"}}, done.stdout + done.stderr
