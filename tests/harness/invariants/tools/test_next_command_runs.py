"""A command is not typed into the program of the one before it."""

from typing import Any

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.turn import PermissionAsked
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def _called(
    *, ended: bool = False, runs: bool = False, background: bool = False, denied: bool = False, sent: bool = True
) -> Verdict:
    """A command begins, and the model calls another one."""
    tell = HistoryBuilder()
    tell.message()
    (first,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(first, background=background)
    if ended:
        tell.done(first, exit_code=0)
    told = [result(first, printed=ended)]
    (second,) = tell.reply(tell.ask(2, results=told), tools=[True])
    if denied:
        tell.add(PermissionAsked(turn=1, offered=("reject_once",), chosen="reject_once", tokens=(second,)))
    told += [tell.runs(second)] if runs else [result(second, printed=False)] if sent else []
    tell.answer_step(3, told)
    return check("next_command_runs", tell.end().seal())


def test_a_command_that_is_typed_into_the_one_before_it_is_red():
    """It never runs, and the model reads something as its output."""
    verdict = _called()
    assert verdict.status == "fail"
    assert verdict.says == (
        "tool call 1.2.1 (shell) never ran: tool call 1.1.1 (shell) had not ended; request 3 carries a result for it"
    )


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"runs": True}, "pass"),
        ({"ended": True}, "nothing"),
        ({"background": True}, "nothing"),
        ({"denied": True}, "nothing"),
        ({"sent": False}, "nothing"),
    ],
    ids=["a new shell", "the first has ended", "in the background", "denied", "no result"],
)
def test_other_commands_are_not(more: dict[str, Any], status: str):
    """One that runs beside the first, and what has another reason."""
    assert _called(**more).status == status
