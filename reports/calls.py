"""The calls of a run: one call or one fired fault in a few words, and the table of all calls in the page."""

from collections.abc import Sequence

from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import Call, Turn
from wedgehog.reports.markup import Markup, html_table, line, tag
from wedgehog.reports.words import NONE, brief, count, many, one_line, seconds

CALLS_SHOWN = 300
"""A longer table leaves out rows in its middle; history.jsonl holds them all."""

_COLUMNS = (
    ("#", "n"),
    ("turn.step.attempt", "keep"),
    ("at", "n"),
    ("sent", "n"),
    ("status", "keep"),
    ("tokens in", "n"),
    ("out billed", "n"),
    ("delivered", "n"),
    ("took", "n"),
    ("how it ended", "says"),
)


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
    closed = (f"ended by {call.stopped_by}" if call.stopped_by else "the agent hung up") if gone else ""
    return ", ".join(part for part in (ended, closed) if part) or "no end recorded"


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


def stop_name(turn: Turn) -> str:
    """The name of what ended a turn that did not end by itself."""
    if turn.killed is not None:
        return "kill"
    return "abort" if turn.aborted else "front end gave up" if turn.gave_up else "deadline"


def call_table(history: History) -> Markup:
    """All calls of a run, in order of arrival."""
    calls = history.calls
    if not calls:
        return tag("p", "No request reached the model.", class_="soft")
    lines = [_row(call, proof) for call, proof in zip(calls, _new_proofs(calls), strict=True)]
    if len(lines) > CALLS_SHOWN:
        head, tail = CALLS_SHOWN * 3 // 4, CALLS_SHOWN // 4
        words = f"{len(calls) - head - tail:,} calls are left out here; history.jsonl holds them all"
        gap = tag("tr", tag("td", words, colspan=len(_COLUMNS)), class_="left-out")
        lines = [*lines[:head], gap, *lines[-tail:]]
    recovery = len(calls) - len(history.played_calls)
    more = f", and {many(recovery, 'call')} of the recovery message" if recovery else ""
    title = tag("h4", f"{many(len(calls) - recovery, 'call')}{more}")
    return tag("div", title, html_table(_COLUMNS, lines, tall=True))


def _new_proofs(calls: Sequence[Call]) -> list[str]:
    """The faults of each call with their proofs; a proof equal to that of the call before is left out."""
    said = ["; ".join(fault_words(fired) for fired in call.faults) for call in calls]
    names = [", ".join(fired.name for fired in call.faults) for call in calls]
    return [name if before == one else one for before, one, name in zip(["", *said], said, names, strict=False)]


def _row(call: Call, faults: str) -> Markup:
    beside = call.arrived.side or call.arrived.background
    where = place(call) + (f" {beside}" if beside else "")
    cells = (
        call.number,
        where,
        seconds(max(call.at_s, 0.0)),
        f"{brief(call.arrived.body_bytes)} B",
        _status(call),
        count(call.input_tokens),
        count(call.output_tokens),
        count(call.tokens_delivered),
        seconds(took_s(call)),
        (ending(call) + _stop(call), tag("small", faults, class_="fault") if faults else None),
    )
    return line(_COLUMNS, cells, None if call.ok else "lost")


def _stop(call: Call) -> str:
    """The stop reason of a whole reply."""
    return f"; stop reason: {call.ended.stop}" if call.whole and call.ended else ""


def _status(call: Call) -> str:
    if call.unscripted:
        return "unscripted"
    if call.refused:
        return str(call.refused.status)
    return "200, paid" if call.paid else NONE
