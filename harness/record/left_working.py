"""A service that works on after its front end gave up: its calls, its pauses, and what ended them."""

from itertools import pairwise

from wedgehog.harness.record.views import Call, Turn


def calls_after_it_left(turn: Turn) -> tuple[Call, ...]:
    """The calls of the conversation that came after the front end gave up."""
    left = turn.gave_up
    return () if left is None else tuple(call for call in turn.main_calls if call.arrived.id > left.id)


def longest_pause_s(turn: Turn) -> float:
    """The longest time from the end of a reply to the next request."""
    calls = turn.main_calls
    pauses = (after.at_s - before.ended.at_s for before, after in pairwise(calls) if before.ended is not None)
    return max(pauses, default=0.0)


def asks_on(turn: Turn, ends_s: float) -> bool:
    """Whether its last reply asked for a tool, and the recording ended sooner than one of its pauses had lasted.

    A reply that was late then, and still coming, ends no loop either.
    """
    last = next(reversed(calls_after_it_left(turn)), None)
    if last is None or last.ended is None or last.ended.stop != "tool":
        return False
    return last.still_coming or (last.ok and ends_s - last.ended.at_s <= longest_pause_s(turn))
