"""A port that takes no call: who calls is seen, and for how long."""

import socket
from typing import cast

import pytest

from wedgehog.harness.agents.base import Outcome
from wedgehog.harness.commands.timers.take import BlackHole, Connects, _taken, connect_unavailable_reason

pytestmark = pytest.mark.skipif(
    connect_unavailable_reason() is not None, reason="only Linux shows connects in progress"
)


def test_a_call_is_neither_taken_nor_refused_and_its_caller_is_seen():
    """Our own connects, which fill the backlog, do not count."""
    with BlackHole() as hole, socket.socket() as caller:
        assert hole.callers() == set()
        caller.setblocking(False)
        caller.connect_ex(("127.0.0.1", hole.port))
        port = caller.getsockname()[1]
        assert hole.callers() == {port}
        caller.close()
        assert hole.callers() == set()


class Shown:
    """A black hole with given connects."""

    def __init__(self) -> None:
        self.now: set[int] = set()

    def callers(self) -> set[int]:
        return self.now


def test_each_caller_is_an_attempt_from_its_first_sight_to_its_last():
    """One that still calls has not given up."""
    hole, calls = Shown(), Connects()
    for s, now in [(0.0, set()), (1.0, {7}), (2.0, {7}), (3.0, set()), (4.0, {9}), (5.0, {9})]:
        hole.now = cast("set[int]", now)
        calls.look(cast("BlackHole", hole), s)
    first, second = calls.attempts()
    assert (first.began_s, first.ended_s) == (1.0, 2.0)
    assert (second.began_s, second.ended_s) == (4.0, None)


def test_the_end_is_an_error_that_somebody_reads_or_none():
    """Without a call there is nothing to tell; without an end there was none."""
    hole, calls = Shown(), Connects()
    hole.now = {7}
    calls.look(cast("BlackHole", hole), 1.0)
    said = _taken(calls.attempts(), 4.0, Outcome(stderr="connect timed out"))
    assert (said.outcome, said.total_s) == ("surfaced", 3.0) and "timed out" in said.said
    assert _taken(calls.attempts(), 4.0, Outcome()).outcome == "hidden"
    endless = _taken(calls.attempts(), None, Outcome(stderr="Traceback"))
    assert (endless.outcome, endless.total_s) == ("silent", None)
    assert _taken((), 4.0, Outcome()).skipped == "it never connected to the model's address"
