"""A model that makes the same call again and again is stopped, or told."""

from collections.abc import Sequence

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def _called(digests: Sequence[str], chars: Sequence[int]) -> Verdict:
    """One call in each round, and the number of characters of its result."""
    tell = HistoryBuilder()
    tell.message()
    results = []
    for step, (digest, size) in enumerate(zip(digests, chars, strict=True), 1):
        (token,) = tell.reply(tell.ask(step, results=results), tools=[True], digest=digest)
        results = [*results, result(token, chars=size)]
    tell.reply(tell.ask(len(digests) + 1, results=results), f"Done {tell.nonce}")
    return check("loop_noticed", tell.end().seal())


def test_a_loop_that_only_the_limit_of_rounds_ends_is_red():
    """All its rounds are paid for nothing."""
    verdict = _called(["a"] * 20, [7] * 20)
    assert verdict.status == "fail"
    assert verdict.says == "turn 1: the same call with the same result came 20 times in a row, 8 allowed"


@pytest.mark.parametrize(
    ("digests", "chars", "status"),
    [
        (["a"] * 8, [7] * 8, "pass"),
        (["a"] * 16, [7] * 8 + [60] * 8, "pass"),
        (["a", "b"] * 10, [7] * 20, "nothing"),
        (["a"] * 20, [*range(20)], "nothing"),
        ([""] * 20, [7] * 20, "nothing"),
    ],
    ids=["as many as are allowed", "the model is told", "two calls in turns", "a job is watched", "traced commands"],
)
def test_other_rounds_are_no_loop(digests: Sequence[str], chars: Sequence[int], status: str):
    """A result that changes is news, or tells the model that it repeats itself."""
    assert _called(digests, chars).status == status
