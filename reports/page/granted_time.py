"""Where the harness waited for longer than a bound says: how long, and why."""

from collections.abc import Iterator

from wedgehog.harness.record.history import History
from wedgehog.reports.words import many, seconds

REST = "s is the bound, and the rest it grants for being late itself (1 s at least) and for waits for a processor."


def granted(history: History) -> Iterator[str]:
    """Sentences on first requests, and on deadlines."""
    yield from _starts(history)
    yield from _deadlines(history)


def _starts(history: History) -> Iterator[str]:
    """How long the harness waited for a first request, if that is more than its bound."""
    missed = [(turn, turn.start_missed) for turn in history.turns if turn.start_missed is not None]
    waits = [it.at_s - turn.stimulus.at_s for turn, it in missed if turn.stimulus is not None]
    if not waits or max(waits) <= missed[0][1].bound_s:
        return
    shortest, longest = seconds(min(waits)), seconds(max(waits))
    span = longest if shortest == longest else f"{shortest} to {longest}"
    yield (
        f"The harness stopped waiting for a first request {span} after the message, in {many(len(waits), 'turn')}: "
        f"{missed[0][1].bound_s:g} {REST}"
    )


def _deadlines(history: History) -> Iterator[str]:
    """How long after the first request each turn was stopped, if that is more than its bound."""
    for turn in history.turns:
        hit = turn.deadline
        if hit is not None and not hit.too_many and hit.at_s - turn.start_s > hit.bound_s:
            after = seconds(hit.at_s - turn.start_s)
            yield f"The harness stopped {turn} {after} after its first request: {hit.bound_s:g} {REST}"
