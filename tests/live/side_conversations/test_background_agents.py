"""Subagents in the background: correct designs pass, and each bug has its name."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
ALONE, WORKS_ON, FAILS, IN_TURN, STOPPED = (
    "subagent-in-the-background",
    "subagent-works-on-after-the-turn",
    "subagent-in-the-background-fails",
    "subagent-ends-during-the-turn",
    "abort-beside-a-subagent",
)
KILLED = "killed-beside-a-subagent"
IN_LONG_TURN = "subagent-ends-during-a-long-turn"
WAITED_FOR = "subagent-is-waited-for"
WRITES_TO_DEAD = "subagent-gets-a-message-after-its-failure"
STALLS = "subagent-in-the-background-stalls"
HANDED_ON = "subagents-hand-on-in-the-background"
CANCELLED, AT_ONCE = "subagent-is-stopped-by-its-parent", "subagent-is-stopped-at-once"
ALL = (ALONE, WORKS_ON, FAILS, IN_TURN, STOPPED)
CORRECT = ["delivers_next", "delivers_itself", "waits", "tells_only_the_end", "is_asked"]
Ends = dict[tuple[str, str], tuple[str, ...]]


@pytest.fixture
def ends(wedgehog: Any, tmp_path: Path) -> Callable[..., Ends]:
    """Plays scenarios with agents: the violated invariants of each run that did not pass, or its verdict."""

    def play(specs: dict[str, dict[str, Any]], *words: str) -> Ends:
        for file in ("background_agents.py", "delegating_agents.py", "background_process.py", "process_model.py"):
            copy(HERE / file, tmp_path)
        agents = []
        for name, spec in specs.items():
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({"name": name, "wire": "anthropic", **spec}))
            agents += ["--agent", f"{name}.yaml"]
        done = wedgehog("run", *words, *agents)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        found = {}
        for verdicts in (tmp_path / "runs" / "latest").glob("*/*/verdicts.json"):
            told = json.loads(verdicts.read_text())
            found[told["scenario"], told["agent"]] = tuple(told["violated"]) or (told["verdict"],)
        return {of: how for of, how in found.items() if how != ("pass",)}

    return play


def callables(*names: str) -> dict[str, dict[str, Any]]:
    return {name: {"callable": f"{{here}}/background_agents.py:{name}", "recover_s": 0} for name in names}


def processes(*hows: str) -> dict[str, dict[str, Any]]:
    line = ["{python}", "-S", "-E", "{here}/background_process.py"]
    words = ["{llm_url}", "{session_dir}", "{message}"]
    return {how.replace(" ", "-"): {"command": [*line, how, *words]} for how in hows}


@pytest.mark.parametrize("level", ["safe", "strict"])
def test_each_correct_design_passes(ends: Callable[..., Ends], level: str):
    """It waits for its subagents, brings their words with the next message or by itself, or lets the model ask."""
    assert ends(callables(*CORRECT), *ALL, "--world=sim", f"--level={level}") == {}


def test_a_result_or_a_failure_that_nothing_brings_is_red(ends: Callable[..., Ends]):
    lost = callables("tells_nothing", "tells_no_failure", "forgets_when_asked", "drops_what_comes_in_a_turn")
    returns = ("subagent_returns",)
    assert ends(lost, *ALL, "--world=sim") == {
        (ALONE, "tells_nothing"): returns,
        (WORKS_ON, "tells_nothing"): returns,
        (FAILS, "tells_nothing"): returns,
        (IN_TURN, "tells_nothing"): returns,
        (IN_TURN, "forgets_when_asked"): returns,
        (IN_TURN, "drops_what_comes_in_a_turn"): returns,
        (ALONE, "forgets_when_asked"): returns,
        (WORKS_ON, "forgets_when_asked"): returns,
        (FAILS, "tells_no_failure"): returns,
    }


def test_word_of_an_end_waits_however_long_the_turn_takes(ends: Callable[..., Ends]):
    """An agent that tries for seven seconds brings it in a short turn only."""
    agents = callables(*CORRECT, "gives_up_after_some_tries")
    red = {(IN_LONG_TURN, "gives_up_after_some_tries"): ("subagent_returns",)}
    assert ends(agents, IN_TURN, IN_LONG_TURN, "--world=sim") == red


def test_word_of_an_end_without_words_is_red_at_level_strict(ends: Callable[..., Ends]):
    """The model asks its subagent again, or waits for ever."""
    quiet = callables("keeps_its_words", "answers_with_a_status", "tells_that_it_is_idle")
    names = (ALONE, WORKS_ON, IN_TURN)
    assert ends(quiet, *names, "--world=sim") == {}
    red = {(name, agent): ("subagent_words_told",) for name in names for agent in quiet}
    assert ends(quiet, *names, "--world=sim", "--level=strict") == red


def test_a_parent_and_its_subagent_that_wait_for_each_other_are_red(ends: Callable[..., Ends]):
    """The model waits in the turn in which it began the subagent."""
    found = ends(callables("is_asked", "begins_behind_the_turn"), WAITED_FOR, "--world=sim")
    red = found.pop((WAITED_FOR, "begins_behind_the_turn"))
    assert "turn_deadline" in red and not found


def test_a_subagent_whose_model_is_silent_is_not_waited_for(ends: Callable[..., Ends]):
    """The subagent ends by a timer, or the wait does."""
    sound = callables(*CORRECT, "waits_half_a_minute")
    found = ends(sound | callables("waits_for_what_stalls"), STALLS, "--world=sim")
    assert "turn_deadline" in found.pop((STALLS, "waits_for_what_stalls"))
    assert found == {}
    assert ends(sound, STALLS, "--world=sim", "--level=strict") == {}


def test_what_works_on_behind_its_process_is_heard_of_or_red(ends: Callable[..., Ends]):
    """An agent may wait for its subagents, end them, or let them go on; an orphan of a stopped turn is red too.

    Those that die with their agent are no loss: none of these conversations remembers that they began.
    """
    agents = processes("waits", "ends them", "detaches", "leaves orphans")
    assert ends(agents, ALONE, STOPPED, KILLED, "--jobs=4") == {
        (ALONE, "leaves-orphans"): ("subagent_returns",),
        (STOPPED, "leaves-orphans"): ("no_spend_after_abort",),
    }


def test_a_subagent_that_is_stopped_and_works_on_is_red(ends: Callable[..., Ends]):
    """The model reads that it is cancelled. An agent without a tool for that skips these scenarios."""
    sound = callables("delivers_next", "tells_only_the_end", "begins_late", "delivers_itself")
    buggy = callables("changes_the_status", "begins_behind_its_stop")
    found = ends(sound | buggy, CANCELLED, AT_ONCE, "--world=sim")
    stops = ("subagent_stops",)
    assert found == {
        (CANCELLED, "changes_the_status"): stops,
        (AT_ONCE, "changes_the_status"): stops,
        (AT_ONCE, "begins_behind_its_stop"): stops,
        **{(name, "delivers_itself"): ("nothing",) for name in (CANCELLED, AT_ONCE)},
    }


def test_a_subagent_may_be_stopped_at_both_levels(ends: Callable[..., Ends]):
    """Its model knows of the end."""
    sound = callables("delivers_next", "tells_only_the_end", "begins_late")
    assert ends(sound, CANCELLED, AT_ONCE, "--world=sim", "--level=strict") == {}


def test_a_message_to_a_subagent_does_not_begin_its_work_again(ends: Callable[..., Ends]):
    """A second copy runs its commands twice. One that has ended may go on or refuse, and at level strict not forget.

    If it goes on, its second end must be told as its first one must.
    """
    writes, writes_late = names = ("subagent-gets-a-message", "subagent-gets-a-message-after-its-end")
    agents = callables(
        "is_written_to",
        "refuses_what_has_ended",
        "copies_what_works",
        "begins_what_has_ended_again",
        "tells_one_end",
        "delivers_next",
    )
    silent = {(writes_late, "tells_one_end"): ("subagent_returns",)}
    skipped = {(name, "delivers_next"): ("nothing",) for name in names}
    copied = {(writes, "copies_what_works"): ("at_most_once_tools",)}
    again = {(writes_late, "begins_what_has_ended_again"): ("subagent_goes_on",)}
    assert ends(agents, *names, "--world=sim") == skipped | copied | silent
    assert ends(agents, *names, "--world=sim", "--level=strict") == skipped | copied | again | silent


def test_a_message_to_a_subagent_that_has_failed_is_not_waited_for(ends: Callable[..., Ends]):
    """It is refused, or the subagent fails once more."""
    sound = callables("is_written_to", "is_written_to_and_asked", "refuses_what_has_ended", "refuses_and_is_asked")
    found = ends(sound | callables("keeps_letters_for_ever", "delivers_next"), WRITES_TO_DEAD, "--world=sim")
    assert "turn_deadline" in found.pop((WRITES_TO_DEAD, "keeps_letters_for_ever"))
    assert found == {(WRITES_TO_DEAD, "delivers_next"): ("nothing",)}
    assert ends(sound, WRITES_TO_DEAD, "--world=sim", "--level=strict") == {}


def test_an_agent_without_a_choice_skips_them(ends: Callable[..., Ends]):
    """Its subagents have no argument for the background."""
    agents = {"readers": {"callable": "{here}/delegating_agents.py:readers"}}
    found = ends(agents, *ALL, "subagent-says-nothing", "--world=sim")
    assert found == {(name, "readers"): ("nothing",) for name in ALL}


def test_subagents_that_start_others_without_a_limit_are_red(ends: Callable[..., Ends]):
    """Nothing waits for them, so no turn is slow; a limit of depth is enough, and so is none below the first."""
    agents = callables("hands_on_for_ever", "hands_on_thrice", "delivers_next")
    assert ends(agents, HANDED_ON, "--world=sim") == {(HANDED_ON, "hands_on_for_ever"): ("side_call_bound",)}
