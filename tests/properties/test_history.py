"""Each run is equal after storage, and its sums agree."""

import json
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.valid_runs import valid_histories
from tests.properties.violating_runs import BREAKS, violating_runs
from wedgehog.harness.invariants import check, known
from wedgehog.harness.record.events.base import from_json
from wedgehog.harness.record.history import History
from wedgehog.harness.record.ledger import Tally, ledger_of

any_history = st.one_of(
    valid_histories(), st.sampled_from(sorted(BREAKS)).flatmap(violating_runs).map(lambda it: it.history)
)
few = settings(max_examples=40, deadline=None)


@given(any_history)
@few
def test_a_stored_history_reads_back_the_same_and_is_judged_the_same(history: History):
    """A stored run can be judged again."""
    lines = [json.dumps(event.as_json()) for event in history.events]
    again = History(events=[from_json(json.loads(line)) for line in lines]).seal()
    assert again.events == history.events
    assert [check(name, again) for name in known()] == [check(name, history) for name in known()]


@given(any_history)
@few
def test_every_sum_of_the_ledger_is_the_sum_of_its_calls(history: History):
    """Per turn and in total; delivered tokens never exceed billed ones."""
    ledger = ledger_of(history)
    assert sum(ledger.calls.values(), Tally()) == ledger.total
    assert sum(ledger.turns.values(), Tally()) == ledger.total
    assert ledger.total.accepted + ledger.total.refused <= len(history.calls)
    assert all(tally.tokens_delivered <= tally.output_tokens for tally in ledger.calls.values())
    assert ledger.total.usd is not None and ledger.total.usd >= Decimal(0)


@given(any_history)
@few
def test_a_rate_accounts_for_all_that_was_spent_and_is_stretched_to_a_minute_six_times_at_most(history: History):
    """One call has no rate."""
    ledger = ledger_of(history)
    if ledger.paid_calls < 2:
        assert (ledger.peak_calls_per_min, ledger.peak_usd_per_min) == (None, None)
        return
    assert ledger.peak_calls_per_min is not None and ledger.peak_usd_per_min is not None
    assert ledger.calls_s is not None and ledger.cost_usd is not None
    minutes = (ledger.calls_s + 60) / 60
    assert ledger.paid_calls <= ledger.peak_calls_per_min * minutes + 1e-9
    assert ledger.peak_calls_per_min <= 6 * ledger.paid_calls + 1e-9
    assert ledger.peak_usd_per_min <= 6 * ledger.cost_usd + 1e-9


@given(any_history)
@few
def test_events_are_numbered_in_order_and_time_never_runs_back(history: History):
    """Checks rely on these facts of every history."""
    assert [event.id for event in history.events] == list(range(len(history.events)))
    times = [event.at_s for event in history.events]
    assert times == sorted(times)
