"""For tests of users: Hypothesis strategies of valid and violating runs; `faults` has the suite for wire faults.

>>> @given(valid_histories())
... def test_a_valid_run_passes(history): ...
>>> @given(violating_runs("paid_call_bound"))
... def test_a_violating_run_fails(case):
...     assert check(case.invariant, case.history, **case.parameters).status == "fail"
"""

from wedgehog.harness.testing.history_builder import HistoryBuilder
from wedgehog.harness.testing.valid_runs import answered_histories, valid_histories
from wedgehog.harness.testing.violating_runs import BREAKS, ViolatingRun, violating_runs

__all__ = ["BREAKS", "HistoryBuilder", "ViolatingRun", "answered_histories", "valid_histories", "violating_runs"]
