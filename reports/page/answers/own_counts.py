"""The agent's own counts: the sums of the numbers in its session files, beside what the harness counted."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from wedgehog.harness.record.history import History
from wedgehog.harness.record.ledger import ledger_of, played_ledger
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.views import Turn
from wedgehog.reports.database_use import database
from wedgehog.reports.page.answers.session_state import SessionState, session_state
from wedgehog.reports.words import brief, count, least_money, many, money, one_line, seconds

AT_MOST = 5
SHOWN_WHOLE = 1000
"""Larger sums are shown without decimals."""
CountedFile = tuple[str, SessionState]
"""The name of a file with amounts in each record, and what it holds."""

INPUT: Final = re.compile(r"(?:input|prompt)\w*tokens", re.IGNORECASE)
OUTPUT: Final = re.compile(r"(?:output|completion)\w*tokens", re.IGNORECASE)
TIME: Final = re.compile(r"latency|duration|elapsed", re.IGNORECASE)
IN_MS: Final = re.compile(r"ms$|milli", re.IGNORECASE)


def counted_files(run: StoredRun) -> list[CountedFile]:
    """The session files that hold amounts in each of their records."""
    states = [(one_line(path.name, 60), session_state(path)) for path in run.session_files]
    return [(name, state) for name, state in states if state is not None and state.sums]


def own_counts(history: History, files: Sequence[CountedFile]) -> Iterator[str]:
    """What they hold, what the harness counted, and how far they agree."""
    if not files:
        yield "None known: no session file holds amounts in each of its records."
    for name, state in files[:AT_MOST]:
        sums = ", ".join(f"{one_line(it, 30)} {_amount(total)}" for it, total in [*state.sums.items()][:AT_MOST])
        blank = f"; {count(state.blank)} of them hold only zeros" if state.blank else ""
        no_money = "" if state.has_money else "; no record holds an amount of money"
        yield f"{name}: {many(state.records, 'record')}, in sum {sums}{blank}{no_money}."
    ours, played = ledger_of(history), played_ledger(history)
    more = ours.paid_calls - played.paid_calls
    without = f" (with {more:,} of the recovery message, which the numbers above this list leave out)" if more else ""
    least, usd = ("at least ", least_money) if history.cut_short else ("", money)
    calls = f"{least}{many(ours.paid_calls, 'paid call')}{without}"
    yield (
        f"By our count: {calls}, {count(ours.total.input_tokens)} input and "
        f"{count(ours.total.output_tokens)} output tokens, simulated cost {usd(ours.cost_usd)}."
    )
    for name, state in files[:AT_MOST]:
        yield from _compared(name, state, ours.total.input_tokens, ours.total.output_tokens)


def _amount(total: float) -> str:
    """`85.5`, `1,234` or `1.28M`."""
    return f"{total:.1f}" if total != int(total) and abs(total) < SHOWN_WHOLE else brief(total)


def _compared(name: str, state: SessionState, input_tokens: int, output_tokens: int) -> Iterator[str]:
    """Where a book has input or output tokens: how much of ours it has."""
    pairs = [(INPUT, "input", input_tokens), (OUTPUT, "output", output_tokens)]
    found = [
        f"{count(sum(amounts))} of {count(ours)} {what} tokens"
        for pattern, what, ours in pairs
        if (amounts := [total for it, total in state.sums.items() if pattern.search(it)])
    ]
    if found:
        yield f"So {name} has {' and '.join(found)}."


def database_share(history: History, files: Sequence[CountedFile]) -> Iterator[str]:
    """The queries that the harness saw; else the count of the agent's session files; and their share of the time."""
    if used := database(history):
        yield f"{used}."
        return
    kept = [(name, state) for name, state in files if any("quer" in it.lower() for it in state.sums)]
    unseen = "No query went through a database of the harness, so it measured none"
    yield (
        f"{unseen}; what follows is from the agent's session files." if kept else f"{unseen}: their share is not known."
    )
    for name, state in kept[:AT_MOST]:
        queries = sum(total for it, total in state.sums.items() if "quer" in it.lower())
        times = [(it, total) for it, total in state.sums.items() if TIME.search(it)][:1]
        says = f"{name}: {count(queries)} queries in {many(state.records, 'record')}"
        if not times:
            yield f"{says}, without their time."
        for it, total in times:
            took_s = total / 1000 if IN_MS.search(it) else total
            yield f"{says}, {one_line(it, 30)} {seconds(took_s)} in sum; {_share(took_s, history)}."


def _share(took_s: float, history: History) -> str:
    """The share of the time in which the agent worked, by the clock that the sum can be of."""
    real_s, scale = sum(map(_worked_s, history.turns)), history.run.time_scale
    if not real_s:
        return "no turn ended, so its share is not known"
    of_real = f"{took_s / real_s:.0%} of the {seconds(real_s)} in which the agent worked"
    if scale == 1:
        more = f"more than the {seconds(real_s)} in which the agent worked, so they overlapped"
        return of_real if took_s <= real_s else more
    of_scenario = f"{took_s / real_s / scale:.0%} of the agent's {seconds(real_s * scale)}"
    if took_s <= real_s:
        return f"{of_real} if these are real seconds. If they are the scenario's ({scale:g} to 1), {of_scenario}"
    why = "since its tool calls came one at a time" if _one_at_a_time(history) else "or its tool calls overlapped"
    longer = f"more than the {seconds(real_s)} in which the agent worked"
    return f"{longer}. So these are seconds of the scenario ({scale:g} to 1), {why}: {of_scenario}"


def _worked_s(turn: Turn) -> float:
    """From a turn's first request to its end, or to that of its last call: it may go on after its user left."""
    ends = [call.ended.at_s for call in turn.calls if call.ended is not None]
    ends += [turn.end.at_s] if turn.end is not None else []
    return max(0.0, max(ends, default=turn.start_s) - turn.start_s)


def _one_at_a_time(history: History) -> bool:
    """Whether each reply held one tool call at most."""
    return all(call.ended is None or len(call.ended.tool_calls) <= 1 for call in history.calls)
