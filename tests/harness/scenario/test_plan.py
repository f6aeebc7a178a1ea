"""A fault plan is plain data that can run faster than its story."""

import pytest

from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.scenario.fault_plan import ALWAYS, FaultPlan, PlannedFault
from wedgehog.harness.scenario.link_triggers import AtChat, AtPipe
from wedgehog.harness.scenario.trigger import AtReply, BeforeRequest, Trigger


def test_a_faster_plan_divides_every_duration_and_nothing_else():
    """The trigger's delay, the fault's own seconds and the healing; bytes and counts stay."""
    line = PlannedFault("llm", AtReply(byte=30, after_s=60), parse_fault({"stall": 90}), ALWAYS, "link", 120)
    (fast,) = FaultPlan((line,)).scaled(30).faults
    assert (fast.trigger.after_s, fast.fault, fast.heal_after_s) == (2, parse_fault({"stall": 3}), 4)
    assert (fast.trigger.byte, fast.times, fast.sticks_to) == (30, ALWAYS, "link")


def test_what_has_no_duration_is_the_same_at_any_speed():
    """For ever is for ever."""
    line = PlannedFault("llm", AtReply(event=3), parse_fault({"stall": "forever"}))
    assert line.scaled(50) == line


@pytest.mark.parametrize(
    ("trigger", "before", "inside"),
    [
        (BeforeRequest(phase="connect"), True, False),
        (BeforeRequest(phase="request"), True, True),
        (AtChat(chat="send", phase="request"), True, True),
        (AtPipe(phase="request"), True, True),
        (AtChat(chat="send"), False, False),
        (AtReply(phase="body"), False, False),
    ],
)
def test_only_faults_of_connect_and_request_come_before_the_request(trigger, before, inside):
    """Everything else waits for the reply."""
    assert (trigger.before_request, trigger.in_request) == (before, inside)


def test_a_line_reads_as_what_where_when():
    """In verdicts."""
    assert str(PlannedFault("llm", Trigger(turn=2, step=3), parse_fault("cut"))) == "cut on llm at step 3 of turn 2"
