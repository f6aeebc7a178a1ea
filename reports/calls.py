"""One call or one fired fault of a run in a few words, and the events that violate an invariant."""

from collections.abc import Collection, Iterator, Sequence

from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.record.views import Call, Turn
from wedgehog.reports.words import many, one_line

VIOLATING = ("fail", "error", "inconclusive")
"""The statuses of verdicts that are no pass."""


def place(call: Call) -> str:
    """`1.2.3`: turn, step, attempt."""
    at = call.arrived
    return f"{at.turn}.{at.step}.{at.attempt}"


def ending(call: Call) -> str:
    """How a call ended, in a few words."""
    if call.unscripted:
        return f"unscripted: {one_line(call.unscripted.why, 120)}"
    if call.refused:
        by = "" if call.refused.scripted else " by validation"
        return f"refused {call.refused.status}{by}"
    how = call.ended.how if call.ended else ""
    gone = call.hung_up is not None or how == "hung up"
    ended = "fully generated" if how == "complete" and gone else how if how != "hung up" else ""
    if call.still_coming and not gone:
        return "late, and still coming"
    closed = (f"ended by {call.stopped_by}" if call.stopped_by else "the agent hung up") if gone else _open(call)
    return ", ".join(part for part in (ended, closed) if part) or "no end recorded"


def _open(call: Call) -> str:
    return "" if call.waited_until_s is None else "the agent kept it open"


def took_s(call: Call) -> float | None:
    """Seconds from the request to the end that the agent could see."""
    end = call.failed_at_s if call.failed_at_s is not None else (call.ended.at_s if call.ended else None)
    return None if end is None else max(0.0, end - call.at_s)


def size_down(call: Call) -> str:
    """How many bytes of the reply's body arrived."""
    if call.ended is None:
        return "nothing of the reply was recorded"
    return f"{many(call.ended.bytes_delivered, 'byte')} of the reply's body arrived"


def fault_words(fired: FaultFired) -> str:
    """A fired fault and its proof in one line."""
    unseen = fired.step is None and fired.link == "llm"
    through = many(fired.bytes, "byte" if unseen else "body byte") if fired.bytes is not None else ""
    where = f" after {through}" if through else ""
    if unseen:
        where = f", the next request{where}{' of it' if through else ''}"
    return f"{fired.name} on {fired.link}{where}: {one_line(fired.proof, 160)}"


def stops(history: History) -> Iterator[int]:
    """The ids of the events that stopped turns: a kill, an abort, a front end that gave up, a deadline."""
    for turn in history.turns:
        yield from (it.id for it in (turn.killed, turn.stopped, turn.deadline) if it is not None)


def stop_name(turn: Turn) -> str:
    """The name of what ended a turn that did not end by itself."""
    if turn.killed is not None:
        return "kill"
    return "abort" if turn.aborted else "front end gave up" if turn.gave_up else "deadline"


def violations(verdicts: Sequence[Verdict]) -> dict[int, list[str]]:
    """The names of the violated invariants of which each event is evidence, by its id."""
    return _names(verdicts, ("fail", "error"))


def marks(verdicts: Sequence[Verdict]) -> dict[int, str]:
    """What each event of evidence means: `evidence against paid_call_bound, and leaves start undecided`."""
    bad, open_ = violations(verdicts), _names(verdicts, ("inconclusive",))
    said = {event: [f"evidence against {', '.join(dict.fromkeys(names))}"] for event, names in bad.items()}
    for event, names in open_.items():
        said.setdefault(event, []).append(f"leaves {', '.join(dict.fromkeys(names))} undecided")
    return {event: ", and ".join(parts) for event, parts in said.items()}


def _names(verdicts: Sequence[Verdict], statuses: Collection[str]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for verdict in verdicts:
        for event in verdict.all_evidence if verdict.status in statuses else ():
            found.setdefault(event, []).append(verdict.name)
    return found
