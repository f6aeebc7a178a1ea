"""The core: what a bare `wedgehog run` plays of the stock incidents."""

from functools import cache

from wedgehog.harness.campaign.selection import Entry, Wanted, select
from wedgehog.harness.scenario.model import Scenario

MOST_RUNS = 90
"""The core is for a laptop: a few minutes."""


@cache
def core() -> tuple[Entry, ...]:
    return tuple(select(Wanted()))


def scenarios() -> dict[str, Scenario]:
    return {entry.scenario.name: entry.scenario for entry in core()}


def test_the_core_is_small_and_holds_every_incident():
    """Broken and fixed agents of all five."""
    assert len(core()) <= MOST_RUNS
    assert len({entry.file.family for entry in core()}) == 5
    assert all(entry.agent.name.startswith(("buggy", "fixed")) for entry in core())


def test_the_core_plays_a_database_a_killed_background_command_and_a_cut_pipe():
    """Each with a broken and a fixed agent."""
    stored = {name for name, scenario in scenarios().items() if scenario.store}
    killed = {name for name, scenario in scenarios().items() if "&" in str(scenario.turns) and "kill" in harm(scenario)}
    cut = {name for name, scenario in scenarios().items() if "cut" in harm(scenario, "ipc:exec")}
    assert (stored, killed, cut) == ({"the-reports-18-seconds"}, {"background-command-killed"}, {"exec-pipe-is-cut"})
    for name in stored | killed | cut:
        assert {"buggy", "fixed"} <= {entry.agent.name for entry in core() if entry.scenario.name == name}


def harm(scenario: Scenario, link: str = "agent") -> set[str]:
    """The names of the faults on that link."""
    given = (words.do for words in scenario.faults if words.link == link)
    return {do if isinstance(do, str) else next(iter(do)) for do in given}


def test_a_model_that_is_slow_for_a_large_request_loses_the_turn_with_and_without_the_fixed_set():
    """The finding of silent-stall's audit; only a longer timeout of the model call answers."""
    expected = scenarios()["continuation-is-slow"].expect
    lost = {name for name, outcome in expected.items() if outcome != "pass"}
    assert {"buggy", "fixed"} <= lost and "fixed-longer" not in lost
