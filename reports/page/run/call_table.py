"""The table of all model calls of a run in the page."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import Call
from wedgehog.reports.calls import ending, fault_words, place, stops, took_s
from wedgehog.reports.markup import Markup, html_table, line, tag
from wedgehog.reports.words import NONE, count, many, one_line, seconds

FIRST, LAST, AROUND = 225, 75, 8
"""A longer table leaves out rows in its middle, but none around a stop or a violation; history.jsonl holds them all."""
ADDRESSES_SHOWN = 4

_COLUMNS = (
    ("#", "n"),
    ("turn.step.attempt", "keep"),
    ("at", "n"),
    ("bytes sent", "n"),
    ("messages", "n"),
    ("tool results (characters)", "n"),
    ("status", "keep"),
    ("how it ended", "says"),
    ("took", "n"),
    ("body bytes received", "n"),
    ("tokens in", "n"),
    ("out billed", "n"),
    ("delivered", "n"),
)


def call_table(history: History, violating: Collection[int] = ()) -> Markup:
    """All calls of a run, in order of arrival; `violating` are the ids of events that a verdict names."""
    calls = history.calls
    if not calls:
        return tag("p", "No request reached the model.", class_="soft")
    rows = list(zip(calls, _new_proofs(calls), strict=True))
    kept = _kept(history, violating)
    lines: list[Markup] = []
    left = 0
    for number, (call, proof) in enumerate(rows):
        if number not in kept:
            left += 1
            continue
        lines += [*_gap(left), _row(call, proof)]
        left = 0
    recovery = len(calls) - len(history.played_calls)
    more = f", and {many(recovery, 'call')} of the recovery message" if recovery else ""
    title = tag("h4", f"{many(len(calls) - recovery, 'call')}{more}")
    to = tag("p", "; ".join(addresses(calls)), ".", class_="soft")
    return tag("div", title, to, html_table(_COLUMNS, lines, tall=True))


def addresses(calls: Sequence[Call]) -> Iterator[str]:
    """Each method, host and path, with its calls."""
    found = Counter((it.arrived.method, it.arrived.host, it.arrived.path) for it in calls)
    for (method, host, path), number in found.most_common(ADDRESSES_SHOWN):
        where = f"host {one_line(host, 80)}" if host else "method and host were not recorded"
        yield f"{many(number, 'call')} to {f'{method} ' if method else ''}{one_line(path, 80)}, {where}"
    if len(found) > ADDRESSES_SHOWN:
        yield f"{len(found) - ADDRESSES_SHOWN} more addresses"


def _kept(history: History, violating: Collection[int]) -> Collection[int]:
    """The places of the calls that are shown."""
    calls = history.calls
    if len(calls) <= FIRST + LAST:
        return range(len(calls))
    kept = {*range(FIRST), *range(len(calls) - LAST, len(calls))}
    for event in _turning_points(history, violating):
        at = sum(call.arrived.id <= event for call in calls)
        kept.update(range(max(0, at - AROUND), min(len(calls), at + AROUND)))
    return kept


def _turning_points(history: History, violating: Collection[int]) -> Iterator[int]:
    """The events around which calls matter: stops, and the first and the last event of the violations."""
    yield from stops(history)
    if violating:
        yield from (min(violating), max(violating))


def _gap(left_out: int) -> list[Markup]:
    if not left_out:
        return []
    words = f"{many(left_out, 'call')} left out here; history.jsonl holds all"
    return [tag("tr", tag("td", words, colspan=len(_COLUMNS)), class_="left-out")]


def _new_proofs(calls: Sequence[Call]) -> list[str]:
    """The faults of each call with their proofs; a proof equal to that of the call before is left out."""
    said = ["; ".join(fault_words(fired) for fired in call.faults) for call in calls]
    names = [", ".join(fired.name for fired in call.faults) for call in calls]
    return [name if before == one else one for before, one, name in zip(["", *said], said, names, strict=False)]


def _row(call: Call, faults: str) -> Markup:
    at = call.arrived
    beside = at.side or at.background
    cells = (
        call.number,
        place(call) + (f" {beside}" if beside else ""),
        seconds(max(call.at_s, 0.0)),
        count(at.body_bytes),
        count(at.messages),
        _results(call),
        _status(call),
        (ending(call) + _phase(call) + _stop(call), tag("small", faults, class_="fault") if faults else None),
        seconds(took_s(call)),
        count(call.ended.bytes_delivered) if call.ended else NONE,
        count(call.input_tokens),
        count(call.output_tokens),
        count(call.tokens_delivered),
    )
    return line(_COLUMNS, cells, None if call.ok else "lost")


def _results(call: Call) -> str:
    results = call.arrived.results
    return f"{len(results):,} ({count(sum(it.chars for it in results))})" if results else "0"


def _phase(call: Call) -> str:
    """The phase in which a reply broke off."""
    if call.whole or call.ended is None:
        return ""
    if not call.ended.bytes_delivered:
        return "; phase: before the first byte of the reply's body"
    if call.ended.bytes_delivered < call.ended.body_bytes:
        return f"; phase: in the reply's body, after {call.ended.bytes_delivered:,} of {call.ended.body_bytes:,} bytes"
    return "; phase: after the whole body"


def _stop(call: Call) -> str:
    """The stop reason of a whole reply."""
    return f"; stop reason: {call.ended.stop}" if call.whole and call.ended else ""


def _status(call: Call) -> str:
    if call.unscripted:
        return "unscripted"
    if call.refused:
        return str(call.refused.status)
    return "200, paid" if call.paid else NONE
