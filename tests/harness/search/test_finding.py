"""A failure that was found in virtual time: what it was live, and how it is told."""

from pathlib import Path

import pytest

from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.search.corpus import Finding
from wedgehog.harness.search.player import Played
from wedgehog.harness.search.scripts import Drawn

DOCUMENT: Drawn = {"name": "drawn", "turns": [], "faults": [{"do": "stall"}]}


def live(verdict: Verdict, *violated: str, agent: str = "mine", says: str = "") -> Judgement:
    return Judgement("drawn", agent, "live", verdict, violated, says=says)


@pytest.mark.parametrize(
    ("judgements", "words"),
    [
        ([live("fail", "work_kept")], "fails too"),
        ([live("pass")], "passes"),
        ([live("fail", "turn_deadline", says="turn_deadline: no answer")], "fail: turn_deadline: no answer"),
        ([live("inconclusive", says="the stall did not happen")], "inconclusive: the stall did not happen"),
        ([live("error", says="its control run failed")], "error: its control run failed"),
        ([live("pass", agent="other"), live("fail", "work_kept")], "fails too"),
        ([live("fail", "work_kept"), live("fail", "work_kept", agent="other")], "fail: "),
    ],
)
def test_what_a_failure_of_virtual_time_was_live(judgements: list[Judgement], words: str):
    """Of two agents, of which one should pass, both that fail are no difference any more."""
    finding = Finding("mine", ("work_kept",), DOCUMENT, "", Path())
    assert finding.shown_live(Played(DOCUMENT, tuple(judgements), 0.0)) == words
