"""Words of a scenario about processes, and about a message in the middle of another turn."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.faults.actor.processes import DiskFull, Freeze, Kill
from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.faults.process_fault import Speak
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.skip_reasons import why_skipped
from wedgehog.harness.scenario.fault_config import FaultConfig
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.trigger import AfterStart, AtReply, AtTool

HEAD = {"name": "s", "why": "because"}
IDLE_KILL = {"kill": {"whom": "worker"}}
STRIKES_IDLE = {"link": "agent", "at": {"turn": 2, "session": "idle"}, "do": IDLE_KILL}
TURN = {"user": "Go.", "model": [{"text": "Done {nonce}"}]}


def scenario(*more: dict[str, Any], **words: Any) -> Scenario:
    return Scenario.model_validate({**HEAD, "turns": [TURN, *more], **words})


@pytest.mark.parametrize(
    ("do", "fault"),
    [
        ("kill", Kill("SIGKILL", "tree", False)),
        ({"kill": "SIGTERM"}, Kill("SIGTERM")),
        ({"kill": {"whom": "tool"}}, Kill(whom="tool")),
        ({"kill": {"tear": True}}, Kill(tear=True)),
        ({"freeze": 5}, Freeze(5)),
        ({"freeze": {"for_s": 5, "whom": "leader"}}, Freeze(5, "leader")),
        ("disk_full", DiskFull(0)),
        ({"disk_full": 8192}, DiskFull(8192)),
    ],
)
def test_faults_on_processes_are_written_like_any_other(do: Any, fault: Any):
    """The main parameter stands alone."""
    assert parse_fault(do) == fault


@pytest.mark.parametrize(
    ("do", "said"),
    [
        ({"kill": "SIGTREM"}, "did you mean 'SIGTERM'"),
        ({"kill": "SIGSTOP"}, "signal: expected `SIGKILL`"),
        ({"kill": {"whom": "parent"}}, "whom: expected `tree`"),
        ({"freeze": "forever"}, "seconds"),
        ("freeze", "freeze needs for_s"),
        ({"freeze": 0}, "seconds"),
        ({"freeze": {"for_s": 1, "whom": "server"}}, "whom: expected `tree`"),
        ({"disk_full": -1}, "0"),
        ({"message": 2}, "no fault is called 'message'"),
    ],
)
def test_what_they_cannot_do_is_said(do: Any, said: str):
    """One sentence."""
    with pytest.raises(ValueError, match=said):
        parse_fault(do)


def test_a_freeze_is_as_fast_as_its_story_and_a_disk_has_no_time():
    """A time scale divides seconds, and nothing else."""
    assert Freeze(60).scaled(30) == Freeze(2)
    assert DiskFull(4096).scaled(30) == DiskFull(4096)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"do": "kill"}, "kill is done to processes: write `link: agent`"),
        ({"do": {"freeze": 1}, "link": "channel"}, "write `link: agent`"),
        ({"do": "kill", "link": "tool:mcp"}, "write `link: agent`, or `whom: server`"),
        ({"do": {"kill": {"whom": "server"}}, "link": "agent"}, "write `link: tool:mcp`"),
        ({"do": {"status": 500}, "link": "agent"}, "write `link: llm`"),
        ({"do": "stall", "link": "agent"}, "stall is nothing that is done to processes"),
        ({"do": "stall", "link": "tool:mcp", "at": {"phase": "connect"}}, "counts bytes: write `tool: 1`"),
        (
            {"do": "kill", "link": "agent", "at": {"phase": "connect"}},
            "kill is done to processes: write one of headers, body, middle, terminal, linger",
        ),
        ({"do": "early_end", "at": {"phase": "linger"}}, "`phase` is for faults on processes"),
        ({"do": "early_end", "at": {"phase": "terminal"}}, "leave `phase` out, and name its call"),
        ({"do": "refusal", "at": {"phase": "middle"}}, "changes the whole answer"),
        ({"do": {"status": 429}, "at": {"byte": 100}}, "leave `byte` out, and name its call"),
        ({"do": "tool_instead"}, "fires beside the conversation: write `on: compaction` or `on: background`"),
        ({"do": "tool_instead", "at": {"on": "subagent"}}, "fires beside the conversation"),
        ({"do": "stall", "at": {"session": "written"}}, "`session` is for faults on processes"),
        ({"do": "kill", "link": "agent", "at": {"session": "read"}}, "written"),
        ({"do": "kill", "link": "agent", "at": {"session": "written", "event": 1}}, "either session or event"),
        ({"do": "kill", "link": "agent", "at": {"session": "written", "tool": 1}}, "either session or tool"),
        ({"do": "kill", "link": "agent", "at": {"session": "idle"}}, "write `whom: worker`"),
        ({"do": IDLE_KILL, "link": "agent", "at": {"session": "idle", "step": 2}}, "is idle: leave `step` out"),
    ],
)
def test_a_fault_and_its_place_go_together(words: dict[str, Any], said: str):
    """What could never strike is refused when it is read."""
    with pytest.raises(ValidationError, match=said):
        FaultConfig.model_validate(words)


@pytest.mark.parametrize(
    ("turns", "faults", "said"),
    [
        ([{**TURN, "during": {"turn": 2}}], [], "`during` names an earlier turn"),
        ([TURN, {**TURN, "during": {"turn": 4}}], [], "`during` names an earlier turn"),
        ([{**TURN, "during": {"phase": "connect"}}], [], "given at headers, body, middle, terminal or linger"),
        ([{**TURN, "during": {"turn": 1}}], [{"at": {"turn": 2}, "do": "abort"}], "cannot tell two turns apart"),
        ([TURN, {**TURN, "at_once": True}], [], "no fault stops the turn before: write `do: abort`"),
        ([TURN, {**TURN, "at_once": True, "pause_s": 1}], [{"do": "abort"}], "follows at once has no pause"),
        ([TURN, {**TURN, "at_once": True, "during": {"turn": 1}}], [], "does not follow on its stop"),
        ([TURN], [STRIKES_IDLE], "give this turn `pause_s: 4`"),
    ],
)
def test_a_message_is_given_during_an_earlier_turn(turns: Any, faults: Any, said: str):
    """And only one of two turns at once can be stopped."""
    with pytest.raises(ValidationError, match=said):
        scenario(*turns, faults=faults)


def test_messages_are_no_faults_of_the_plan():
    """They have a trigger each, and its delay is the story's."""
    calls = {"user": "Run it.", "model": [{"tool": "shell"}]}
    it = scenario(calls, {**TURN, "during": {"turn": 2, "tool": 1, "after_s": 3}}, TURN)
    (message,) = it.messages(3)
    assert (message.fault, message.trigger.tool, message.trigger.after_s) == (Speak(3), 1, 1)
    assert (it.plan(1).faults, it.needs, scenario().needs) == ((), {"second_message"}, set())


def spec(**words: Any) -> AgentSpec:
    return AgentSpec.model_validate({"name": "a", "wire": "anthropic", **words})


COMMAND = {"command": ["a"]}
RUNS = {"http": {"base": "http://127.0.0.1:1", "url": "/"}}
ABLE = ControlFacts(True, resumes=True)
KILL = [{"link": "agent", "do": "kill"}]
FULL = [{"link": "agent", "do": "disk_full"}]


def test_what_an_agent_cannot_be_put_through_is_skipped(monkeypatch: pytest.MonkeyPatch):
    """A service that already runs is not ended; a callable takes one call at a time; a disk needs namespaces."""
    monkeypatch.setattr("wedgehog.harness.run.skip_reasons.disk_unavailable_reason", lambda: "no namespaces here")
    two = scenario({**TURN, "during": {"turn": 1}})
    assert why_skipped(scenario(faults=KILL), spec(**COMMAND), ABLE) == ""
    assert "did not start the service" in why_skipped(scenario(faults=KILL), spec(**RUNS), ABLE)
    for do in ({"kill": {"whom": "worker"}}, {"freeze": {"for_s": 9, "whom": "worker"}}):
        below = scenario(faults=[{"link": "agent", "do": do}])
        assert "the agent has no worker" in why_skipped(below, spec(**COMMAND), ABLE)
        assert why_skipped(below, spec(**COMMAND), replace(ABLE, worker=True)) == ""
    assert "one call at a time" in why_skipped(two, spec(callable="m:f"), ABLE)
    assert why_skipped(two, spec(**COMMAND), ABLE) == ""
    assert why_skipped(scenario(faults=FULL), spec(**COMMAND), ABLE) == "no namespaces here"
    monkeypatch.setattr("wedgehog.harness.run.skip_reasons.disk_unavailable_reason", lambda: None)
    assert why_skipped(scenario(faults=FULL), spec(**COMMAND), ABLE) == ""


@pytest.mark.parametrize("words", [{"do": "abort"}, {"do": "give_up", "link": "channel"}])
@pytest.mark.parametrize(
    ("at", "kind"),
    [
        ({}, AtReply),
        ({"step": 2}, AtReply),
        ({"step": 2, "byte": 40}, AtReply),
        ({"step": 2, "after_s": 1}, AtReply),
        ({"attempt": 2, "after_s": 1}, AtReply),
        ({"model_name": "m", "after_s": 1}, AtReply),
        ({"after_s": 1}, AfterStart),
        ({"tool": 1}, AtTool),
    ],
)
def test_a_user_who_stops_a_turn_waits_for_the_call_that_is_named(words: Any, at: dict[str, Any], kind: type):
    """Only a time without a place counts from the turn's start: else nothing would be left to stop."""
    line = FaultConfig.model_validate({**words, "at": at}).planned()
    assert type(line.trigger) is kind
