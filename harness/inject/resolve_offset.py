"""Which byte a trigger means."""

from wedgehog.fake_llm.observer import BEFORE_HEAD, Point
from wedgehog.harness.scenario.trigger import AtReply, Phase, Trigger


def resolve_offset(at: Trigger, reply: Point | None = None) -> int | None:
    """The byte that a trigger means, counted from the body of a `reply` of the model, else from what it is aimed at.

    -1 is before a reply's head, None: there is no such place. Without byte, event or phase it is before the head.
    `phase: body` is right behind the head, `middle` behind half of the events (of a reply that is not streamed: of its
    bytes), `terminal` the middle of the last event (before the last byte), `linger` behind that event, before the end
    of the body.
    """
    if not isinstance(at, AtReply) or reply is None:
        return BEFORE_HEAD if reply is not None else getattr(at, "byte", None) or 0
    ends = reply.frame_ends
    if at.byte is not None:
        return at.byte if reply.body < 0 or at.byte < reply.body else None
    if at.event is not None:
        return (0, *ends)[at.event] if at.event <= len(ends) else None
    return _of_phase(at.phase, ends, reply)


def _of_phase(phase: Phase | None, ends: tuple[int, ...], reply: Point) -> int | None:
    match phase:
        case "body":
            return 0
        case "middle":
            return ends[(len(ends) - 1) // 2] if ends else max(0, reply.body // 2)
        case "terminal":
            return (ends[-2] + ends[-1]) // 2 if len(ends) > 1 else max(0, reply.body - 1)
        case "linger":
            return ends[-1] if ends else None
        case _:
            return BEFORE_HEAD
