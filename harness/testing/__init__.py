"""Hypothesis strategies: runs as they should be, and runs with one thing wrong.

>>> @given(good_histories())
... def test_a_good_run_is_never_red(history): ...
>>> @given(broken("paid_call_bound"))
... def test_a_broken_run_is_red(case):
...     assert check(case.invariant, case.history, **case.parameters).status == "fail"
"""

from wedgehog.harness.testing.history_builder import Telling
from wedgehog.harness.testing.valid_runs import answered_histories, good_histories
from wedgehog.harness.testing.violating_runs import BREAKS, Broken, broken

__all__ = ["BREAKS", "Broken", "Telling", "answered_histories", "broken", "good_histories"]
