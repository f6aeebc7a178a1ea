"""Thoughts that do not come back as the provider wants them are red; a fault's refusal is not."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.testing import HistoryBuilder

MISSING = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`."
UNSIGNED = "messages.1.content.0: Invalid `signature` in `thinking` block"
CHANGED = (
    "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
)
ALONE = "Item 'rs_1' of type 'reasoning' was provided without its required following item."
WITHOUT = "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."
NOT_STORED = "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."
OF_GEMINI = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work."
OTHERS = (
    "Unknown parameter: 'thinking'.",
    "`max_tokens` must be greater than `thinking.budget_tokens`",
    "status 400",
    "Item with id 'msg_1' not found.",
)


def _refused(message: str, *, scripted: bool = False) -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 400, scripted=scripted, message=message)
    tell.fails()
    return tell


@pytest.mark.parametrize("message", [MISSING, UNSIGNED, CHANGED, ALONE, WITHOUT, NOT_STORED, OF_GEMINI])
def test_a_request_that_is_refused_for_its_thoughts_is_red(message: str):
    """It is refused with each try, and with each later message."""
    verdict = check("thoughts_kept", _refused(message).seal())
    assert (verdict.status, verdict.says) == ("fail", f"request 1 (turn 1) was refused: {message}")


@pytest.mark.parametrize("message", OTHERS)
def test_another_refusal_of_our_validator_is_not_judged_here(message: str):
    """It may be our mistake, and the judge says so in its own name."""
    assert check("thoughts_kept", _refused(message).seal()).status == "nothing"


def test_a_refusal_that_a_fault_asked_for_does_not_count():
    """The provider of `poison: thinking` says the same."""
    assert check("thoughts_kept", _refused(UNSIGNED, scripted=True).seal()).status == "nothing"
