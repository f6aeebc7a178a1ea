"""A plain list of a run's calls: where, when, what was billed and what arrived, how it ended and what struck it."""

from collections.abc import Sequence

from wedgehog.harness.record.history import Call, History
from wedgehog.reports.call_words import ending, place, strike, took_s
from wedgehog.reports.html_table import html_table, line
from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.words import NONE, brief, count, many, seconds

CALLS_SHOWN = 300
"""A longer list is cut in its middle; the history keeps them all."""

_CALL = (
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


def call_table(history: History) -> Markup:
    """All calls of a run, in order of arrival."""
    calls = history.calls
    if not calls:
        return tag("p", "No request reached the model.", class_="soft")
    proofs = _new_proofs(calls)
    lines = [_call(call, proof) for call, proof in zip(calls, proofs, strict=True)]
    if len(lines) > CALLS_SHOWN:
        head, tail = CALLS_SHOWN * 3 // 4, CALLS_SHOWN // 4
        words = f"{len(calls) - head - tail:,} calls left out here; history.jsonl holds them all"
        gap = tag("tr", tag("td", words, colspan=len(_CALL)), class_="left-out")
        lines = [*lines[:head], gap, *lines[-tail:]]
    ours = len(calls) - len(history.played_calls)
    more = f", and {many(ours, 'call')} of the recovery message" if ours else ""
    return tag("div", tag("h4", f"{many(len(calls) - ours, 'call')}{more}"), html_table(_CALL, lines, tall=True))


def _new_proofs(calls: Sequence[Call]) -> list[str]:
    """What struck each call; a proof in the same words as the one before is not said again."""
    said = ["; ".join(strike(fired) for fired in call.faults) for call in calls]
    names = [", ".join(fired.name for fired in call.faults) for call in calls]
    return [name if before == one else one for before, one, name in zip(["", *said], said, names, strict=False)]


def _call(call: Call, struck: str) -> Markup:
    where = place(call) + (f" {call.arrived.background}" if call.arrived.background else "")
    cells = (
        call.number,
        where,
        seconds(max(call.at_s, 0.0)),
        f"{brief(call.arrived.body_bytes)} B",
        status(call),
        count(call.input_tokens),
        count(call.output_tokens),
        count(call.tokens_delivered),
        seconds(took_s(call)),
        (ending(call), tag("small", struck, class_="struck") if struck else None),
    )
    return line(_CALL, cells, None if call.ok else "lost")


def status(call: Call) -> str:
    """What the provider answered: a paid 200, a refusal, or nothing."""
    if call.unscripted:
        return "unscripted"
    if call.refused:
        return str(call.refused.status)
    return "200, paid" if call.paid else NONE
