"""Each invariant passes valid runs, and fails runs with exactly its violation."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.properties.valid_runs import answered_histories, valid_histories
from tests.properties.violating_runs import BREAKS, ViolatingRun, violating_runs
from wedgehog.harness.invariants import check, known
from wedgehog.harness.record.history import History

STOCK = [name for name, it in known().items() if not it.asked and it.level == "safe"]
GENEROUS = {
    "paid_call_bound": {"calls_without_progress": 11, "calls_per_turn": 60},
    "spend_bound": {"usd_per_turn": 2.5},
    "tool_deadline": {"tool_s": 35},
    "tool_result_bound": {"tool_result_chars": 4000},
    "turn_deadline": {"turn_s": 119},
    "work_kept": {"asked": False},
}
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_every_invariant_has_a_way_to_break_it():
    """Each invariant has a generator of violating runs."""
    assert set(BREAKS) == set(known())


@given(valid_histories())
@settings(parent=few, max_examples=150)
def test_a_good_run_is_red_for_no_invariant(history: History):
    """Retries within bounds, surfaced errors, obeyed aborts and trimmed histories pass, with and without limits."""
    stock = {name: check(name, history) for name in STOCK}
    limited = {name: check(name, history, **parameters) for name, parameters in GENEROUS.items()}
    seen = [v for v in (*stock.values(), *limited.values()) if v.status not in ("pass", "nothing")]
    assert not seen, seen


@given(valid_histories())
@settings(parent=few, max_examples=100)
def test_what_was_sent_or_saved_before_a_kill_is_not_missed_where_it_is_there_again(history: History):
    """Results that were lost with the agent, or trimmed before, are not required."""
    assert check("result_durable", history).status in ("pass", "nothing")


@given(answered_histories())
@few
def test_a_run_with_all_messages_answered_passes_where_answers_are_asked(history: History):
    """`turn_answered` accepts the answer of any attempt."""
    assert check("turn_answered", history).status == "pass"


@pytest.mark.parametrize("invariant", sorted(BREAKS))
@given(data=st.data())
@few
def test_one_broken_thing_is_red_for_exactly_its_invariant(invariant: str, data: st.DataObject):
    """The violation is found at any place in a valid run, and no other invariant fails."""
    case: ViolatingRun = data.draw(violating_runs(invariant))
    verdict = check(invariant, case.history, **case.parameters)
    others = [check(name, case.history) for name in STOCK if name != invariant]
    assert verdict.status == "fail", verdict
    assert not [it for it in others if it.status not in ("pass", "nothing")]


@pytest.mark.parametrize("invariant", sorted(BREAKS))
@given(data=st.data())
@settings(parent=few, max_examples=5)
def test_a_red_verdict_says_so_in_a_sentence_and_points_at_events(invariant: str, data: st.DataObject):
    """Evidence names existing events, is not empty, and the sentence is not the name."""
    case: ViolatingRun = data.draw(violating_runs(invariant))
    verdict = check(invariant, case.history, **case.parameters)
    ids = {event.id for event in case.history.events}
    assert verdict.name == invariant
    assert verdict.evidence and set(verdict.evidence) <= ids
    assert len(verdict.says.split()) > 3
