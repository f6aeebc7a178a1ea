"""How much of a limited reply can have arrived."""

from typing import Any

import pytest

from wedgehog.harness.faults.base import WireFault, parse_fault
from wedgehog.harness.inject.limited_reply import Written


def _slow(kb_per_s: int = 1) -> WireFault:
    fault = parse_fault({"bandwidth": kb_per_s})
    assert isinstance(fault, WireFault)
    return fault


def test_of_a_reply_of_which_nothing_was_written_nothing_has_arrived():
    """A user may stop the turn while the reply is held before its first byte."""
    assert Written().played(_slow(), first=0) == (0, 0.0)


def test_a_slow_link_lets_through_what_its_time_allows():
    """1,000 bytes in a second; the head is not counted."""
    written = Written(head=100, body=5_000, parts=[(0.0, 0)])
    delivered, last_s = written.played(_slow(), first=0, until_s=2.0)
    assert 1_800 <= delivered <= 2_000 and 1.9 <= last_s <= 2.0


def test_a_reply_in_two_parts_is_whole_as_soon_as_its_bytes_can_have_passed():
    """A slice that is not full takes no whole slice's time: 800 bytes at 1.67 MB/s are half a millisecond."""
    written = Written(head=100, body=713, parts=[(0.0, 0), (0.004, 101)])
    delivered, last_s = written.played(_slow(1670), first=0, until_s=0.07)
    assert delivered == 713 and last_s < 0.01


@pytest.mark.parametrize(
    ("fault", "most_s"),
    [({"drip": {"every_s": 0.125}}, 1.1), ({"bandwidth": 1}, 1.1), ({"latency": 6}, 8.0)],
)
def test_the_longest_silence_of_a_slow_reply_is_known_about(fault: dict[str, Any], most_s: float):
    """Of one that drips it is short; one that is late by six seconds is silent for as long, and comes at once."""
    slow = parse_fault(fault)
    assert isinstance(slow, WireFault)
    written = Written(body=50_000, parts=[(0.0, 0)])
    quiet_s = written.quiet_s(slow, 0, 8.0)
    assert quiet_s is not None and most_s / 2 < quiet_s <= most_s


def test_of_what_was_not_written_no_silence_is_known():
    assert Written().quiet_s(_slow(), 0, 8.0) is None
