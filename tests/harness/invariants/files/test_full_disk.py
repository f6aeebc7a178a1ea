"""On a full disk an agent cannot store what it says and does: to say so is all that it can do."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def _judged(name: str, *, full: bool, answers: bool = True) -> Verdict:
    """A turn with a tool round that exits with 1, and the next turn, which carries nothing of it but its message."""
    tell = HistoryBuilder(resumes=True)
    tell.message()
    (token,) = tell.reply(tell.ask(1), "I look.", tools=[True])
    tell.starts(token)
    tell.done(token, 0)
    if full:
        struck = {"turn": 1, "step": 1, "attempt": 1, "call": None, "proof": "ENOSPC"}
        tell.add(FaultFired(fault=0, name="disk_full", link="agent", of_disk=True, **struck))
    said = f"It is all done {tell.nonce}"
    tell.reply(tell.ask(2, results=[result(token)]), said)
    tell.end(said if answers else "", error="Error: the session could not be saved", exit_code=1)
    tell.message()
    seen = (1, 2) if answers else (2,)
    tell.reply(tell.ask(1, sees=seen, replies=[]), f"Yes, it is {tell.nonce}")
    return check(name, tell.end().seal())


@pytest.mark.parametrize(
    ("name", "answers"),
    [("words_kept", True), ("rounds_kept", True), ("exit_code_tells", True), ("history_kept", False)],
)
def test_what_could_not_be_stored_is_not_owed(name: str, answers: bool):
    """The answer, the rounds, the whole turn; and an answer that is not stored may end with an exit code above 0."""
    assert _judged(name, full=False, answers=answers).status == "fail"
    assert _judged(name, full=True, answers=answers).status != "fail"
