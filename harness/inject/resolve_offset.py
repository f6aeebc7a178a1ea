"""Where in a reply a trigger lies, in body bytes."""

from wedgehog.fake_llm.observer import BEFORE_HEAD, Point
from wedgehog.harness.scenario.plan import Phase, Trigger


def resolve_offset(at: Trigger, point: Point) -> int | None:
    """The body offset at which a fault strikes this reply; -1 is before the head, None: the reply has no such place.

    Without byte, event or phase it is before the head. `phase: body` is right behind the head, `middle` behind half of
    the events (of a reply that is not streamed: of its bytes), `terminal` the middle of the last event (before the last
    byte), `linger` behind that event, before the end of the body.
    """
    ends = point.frame_ends
    if at.byte is not None:
        return at.byte if point.body < 0 or at.byte < point.body else None
    if at.event is not None:
        return (0, *ends)[at.event] if at.event <= len(ends) else None
    return _of_phase(at.phase, ends, point)


def _of_phase(phase: Phase | None, ends: tuple[int, ...], point: Point) -> int | None:
    match phase:
        case "body":
            return 0
        case "middle":
            return ends[(len(ends) - 1) // 2] if ends else max(0, point.body // 2)
        case "terminal":
            return (ends[-2] + ends[-1]) // 2 if len(ends) > 1 else max(0, point.body - 1)
        case "linger":
            return ends[-1] if ends else None
        case _:
            return BEFORE_HEAD
