"""Hypothesis strategies: runs as they should be, and runs with one thing wrong.

>>> @given(good_histories())
... def test_a_good_run_is_never_red(history): ...
>>> @given(broken("paid_call_bound"))
... def test_a_broken_run_is_red(case):
...     assert check(case.invariant, case.history, **case.parameters).status == "fail"
"""

from wedgehog.harness.testing.history_builder import HistoryBuilder
from wedgehog.harness.testing.valid_runs import answered_histories, valid_histories
from wedgehog.harness.testing.violating_runs import BREAKS, ViolatingRun, violating_runs

__all__ = ["BREAKS", "HistoryBuilder", "ViolatingRun", "answered_histories", "valid_histories", "violating_runs"]
