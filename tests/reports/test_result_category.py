"""How a run counts and reads."""

import pytest

from wedgehog.reports.result_category import reads, result_category, tally

from .conftest import judgement

CASES = [
    (judgement("s", "a"), "passed", "pass"),
    (judgement("s", "a", "fail"), "failed", "fail"),
    (judgement("s", "a", "nothing"), "passed", "nothing judged"),
    (judgement("s", "a", "inconclusive"), "inconclusive", "inconclusive"),
    (judgement("s", "a", "error"), "error", "error"),
    (judgement("s", "a", "pass", "pass"), "passed", "pass"),
    (judgement("s", "a", "fail", "fail: x", violated=("x",)), "passed", "fail (expected)"),
    (judgement("s", "a", "fail", "fail: x;y", violated=("x",)), "failed", "fail (not as expected)"),
    (judgement("s", "a", "inconclusive", "fail: x;y", violated=("x",)), "inconclusive", "inconclusive"),
    (judgement("s", "a", "fail", "pass", violated=("x",)), "failed", "fail (pass expected)"),
    (judgement("s", "a", "pass", "fail: x"), "failed", "pass (fail expected)"),
    (judgement("s", "a", "inconclusive", "fail: x"), "inconclusive", "inconclusive"),
    (judgement("s", "a", "error", "pass"), "error", "error"),
    (judgement("s", "a", "fail", known="issue 7"), "known", "fail (known)"),
    (judgement("s", "a", "pass", known="issue 7"), "passed", "pass (known failure is gone)"),
    (judgement("s", "a", "fail", matrix_only=True), "shown", "fail"),
    (judgement("s", "a", "nothing", skipped="it does not stream"), "skipped", "skipped"),
]


@pytest.mark.parametrize(("judged", "counts", "words"), CASES, ids=[f"{c[2]}-{i}" for i, c in enumerate(CASES)])
def test_a_run_counts_by_what_was_expected_of_it(judged, counts, words):
    """An expected fail counts as passed, an unexpected pass as failed."""
    assert (result_category(judged), reads(judged)) == (counts, words)


def test_the_tally_names_what_is_rare_only_when_it_is_there():
    """Passed, failed and skipped are always counted; other categories only where they occur."""
    assert tally([]) == "0 passed, 0 failed, 0 skipped"
    assert tally(["passed", "passed", "error", "error", "known", "shown"], 1) == (
        "2 passed, 0 failed, 0 skipped, 2 errors, 1 known failure, 1 only shown, 1 unfinished"
    )
