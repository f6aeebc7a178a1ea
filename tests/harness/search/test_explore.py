"""The search with Hypothesis, on made-up agents."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from wedgehog.harness.faults.base import registered
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.search.capabilities import Capabilities
from wedgehog.harness.search.cells import SearchCell, cells, drawn_fault, kinds_of
from wedgehog.harness.search.corpus import Finding, fault_names
from wedgehog.harness.search.draw import SimplestChoices
from wedgehog.harness.search.drawn_scenario import Drawn, items
from wedgehog.harness.search.explore import Explorer, OverError
from wedgehog.harness.search.fault_order import Alone, FaultOrder, Planned, Where
from wedgehog.harness.search.planned_scenarios import PlannedScenarios
from wedgehog.harness.search.player import Behaviour, Played
from wedgehog.harness.search.threshold import thresholds

CAPABILITIES = Capabilities(shell=True, turns=2, links=("llm", "agent"))
NAMES = {"no fault", "status", "cut", "stall", "empty_reply", "latency", "refusal", "abort", "kill"}
Fails = Callable[[Drawn], tuple[str, ...]]


@cache
def some_cells() -> list[SearchCell]:
    """Made by the first test that needs them: each worker of the suite collects this file, and one runs it."""
    return [cell for cell in cells(CAPABILITIES.links) if cell.fault in NAMES]


class Notes:
    """What a search says."""

    def __init__(self) -> None:
        self.drawn: list[Drawn] = []
        self.findings: list[Finding] = []
        self.batches = self.ordered = 0
        self.alone: dict[str, Any] = {}

    def played(self, cells: Sequence[SearchCell], played: Played) -> None:
        self.drawn.append(played.document)

    def batch(self, *, ordered: bool, alone: Mapping[str, Sequence[Alone]]) -> None:
        self.batches += 1
        self.alone |= json.loads(json.dumps(alone))
        self.ordered += ordered

    def found(self, finding: Finding) -> None:
        self.findings.append(finding)


def search(
    fails: Fails,
    scenarios: int = 250,
    *,
    notes: Notes | None = None,
    cells: Sequence[SearchCell] | None = None,
    **known: Any,
) -> Notes:
    notes = notes or Notes()

    def play(document: Drawn) -> Played | None:
        try:
            Scenario.model_validate(document)
        except ValidationError:
            return None
        violated = fails(document)
        one = Judgement(document["name"], "a", "sim", "fail" if violated else "pass", violated, says="it broke")
        named = tuple(sorted(fault_names(document)))
        did = Behaviour(one.verdict, outcomes=("answered",), calls=named, asked_again=True)
        return Played(document, (one,), 0.0, (did,))

    explorer = Explorer(play, PlannedScenarios(cells or some_cells(), CAPABILITIES), [], "0", notes, **known)
    while len(notes.drawn) < scenarios:
        explorer.batch(notes.batches)
    return notes


def needs(*names: str) -> Fails:
    """Broken by these faults together."""
    return lambda document: ("paid_call_bound",) if set(names) <= fault_names(document) else ()


def test_conversations_without_a_fault_come_first():
    """Each kind once: some agents break over a slow tool alone."""
    notes = search(lambda document: ("tool_call_pairing",) if fault_names(document) == {"slow tool"} else (), 20)
    (finding,) = notes.findings
    assert finding.document["faults"] == []
    assert {"slow tool", "empty answer", "long result"} < {name for it in notes.drawn for name in fault_names(it)}


def test_hypothesis_keeps_its_files_in_the_folder_of_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not in the working folder, where a user would find them."""
    homes: list[str] = []
    monkeypatch.setattr("hypothesis.configuration.set_hypothesis_home_dir", homes.append)
    latency = [cell for cell in some_cells() if cell.fault == "latency"]
    search(lambda document: (), 100, cells=latency, home=str(tmp_path))
    assert set(homes) == {str(tmp_path)}


def test_what_is_done_to_the_agent_at_a_call_comes_first_while_it_tries_again():
    """The simplest scenario with a fault and an abort: the abort is in the attempt that the fault causes."""
    (drawn,) = (PlannedScenarios(some_cells(), CAPABILITIES).draw(Simplest(), "one", Planned(("status", "abort")))[1],)
    (abort,) = (line for line in drawn["faults"] if line.get("link") == "agent")
    assert abort["at"]["attempt"] == 2


AGENTS: dict[str, Behaviour] = {
    "no fault, plain": Behaviour("pass", (), ("answered",), ("end",)),
    "status": Behaviour("pass", (), ("answered",), ("refused with 429", "end"), asked_again=True),
    "cut": Behaviour("pass", (), ("surfaced",), ("cut",)),
    "empty_reply": Behaviour("pass", (), ("answered",), ("end", "tool")),
}
"""What an agent does under each of these alone."""


def planned_for(agents: Mapping[str, Behaviour]) -> Iterator[Planned]:
    """All that a search plans for an agent that does this, up to the scenarios with drawn faults."""
    order = FaultOrder(list(agents), "0")
    while (planned := order.next(0)).where != "anywhere" or len(planned.faults) == 1:
        yield planned
        if len(planned.faults) == 1:
            order.saw(planned.faults, Played({}, (), 0.0, (agents[planned.faults[0]],)))


def test_usual_faults_meet_before_an_unusual_one_is_tried():
    """Most bugs of two faults need these. Each pair is played once all the same."""
    planned = list(planned_for(AGENTS))
    assert planned[:3] == [Planned((fault,)) for fault in ("no fault, plain", "status", "cut")]
    assert planned.index(Planned(("status", "cut"), "next turn")) < planned.index(Planned(("empty_reply",)))
    pairs = [it for it in planned if len(it.faults) == 2]
    assert len(pairs) == len(set(pairs)) and any("empty_reply" in pair.faults for pair in pairs)


def test_two_faults_meet_where_the_first_one_leads():
    """Another attempt is made only after one that is asked again; a next call only if the turn goes on."""
    places: dict[str, set[str]] = {}
    for planned in planned_for(AGENTS):
        if "no fault, plain" not in planned.faults:
            places.setdefault(planned.faults[0], set()).add(planned.where)
    same_call = {"one call", "one call after a tool"}
    assert {fault: found - {"anywhere"} for fault, found in places.items()} == {
        "status": same_call | {"next call", "next turn"},
        "cut": {"next turn"},
        "empty_reply": {"next call", "next turn"},
    }


@pytest.mark.parametrize(
    ("where", "at"),
    [
        ("one call", [{}, {"attempt": 2}]),
        ("one call after a tool", [{"step": 2}, {"step": 2, "attempt": 2}]),
        ("next call", [{}, {"step": 2}]),
        ("next turn", [{}, {"turn": 2}]),
    ],
)
def test_a_pair_strikes_where_it_was_planned(where: Where, at: list[Drawn]):
    """In the simplest scenario; the first fault of two turns strikes each attempt, so that its turn fails."""
    _, document = PlannedScenarios(some_cells(), CAPABILITIES).draw(
        Simplest(), "one", Planned(("status 500", "cut"), where)
    )
    first, second = document["faults"]
    assert [first.get("at", {}), second.get("at", {})] == at
    assert first["do"] == {"status": {"code": 500}}
    assert first.get("times", 1) == ("always" if where == "next turn" else 1)


def test_no_story_is_played_twice():
    """A batch of scenarios begins with the simplest one, which an earlier batch had."""
    drawn = [str({**it, "seed": None}) for it in search(lambda document: (), 150).drawn]
    assert len(drawn) == len(set(drawn))


def test_a_later_search_and_another_process_play_other_pairs():
    """They try each fault alone again, to learn what it does; then they go on where the first one stopped."""

    def pairs(**place: int) -> tuple[set[str], int]:
        notes = search(lambda document: (), 120, **place)
        return {str({**it, "seed": None}) for it in notes.drawn if len(it["faults"]) == 2}, notes.ordered

    first, ordered = pairs()
    later, _ = pairs(begin=ordered)
    assert len(first) > 20 and not first & later
    one, other = pairs(step=2)[0], pairs(begin=1, step=2)[0]
    assert len(one) > 20 and not one & other


def test_a_later_search_knows_what_each_fault_does_alone_and_begins_with_the_pairs():
    """It plays the scenarios that the first one would have played next."""
    first = search(lambda document: (), 120)
    alone = {fault: [Alone.read(it) for it in seen] for fault, seen in first.alone.items()}
    later = search(lambda document: (), 40, begin=first.ordered, alone=alone)
    assert len(alone) > 20 and later.ordered == later.batches and not later.alone
    next_ones = search(lambda document: (), 160).drawn[len(first.drawn) :]
    same = {str({**it, "seed": None}) for it in next_ones} & {str({**it, "seed": None}) for it in later.drawn}
    assert len(same) > 20


class Simplest:
    """Hypothesis' simplest choices."""

    def choose(self, options):
        return options[0]

    def between(self, least: int, most: int) -> int:
        return least


@pytest.mark.parametrize("names", [("cut",), ("status", "stall"), ("cut", "kill"), ("empty_reply", "abort")])
def test_a_failure_is_shrunk_to_the_faults_that_it_needs(names: tuple[str, ...]):
    """To one turn and one reply too."""
    (finding,) = search(needs(*names)).findings
    assert finding.whole
    assert sorted(map(str, fault_names(finding.document))) == sorted(names)
    assert len(finding.document["faults"]) == len(names)
    assert [len(list(items(turn))) for turn in finding.document["turns"]] == [1]
    Scenario.model_validate(finding.document)


def test_the_search_goes_on_after_a_failure_and_tells_each_once():
    """A scenario that shows a known failure is no new one, whatever else is in it."""

    def fails(document: Drawn) -> tuple[str, ...]:
        names = fault_names(document)
        return ("turn_deadline",) if "stall" in names else ("error_surfaced",) if "status" in names else ()

    notes = search(fails)
    assert sorted((it.violated, sorted(it.faults)) for it in notes.findings) == [
        (("error_surfaced",), ["status"]),
        (("turn_deadline",), ["stall"]),
    ]
    assert sum(finding.again for finding in notes.findings) > 0
    assert notes.batches > 3 and len(notes.drawn) > 100


def test_the_breaking_point_is_looked_for():
    """A stall of more than 10 s."""

    def fails(document: Drawn) -> tuple[str, ...]:
        for line in document["faults"]:
            do = line["do"]
            if do == "stall" or (isinstance(do, dict) and "stall" in do and do["stall"].get("for_s", 99) == "forever"):
                return ("turn_deadline",)
            if isinstance(do, dict) and do.get("stall", {}).get("for_s", 0) > 10:
                return ("turn_deadline",)
        return ()

    (finding,) = search(fails, 30).findings
    assert finding.breaks_at.startswith("stall.for_s: passes at 9")


def test_what_is_found_when_the_budget_ends_is_told():
    """It is not at its smallest, and it says so."""
    notes, failed = Notes(), []

    def fails(document: Drawn) -> tuple[str, ...]:
        if violated := needs("cut")(document):
            failed.append(document)
        if len(failed) > 2:
            raise OverError
        return violated

    with pytest.raises(OverError):
        search(fails, notes=notes)
    (finding,) = notes.findings
    assert not finding.whole and "cut" in finding.faults


def test_what_is_found_before_a_smaller_story_does_not_end_is_told():
    """Then its process ends in the middle of a story."""
    notes = Notes()
    tells: list[bool] = []

    def play(document: Drawn) -> Played:
        one = Judgement(document["name"], "a", "sim", "fail", ("paid_call_bound",), says="it broke")
        if tells or notes.drawn:
            tells.append(explorer.give_up())
            raise OverError
        return Played(document, (one,), 0.0)

    explorer = Explorer(play, PlannedScenarios(some_cells(), CAPABILITIES), [], "0", notes)
    assert not explorer.give_up() and notes.findings == []
    with pytest.raises(OverError):
        explorer.batch(0)
    assert tells == [True] and notes.findings[0].document == notes.drawn[0]


def test_what_only_says_how_often_has_no_breaking_point():
    """Each halving would bring twice as many pings."""
    line = {"do": {"pings_only": {"every_s": 0.25}}}
    assert list(thresholds({"faults": [line]})) == []
    assert [it.label for it in thresholds({"faults": [{"do": {"drip": {"every_s": 0.25}}}]})] == ["drip.every_s"]


def test_equal_seeds_draw_equal_stories_in_every_process():
    """Also where strings hash otherwise."""
    program = (
        "from test_explore import needs, search\n"
        "notes = search(needs('cut'), 50)\n"
        "print(notes.drawn, [(it.document, it.breaks_at) for it in notes.findings])\n"
    )
    said = []
    for hash_seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(__file__).parent)}
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
        said.append(done.stdout)
    assert said[0] == said[1] and "cut" in said[0]


@pytest.mark.parametrize(("name", "kinds"), [("max_tokens", [20, 0]), ("endless_tools", [True, False])])
def test_the_usual_kind_of_a_fault_is_tried_first(name: str, kinds: list[int]):
    """An agent that shows a part of a cut reply may notice an empty one, and one that ends equal calls no others."""
    (drawn,) = drawn_fault(SimplestChoices(), registered()[name])[name].values()
    assert [drawn, kinds_of(name)] == [kinds[0], kinds]
