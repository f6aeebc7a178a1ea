"""Where the model gives no summary, the messages that it was to stand for are not dropped without a word."""

from collections.abc import Sequence
from typing import Any

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder


def _summary(
    *,
    said: str = "",
    beside: str = "",
    sees: Sequence[int] = (2,),
    before: Sequence[str] | None = (),
    notices: Sequence[str] | None = (),
    prints: str = "",
    refused: bool = False,
    stopped: bool = False,
) -> Verdict:
    """The second message needs a summary; `said` is what the model gave, `sees` what the request behind it has."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1, loss_notices=before), f"Done {tell.nonce}")
    tell.end()
    tell.message()
    if refused:
        tell.refuse(tell.ask(1, loss_notices=before), 400, message="prompt is too long")
    tell.reply(tell.ask(1, background="compact"), said)
    if beside:
        tell.reply(tell.ask(1, background="title"), beside)
    tell.reply(tell.ask(1, sees=sees, loss_notices=notices), f"Done {tell.nonce}")
    if stopped:
        tell.abort()
    tell.end(*([f"{prints}\nDone {tell.nonce}"] if prints else []))
    return check("kept_without_summary", tell.seal())


def test_an_empty_summary_that_takes_the_place_of_a_turn_is_red():
    found = _summary()
    assert found.status == "fail"
    assert found.says == (
        "request 2 for a summary got no words, and request 3 no longer has turn 1: "
        "neither its user nor its model is told"
    )


@pytest.mark.parametrize(
    "how",
    [
        {"sees": (1, 2)},
        {"notices": ("a",)},
        {"before": ("a",), "notices": ("a", "b")},
        {"prints": "(earlier messages were dropped)"},
    ],
    ids=str,
)
def test_messages_that_stay_and_words_that_say_what_is_gone_are_right(how: dict[str, Any]):
    """In the request, or in what the user reads."""
    assert _summary(**how).status == "pass"


def test_words_of_loss_that_were_there_before_tell_nothing():
    """A system text may speak of what is left out."""
    assert _summary(before=("a",), notices=("a",)).status == "fail"


@pytest.mark.parametrize(
    "how",
    [
        {"said": "Of owls."},
        {"beside": "A summary by another name"},
        {"refused": True},
        {"stopped": True},
        {"notices": None},
    ],
    ids=str,
)
def test_what_may_be_a_summary_or_must_be_dropped_is_not_judged(how: dict[str, Any]):
    """Words of another request, a refusal for the length, a stop, and a run in which nothing strikes summaries."""
    assert _summary(**how).status == "nothing"
