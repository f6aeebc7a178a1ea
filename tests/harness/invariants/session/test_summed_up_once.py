"""What a summary stands for is not summed up again for each request."""

from collections.abc import Sequence

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder


def _summaries(
    count: int, *, of: Sequence[int] | None = None, stored: bool = False, used: bool = True, said: str = "Of owls."
) -> Verdict:
    """Turns with a summary before each request; `stored`: it is made of the one before it."""
    tell, last = HistoryBuilder(), 0
    for _ in range(count):
        tell.message()
        before = [last] if stored and last else []
        last = tell.ask(1, background="compact", sees=of, replies=before)
        tell.reply(last, said)
        tell.reply(tell.ask(1, replies=[last] if used else []), f"Done {tell.nonce}")
        tell.end()
    return check("summed_up_once", tell.seal())


def test_a_summary_that_is_not_stored_is_made_again_for_each_request():
    """The fourth one of the same message is too many."""
    found = _summaries(4)
    assert found.status == "fail"
    assert found.says == (
        "the message of turn 1 is summed up 4 times, 3 allowed: none of requests 1, 3, 5, 7 has the summary before it"
    )


def test_a_summary_may_be_made_again_some_times():
    """Its message came in between, or it was too long."""
    assert _summaries(3).status == "pass"


def test_a_summary_of_the_one_before_it_is_no_repetition():
    """The message may stand beside it, as some agents keep what their user said word for word."""
    found = _summaries(9, stored=True)
    assert found.status == "pass"


@pytest.mark.parametrize(
    "how", [{"of": ()}, {"used": False}, {"said": ""}, {"said": '{"summary": "Of owls."}'}], ids=str
)
def test_a_summary_for_something_else_is_not_judged(how: dict[str, object]):
    """Of a tool's output, for a list of sessions, without words, or in a form that is not known again."""
    assert _summaries(9, **how).status == "nothing"  # type: ignore[arg-type]
