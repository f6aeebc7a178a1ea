"""A call whose arguments do not fit: its result names what is wrong with them."""

from dataclasses import replace

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def judged(given: ToolResult, *, misfits: bool = True, started: bool = False) -> Verdict:
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[False], misfits=misfits)
    if started:
        tell.runs(token)
    tell.answer_step(2, [given])
    return check("arguments_told", tell.end().seal())


SAYS_NOTHING = replace(result("1.1.1", chars=13, printed=False, is_error=True), names_arguments=False)


def test_a_result_that_does_not_say_what_is_wrong_is_red():
    """The model can only make the same call again."""
    verdict = judged(SAYS_NOTHING)
    assert verdict.status == "fail"
    assert verdict.says == (
        "tool call 1.1.1 (shell): its arguments do not fit, and its result does not say why (13 characters)"
    )


def test_a_result_that_names_the_parameter_is_green():
    """So is one that names a type, a schema or what was expected."""
    assert judged(replace(SAYS_NOTHING, names_arguments=True)).status == "pass"


@pytest.mark.parametrize(
    ("given", "misfits", "started"),
    [
        (replace(SAYS_NOTHING, names_arguments=None), True, False),
        (replace(SAYS_NOTHING, in_text=True), True, False),
        (SAYS_NOTHING, False, False),
        (SAYS_NOTHING, True, True),
    ],
)
def test_not_judged(given: ToolResult, misfits: bool, started: bool):
    """An older history, a result in words, arguments that are no JSON object, and a command that ran all the same."""
    assert judged(given, misfits=misfits, started=started).status == "nothing"
