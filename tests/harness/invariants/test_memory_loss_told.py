"""An agent whose database fails does not answer as if its user had said nothing before."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder


def played(
    *sees: list[int] | None,
    says: str = "",
    stderr: str = "",
    link: str = "tcp:db",
    after: bool = False,
    beside: bool = False,
) -> History:
    """A run whose requests carry these turns (None: all); the link's server fails in turn 2."""
    tell = HistoryBuilder()
    for number, carried in enumerate(sees, start=1):
        tell.message()
        fired = FaultFired(fault=0, name="cut", link=link, turn=2, step=None, attempt=None, call=None, proof="x")
        struck = number == 2
        if struck and not after:
            tell.add(fired)
        if struck and beside:
            tell.reply(tell.ask(1, background="title"), "A summary.")
        call = tell.ask(1, sees=carried)
        if struck and after:
            tell.add(fired)
        tell.reply(call, f"Done {tell.nonce}")
        tell.end(f"Done {tell.nonce} {says if struck else ''}", stderr=stderr if struck else "")
    return tell.seal()


def test_an_answer_as_if_nothing_had_been_said_before_fails():
    """Also if the next turns carry only what came since, because the empty memory was stored."""
    for later in (None, [2, 3]):
        found = check("memory_loss_told", played([1], [2], later))
        assert found.status == "fail"
        assert found.says == (
            "turn 2: after cut on tcp:db, request 2 carries none of the earlier turns, "
            "and nothing in the output says so"
        )


@pytest.mark.parametrize(
    ("history", "status"),
    [
        (played([1], None, None), "pass"),
        (played([1], [2], None, says="(the memory is unavailable)"), "nothing"),
        (played([1], [2], None, says="I cannot see what we said."), "nothing"),
        (played([1], [2], None, stderr="Error: timeout"), "nothing"),
        (played([1], [2], [3]), "nothing"),
        (played([1], [1, 2], [2, 3]), "pass"),
        (played([1], [2], None, link="llm"), "nothing"),
        (played([1], [2], None, after=True), "nothing"),
        (played([1], [2], None, beside=True), "nothing"),
        (played([1], [], None), "nothing"),
    ],
    ids=["retry or cache", "note", "words", "logged", "one turn", "window", "model", "too late", "summary", "no words"],
)
def test_agents_that_tell_or_keep_their_memory_or_have_none_do_not_fail(history: History, status: str):
    """A window, a summary and an agent without a memory drop turns on purpose."""
    assert check("memory_loss_told", history).status == status
