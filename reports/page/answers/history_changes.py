"""What an agent left out of its history from one request to the next, and which tool calls it left without a result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import Call
from wedgehog.reports.calls import place
from wedgehog.reports.words import many, one_line

CALLS_NAMED = 4


@dataclass
class _Carried:
    """What the last request of a session carried, and the tool calls that came with its reply."""

    results: dict[str, int] = field(default_factory=dict)
    """Characters of each result, by the name of its tool call."""
    open: set[str] = field(default_factory=set)
    turns: frozenset[int] = frozenset()
    offered: tuple[str, ...] = ()


def removals(history: History) -> list[str]:
    """A sentence for each request that no longer carries what the one before it in its session carried."""
    return [said for session in _sessions(history) for said in _removals(session)]


def left_open(call: Call) -> str:
    """The tool calls that a request carried without a result; empty without any, or if they were not recorded."""
    return named([it.token or it.id for it in call.arrived.open_calls or ()])


def compared(history: History) -> int:
    """How many requests have one before them in their session."""
    return sum(max(0, len(session) - 1) for session in _sessions(history))


def named(calls: Sequence[str]) -> str:
    """`1.1.1, 1.1.2 and 3 more`"""
    more = f" and {len(calls) - CALLS_NAMED:,} more" if len(calls) > CALLS_NAMED else ""
    return ", ".join(one_line(it, 60) for it in calls[:CALLS_NAMED]) + more


def _sessions(history: History) -> Iterator[list[Call]]:
    """The requests of the main conversation of each session, in order."""
    of = {turn.number: turn.session for turn in history.turns}
    found: dict[str, list[Call]] = {}
    for call in history.calls:
        if call.main and not call.arrived.side and call.arrived.turn in of:
            found.setdefault(of[call.arrived.turn], []).append(call)
    yield from found.values()


def _removals(session: Sequence[Call]) -> Iterator[str]:
    """A request of a turn that goes on behind a later one is compared with its own turn's."""
    last: dict[int, _Carried] = {}
    for call in session:
        now, turn = _carried(call), call.arrived.turn
        before = next((last[it] for it in sorted(last, reverse=True) if it <= turn), _Carried())
        if said := list(_differences(before, now, call)):
            yield f"request {place(call)} (call {call.number}) {'; '.join(said)}"
        last[turn] = now


def _carried(call: Call) -> _Carried:
    at = call.arrived
    return _Carried(
        {it.token or it.id: it.chars for it in at.results if it.token or it.id},
        {it.token or it.id for it in at.open_calls or ()},
        frozenset(at.turns_seen),
        tuple(it.token for it in call.ended.tool_calls if it.whole) if call.whole and call.ended else (),
    )


def _differences(before: _Carried, now: _Carried, call: Call) -> Iterator[str]:
    held = {*now.results, *now.open}
    if gone := [it for it in before.results if it not in held]:
        yield f"no longer carried {many(len(gone), 'tool result')}, of tool call {named(gone)}"
    if lost := [it for it in before.results if it in now.open]:
        yield f"carried tool call {named(lost)}, but no longer its result"
    if call.arrived.open_calls is not None:
        unheard = [*before.open, *(it for it in before.offered if it not in before.results)]
        if left := [it for it in dict.fromkeys(unheard) if it not in held]:
            yield f"carried neither tool call {named(left)} nor a result of it"
    if cut := [it for it, chars in before.results.items() if now.results.get(it, chars) < chars]:
        yield f"carried a shorter result of tool call {named(cut)}"
    if turns := sorted(before.turns - now.turns):
        yield f"no longer carried the message of turn {', '.join(map(str, turns[:CALLS_NAMED]))}"
