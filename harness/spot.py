"""Where in a reply a trigger lies, in body bytes."""

from wedgehog.fake_llm.observer import Point
from wedgehog.harness.plan import Trigger

BEFORE_HEAD = -1


def spot(at: Trigger, point: Point) -> int | None:
    """The body offset at which a fault strikes this reply; -1 is before the head, None: the reply has no such place.

    Without byte, event or phase it is before the head. `phase: body` is right behind the head, `terminal` the middle of
    the last event (of a reply that is not streamed: before its last byte).
    """
    if at.byte is not None:
        return at.byte if point.body < 0 or at.byte < point.body else None
    if at.event is not None:
        if at.event == 0:
            return 0
        return point.frame_ends[at.event - 1] if at.event <= len(point.frame_ends) else None
    if at.phase == "body":
        return 0
    if at.phase == "terminal":
        ends = point.frame_ends
        return (ends[-2] + ends[-1]) // 2 if len(ends) > 1 else max(0, point.body - 1)
    return BEFORE_HEAD
