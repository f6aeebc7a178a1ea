"""Agents with subagents, a planner and a judge, in virtual time: correct ones pass, and each bug has its name."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import RequestArrived
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.history import History, read

AGENTS = Path(__file__).with_name("delegating_agents.py")
WIRES = dict.fromkeys(("planner", "waits", "loses_the_message"), "openai-chat")
COMPACTIONS = ("compaction-fails", "compaction-stalls")
SLOW = "compaction-is-slow"
PROMPTS = ["Read the first file.", "Read the second file."]
TURNS = [
    {
        "user": "Read both files, please.",
        "model": [
            [{"tool": "task", "args": {"title": prompt[:8], "prompt": prompt}} for prompt in PROMPTS],
            {"text": "Both are empty. {nonce}"},
        ],
    },
    {"user": "Thank you. And now?", "model": [{"text": "Now we rest. {nonce}"}]},
]


@pytest.fixture
def played(wedgehog: Any, tmp_path: Path) -> Any:
    """Plays scenarios with these agents: verdict, violated invariants and history, by scenario and agent."""

    def play(names: list[str], *scenarios: str) -> dict[tuple[str, str], tuple[str, list[str], History]]:
        words = []
        for name in names:
            spec = {"name": name, "wire": WIRES.get(name, "anthropic"), "callable": f"{AGENTS}:{name}", "recover_s": 0}
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
            words += ["--agent", f"{name}.yaml"]
        done = wedgehog("run", *scenarios, *words, "--world", "sim")
        assert done.returncode in (0, 1), done.stdout + done.stderr
        found = {}
        for folder in (tmp_path / "runs" / "latest").glob("*/*/verdicts.json"):
            told = json.loads(folder.read_text())
            history = read(folder.parent / "history.jsonl") if not told["skipped"] else History()
            found[told["scenario"], told["agent"]] = told["verdict"], told["violated"], history
        return found

    return play


def calls(history: History, turn: int) -> list[tuple[str, int, int]]:
    arrived = [event for event in history.of(RequestArrived) if event.turn == turn]
    return [(event.side, event.step, event.attempt) for event in arrived]


def test_subagents_planners_and_judges_are_no_attempts_of_the_step(played: Any, told: Any):
    """They have the tools and the system text of their parent. Taken for attempts, they get its own calls, for ever."""
    found = played(["readers", "planner"], told("two-readers", turns=TURNS))
    verdict, _, history = found["two-readers", "readers"]
    subagents = [("subagent 1", 1, 1), ("subagent 2", 1, 1)]
    assert verdict == "pass"
    assert calls(history, 1) == [("", 1, 1), *subagents, ("", 2, 1)]
    assert [event.quotes for event in history.of(RequestArrived)][:4] == [(), (), (), (2, 3)]
    verdict, _, history = found["two-readers", "planner"]
    assert verdict == "pass"
    assert calls(history, 1) == [("side 1", 1, 1), ("", 1, 1), *subagents, ("", 2, 1), ("side 2", 1, 1)]
    assert calls(history, 2) == [("side 3", 1, 1), ("", 1, 1), ("side 4", 1, 1)]


def stands(found: dict[tuple[str, str], tuple[str, list[str], History]]) -> dict[tuple[str, str], tuple[str, ...]]:
    """The violated invariants of each run, `skipped` or the verdict in their place if there is none."""
    return {of: tuple(violated) or (verdict,) for of, (verdict, violated, _) in found.items()}


def test_a_subagent_that_fails_or_stalls_is_survived_and_each_bug_has_its_name(played: Any):
    """A lost result of a sibling, runs without bound, a wait without end."""
    names = ["subagent-fails-once", "subagent-fails-always", "subagent-stalls", "one-of-two-subagents-fails"]
    buggy = ["forgets", "keeps_the_first", "insists", "hurries", "waits"]
    found = played(["readers", "planner", "specialists", *buggy], *names)
    bad = {of: violated for of, violated in stands(found).items() if violated != ("pass",)}
    assert bad == {
        ("one-of-two-subagents-fails", "forgets"): ("subagent_kept",),
        ("one-of-two-subagents-fails", "keeps_the_first"): ("subagent_kept",),
        ("one-of-two-subagents-fails", "insists"): ("side_call_bound", "turn_deadline"),
        ("subagent-fails-always", "insists"): ("side_call_bound", "turn_deadline"),
        ("subagent-stalls", "hurries"): ("side_call_bound",),
        ("subagent-stalls", "insists"): ("turn_deadline",),
        ("subagent-stalls", "waits"): ("turn_deadline",),
    }
    _, _, history = found["one-of-two-subagents-fails", "readers"]
    assert {event.call for event in history.of(FaultFired)} == {
        event.call for event in history.of(RequestArrived) if event.side == "subagent 3"
    }


def test_a_task_that_is_too_long_is_not_given_again_and_again(played: Any):
    """A summary in between makes it no shorter."""
    correct = ["readers", "planner", "specialists"]
    found = played([*correct, "shortens_for_ever"], "subagent-task-is-too-long")
    kinds = {agent: ends for (_, agent), ends in stands(found).items()}
    red = ("side_call_bound", "turn_deadline")
    assert kinds == {**dict.fromkeys(correct, ("pass",)), "shortens_for_ever": red}


def test_a_command_that_fails_in_a_subagent_does_not_end_the_subagent(played: Any):
    """Its model reads the result, and says the last words."""
    correct = ["readers", "planner", "specialists"]
    found = played([*correct, "ends_with_its_tool"], "tool-fails-in-a-subagent")
    kinds = {agent: ends for (_, agent), ends in stands(found).items()}
    assert kinds == {**dict.fromkeys(correct, ("pass",)), "ends_with_its_tool": ("subagent_kept",)}


def test_eight_subagents_at_once_all_come_to_an_end(played: Any):
    """With two of them the small pool is large enough."""
    correct = ["readers", "planner", "specialists"]
    found = played([*correct, "a_small_pool"], "many-subagents-at-once", "one-of-two-subagents-fails")
    ends = {of: violated for of, violated in stands(found).items() if violated != ("pass",)}
    assert ends == {("many-subagents-at-once", "a_small_pool"): ("turn_deadline",)}
    _, _, history = found["many-subagents-at-once", "readers"]
    assert len({event.side for event in history.of(RequestArrived) if event.turn == 1 and event.side}) == 8


def test_a_subagent_without_a_word_is_no_empty_success(played: Any):
    """Red where its call failed; where the model said nothing to it, only at level strict."""
    correct, names = ["readers", "planner", "specialists"], ("subagent-fails-always", "subagent-says-nothing")
    silent = ["fails_silently", "fails_in_a_frame", "praises_failure"]
    found = played([*correct, *silent], *names)
    red = {of: violated for of, violated in stands(found).items() if violated != ("pass",)}
    assert red == {("subagent-fails-always", name): ("subagent_failure_told",) for name in silent}
    _, _, history = found["subagent-says-nothing", "fails_silently"]
    assert check("failure_told", history).status == "fail"
    assert check("failure_told", found["subagent-says-nothing", "readers"][2]).status == "pass"


def test_what_a_subagent_said_before_it_failed_is_no_success(played: Any):
    """Nor is silence; where it had said so itself, the words may be its own."""
    correct, bugs = ["readers", "planner", "specialists"], ["praises_the_first_words", "fails_silently"]
    found = played([*correct, *bugs], "subagent-fails-in-the-middle")
    ends = {agent: violated for (_, agent), violated in stands(found).items()}
    assert ends == {**dict.fromkeys(correct, ("pass",)), **dict.fromkeys(bugs, ("subagent_failure_told",))}
    for agent, status in (("readers", "pass"), ("praises_the_first_words", "fail")):
        assert check("failure_told", found["subagent-fails-in-the-middle", agent][2]).status == status


def test_an_empty_text_before_the_words_of_a_subagent_is_not_its_result(played: Any):
    """The result is all that its last reply says."""
    correct = ["readers", "planner", "specialists"]
    found = played([*correct, "takes_the_first_part"], "subagent-reply-begins-with-an-empty-part")
    ends = {agent: violated for (_, agent), violated in stands(found).items()}
    assert ends == {**dict.fromkeys(correct, ("pass",)), "takes_the_first_part": ("subagent_kept",)}


def test_a_subagent_that_changes_nothing_is_heard_of(played: Any):
    """It says why; an error in the place of its words is red."""
    correct = ["readers", "planner", "specialists"]
    found = played([*correct, "wants_changes"], "subagent-has-nothing-to-change")
    ends = {agent: violated for (_, agent), violated in stands(found).items()}
    assert ends == {**dict.fromkeys(correct, ("pass",)), "wants_changes": ("subagent_kept",)}


def test_subagents_of_subagents_come_to_an_end(played: Any):
    """A limit of depth, or subagents without subagents."""
    correct = ["readers", "planner", "specialists"]
    found = played([*correct, "delegates_on"], "subagent-delegates-for-ever")
    ends = {agent: violated for (_, agent), violated in stands(found).items()}
    assert ends == {**dict.fromkeys(correct, ("pass",)), "delegates_on": ("side_call_bound", "turn_deadline")}


def test_a_subagent_has_a_limit_of_rounds_of_its_own(played: Any):
    """A limit of its parent's rounds does not end it."""
    correct = ["readers", "planner", "specialists"]
    found = played([*correct, "no_limit_below", "ends_empty"], "subagent-calls-tools-for-ever", "endless-tool-calls")
    ends = {of: violated for of, violated in stands(found).items() if violated != ("pass",)}
    assert ends == {
        ("subagent-calls-tools-for-ever", "no_limit_below"): ("tool_round_bound",),
        ("subagent-calls-tools-for-ever", "ends_empty"): ("subagent_failure_told",),
    }


def test_a_subagent_at_its_limit_is_no_success_at_level_strict(played: Any):
    """Its parent reads of the limit, or the words that the subagent had said itself."""
    silent, talking = names = ("subagent-calls-tools-for-ever", "subagent-talks-and-never-ends")
    sound = ["readers", "planner", "specialists", "ends_with_its_last_words"]
    lie = ["ends_in_canned_words", "ends_well", "praises_its_last_words"]
    found = played([*sound, *lie], *names)
    assert set(stands(found).values()) == {("pass",)}
    told = {of: check("failure_told", history).status for of, (_, _, history) in found.items()}
    assert {of for of, status in told.items() if status == "fail"} == {
        (silent, "ends_in_canned_words"),
        (silent, "ends_well"),
        (silent, "praises_its_last_words"),
        (talking, "ends_in_canned_words"),
        (talking, "praises_its_last_words"),
    }


def test_subagents_that_wait_for_their_own_must_not_hold_the_last_places(played: Any):
    """Eight subagents without others come to an end with four places, one after the other.

    Those of `specialists` have no tool to start others, so nothing of the story is played there.
    """
    correct = ["readers", "planner", "specialists"]
    names = ("subagents-start-subagents", "many-subagents-at-once")
    found = played([*correct, "holds_its_place"], *names)
    ends = {of: violated for of, violated in stands(found).items() if violated != ("pass",)}
    name = names[0]
    assert ends == {(name, "holds_its_place"): ("turn_deadline",), (name, "specialists"): ("nothing",)}
    _, _, history = found["subagents-start-subagents", "readers"]
    assert len({event.side for event in history.of(RequestArrived) if event.turn == 1 and event.side}) == 24


def test_a_stop_must_reach_the_subagent(played: Any):
    """One that goes on spends unseen."""
    correct = ["readers", "planner", "specialists"]
    found = played([*correct, "outlives"], "abort-in-a-subagent")
    ends = {agent: violated for (_, agent), violated in stands(found).items()}
    assert ends == {**dict.fromkeys(correct, ("pass",)), "outlives": ("no_spend_after_abort",)}


def test_a_compaction_is_provoked_and_harmed(played: Any):
    """Tokens near every window are reported; an agent that does not compact skips the scenario, with the reason."""
    found = played(["readers", "planner", "compacts_for_ever", "loses_the_message", "never_compacts"], *COMPACTIONS)
    kinds = stands(found)
    assert {kinds[name, agent] for name in COMPACTIONS for agent in ("readers", "planner")} == {("pass",)}
    assert kinds["compaction-stalls", "compacts_for_ever"] == ("turn_deadline",)
    assert {kinds[name, "loses_the_message"] for name in COMPACTIONS} == {("error_surfaced", "session_recovers")}
    assert {kinds[name, "never_compacts"] for name in COMPACTIONS} == {("nothing",)}
    _, _, history = found["compaction-fails", "readers"]
    assert {event.turn for event in history.of(FaultFired)} == {2}
    compactions = [event for event in history.of(RequestArrived) if event.background]
    assert {event.background for event in compactions} == {"compact"}
    assert [event.step for event in history.of(RequestArrived) if event.turn == 2 and not event.background] == [1, 2]


def test_a_slow_summary_ends_no_turn_at_level_strict(played: Any):
    """An agent may wait for it, or make room without it; one that can do neither ends each turn with an error."""
    names = ["readers", "planner", "compacts_for_ever", "needs_a_summary"]
    sound = {(SLOW, name): ("pass",) for name in names[:3]}
    assert stands(played(names, SLOW)) == sound | {(SLOW, "needs_a_summary"): ("pass",)}
    strict = stands(played(names, SLOW, "--level=strict"))
    assert "turn_answered" in strict.pop((SLOW, "needs_a_summary"))
    assert strict == sound


def test_a_declared_conversation_has_its_own_words_faults_and_bounds(played: Any, told: Any):
    """Its tools run, its step is harmed once, and one agent may ask so often, the other not."""
    conversation = {
        "name": "reader",
        "when": {"opening": "first file", "tools": ["task"]},
        "model": [{"tool": "shell", "args": {"command": "echo empty"}}, {"text": "It is empty. {nonce}"}],
    }
    fault = {"at": {"turn": 1, "on": "reader", "step": 2}, "do": {"status": 529}}
    plain = told("scripted", turns=TURNS, conversations=[conversation], faults=[fault])
    strict = told("bounded", turns=TURNS, conversations=[conversation | {"bounds": {"attempts": 1}}], faults=[fault])
    found = played(["readers"], plain, strict)
    assert stands(found) == {("scripted", "readers"): ("pass",), ("bounded", "readers"): ("side_call_bound",)}
    _, _, history = found["scripted", "readers"]
    assert sorted(calls(history, 1)) == [
        ("", 1, 1),
        ("", 2, 1),
        ("reader 1", 1, 1),
        ("reader 1", 2, 1),
        ("reader 1", 2, 2),
        ("subagent 1", 1, 1),
    ]
    assert "1001.1.1" in {beacon.token for beacon in history.of(BeaconSeen)}
    quoted = next(event.quotes for event in history.of(RequestArrived) if event.step == 2 and not event.side)
    assert len(quoted) == 2
