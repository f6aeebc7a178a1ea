"""The catalogue: stories of one fault each, for any agent."""

import re

import pytest

from wedgehog.fake_llm.script.file_tools import FILE_ROLES
from wedgehog.harness.campaign.selection import Wanted, check_invariant, select, stock_folder
from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.faults.reply.other_answers import StatusReply
from wedgehog.harness.invariants import find
from wedgehog.harness.run.skip_reasons import MINUTES
from wedgehog.harness.scenario.fault_config import FaultConfig
from wedgehog.harness.scenario.scenario_file import find_scenarios, load_scenario

FILES = [load_scenario(path, check_invariant) for path in find_scenarios(stock_folder() / "catalogue")]
STARTERS = 20
"""As many as a first comparison may play."""


def test_each_says_why_it_matters_and_to_whom_it_happened():
    """A sentence, and the address of a public report; no two lean on the same one."""
    for file in FILES:
        assert file.scenario.why.endswith(".") and len(file.scenario.why.split()) > 8, file.path
        assert file.scenario.seen.startswith("https://"), file.path
    assert len({file.scenario.seen for file in FILES}) == len(FILES)


def test_each_is_for_any_agent():
    """Nothing is expected of one by name; no bound is set but the stock ones, and the time of a reply of minutes."""
    for file in FILES:
        assert not file.scenario.expect and file.path.stem == file.scenario.name
        asked = dict(file.scenario.invariants)
        assert bool(MINUTES in file.scenario.tags) == bool(asked.pop("turn_deadline", None)), file.path
        assert all(find(name) for name in asked)
        assert all(value is True for given in asked.values() for value in (given or {}).values()), "a switch, no bound"
        own = set(file.scenario.tools)
        roles = {
            "shell",
            "subagent",
            "subagent_result",
            "subagent_stop",
            "subagent_message",
            "fetch",
            "ask_user",
            "send_message",
            *FILE_ROLES,
        }
        assert file.scenario.tools_called <= roles | own, "a role, or a tool of our tool host"


def test_faults_come_as_transient_and_as_permanent_ones():
    """An agent must neither give up at once nor try for ever."""
    tags = [set(file.scenario.tags) for file in FILES]
    assert sum("transient" in each for each in tags) >= 8 and sum("permanent" in each for each in tags) >= 8
    for file in FILES:
        always = any(words.times == "always" for words in file.scenario.faults)
        assert always == ("permanent" in file.scenario.tags), file.path


def test_a_message_that_comes_while_a_command_runs_has_five_seconds_to_meet_it():
    """A program with the SDK of a provider needs two or three seconds until its first request, or more."""
    met = 0
    for file in FILES:
        for turn in file.scenario.turns:
            if turn.during is not None and turn.during.tool is not None:
                waits = re.search(r"sleep (\d+)", str(file.scenario.turns[turn.during.turn - 1].model))
                kills = [it.at.after_s for it in file.scenario.faults if it.at.tool is not None and it.at.after_s]
                ends_s = min([float(waits[1] if waits else 0), *kills])
                assert ends_s - (turn.during.after_s or 0) >= 5, file.path
                met += 1
    assert met >= 3


@pytest.mark.parametrize("family", ["connect", "cut", "stall", "status", "stream"])
def test_each_family_of_harm_comes_once_and_for_ever(family: str):
    """An answered share without a bill, or a bill without an answered share, is half of what a user wants to know."""
    tagged = [set(file.scenario.tags) for file in FILES if family in file.scenario.tags]
    assert any("transient" in tags for tags in tagged) and any("permanent" in tags for tags in tagged)


def test_a_call_is_struck_in_each_of_its_phases():
    """From the connection to the end of the body; a break in mid reply lies behind first words, before the last."""
    struck = {_phase(words) for file in FILES for words in file.scenario.faults if words.link == "llm"}
    assert {"connect", "request", "headers", "middle", "terminal", "linger"} <= struck
    for file in FILES:
        for words in file.scenario.faults:
            assert words.at.byte in (None, 0), f"{file.path}: how long is a reply on every wire?"


def _phase(words: FaultConfig) -> str:
    inside = words.at.event is not None or words.at.tool is not None
    return words.at.phase or ("event" if inside else "headers")


def test_the_starters_are_a_first_comparison():
    """What is played where no scenario is named: few enough for a quarter of an hour."""
    starters = [file for file in FILES if "starter" in file.scenario.tags]
    assert 10 <= len(starters) <= STARTERS
    lasting = [words for file in starters for words in file.scenario.faults if words.times == "always"]
    refusals = {fault.code for fault in (parse_fault(words.do) for words in lasting) if isinstance(fault, StatusReply)}
    assert any(400 <= code < 500 for code in refusals) and any(code >= 500 for code in refusals), "not only for once"
    spec = str(stock_folder() / "incidents" / "dangling-call" / "agents" / "both.yaml")
    played = {entry.scenario.name for entry in select(Wanted(agents=(spec,)))}
    assert played == {file.scenario.name for file in starters}
