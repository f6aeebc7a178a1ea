"""A failure is made simpler in few replays."""

from collections.abc import Callable
from pathlib import Path

from wedgehog.harness.search.corpus import Finding
from wedgehog.harness.search.scripts import Drawn
from wedgehog.harness.search.shrink import SIMPLIFICATIONS
from wedgehog.harness.search.simplify import shrink

TALK = {"tool": "look", "args": {"word": "note"}}
DOCUMENT: Drawn = {
    "name": "drawn",
    "turns": [
        {
            "user": "What is a hedgehog?",
            "model": [TALK, [{"text": "Well."}, TALK], {"text": "A small animal. {nonce}"}],
        },
        {"user": "And in short?", "model": [{"text": "Small. {nonce}"}]},
    ],
    "faults": [
        {"do": {"stall": {"for_s": "forever"}}, "at": {"step": 2, "phase": "middle"}, "times": 3},
        {"do": "latency", "at": {"turn": 2}},
        {"do": {"status": {"code": 429}}, "at": {"step": 2, "phase": "headers", "attempt": 2}},
    ],
}


def shrunk(fails: Callable[[Drawn], bool]) -> tuple[Drawn, list[Drawn]]:
    """The smallest scenario that fails, and all that were tried."""
    finding, played = Finding("a", ("work_kept",), DOCUMENT, "", Path()), []
    trials = shrink(finding)
    candidate = next(trials, None)
    while candidate is not None:
        played.append(candidate)
        if failed := fails(candidate):
            finding.document = candidate
        try:
            candidate = trials.send(failed)
        except StopIteration:
            break
    assert finding.whole
    return finding.document, played


def stalls_then_refuses(document: Drawn) -> bool:
    """An agent whose bug needs a tool call, a stall and a refusal of the next attempt."""
    stall = any("stall" in line["do"] for line in document["faults"])
    refused = any("status" in line["do"] and line.get("at", {}).get("attempt") == 2 for line in document["faults"])
    return stall and refused and "look" in str(document["turns"])


def test_nothing_that_is_left_can_be_left_out():
    """Each cut was tried on the scenario that is left."""
    left, played = shrunk(stalls_then_refuses)
    assert [line["do"] for line in left["faults"]] == ["stall", "status"]
    assert len(left["turns"]) == 1 and "Well." not in str(left)
    for simplification in SIMPLIFICATIONS:
        assert all(candidate in played and not stalls_then_refuses(candidate) for candidate in simplification(left))


def test_no_scenario_is_played_twice_and_few_are_played():
    """What passed is not tried again after each success; words, which rarely matter, are made simple at once."""
    _, played = shrunk(stalls_then_refuses)
    assert len({str(it) for it in played}) == len(played)
    assert len(played) <= 25


def test_words_that_matter_stay():
    """The failure needs the user's own words."""
    left, _ = shrunk(lambda document: "hedgehog" in str(document))
    assert left["turns"] == [{"user": "What is a hedgehog?", "model": [{"text": "Yes. {nonce}"}]}]
