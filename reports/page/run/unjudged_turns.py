"""The turns that `error_surfaced` does not judge: its pass says nothing about them."""

from collections.abc import Iterator
from itertools import groupby

from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import OutcomeKind, outcome_of
from wedgehog.harness.record.verdict import NOTHING_TO_JUDGE, Verdict
from wedgehog.harness.record.views import Turn

ERRORS = "error_surfaced"
NEEDS_NO_ERROR: dict[OutcomeKind, str] = {
    "silent": "silent, which turn_deadline judges",
    "truncated": "truncated, which truncation_noticed judges",
    "stopped by its user": "stopped by its user, so it needs no error",
    "killed": "killed, so it needs no error",
    "unfinished": "unfinished",
}


def with_reason(verdict: Verdict, history: History) -> str:
    """The name of an invariant that is not violated, what it says, and which turns it did not judge."""
    said = [] if verdict.says in ("", NOTHING_TO_JUDGE) else [verdict.says]
    said += _unjudged(verdict.name, history)
    return f"{verdict.name} ({'; '.join(said)})" if said else verdict.name


def _unjudged(invariant: str, history: History) -> Iterator[str]:
    """`judged in 1 of 2 turns: turn 1 was silent, which turn_deadline judges`; nothing if each turn was judged."""
    if invariant != ERRORS:
        return
    left = [(why, turn) for turn in history.turns if (why := NEEDS_NO_ERROR.get(outcome_of(turn, history).kind))]
    if not left:
        return
    groups = [(why, [turn for _, turn in group]) for why, group in groupby(left, key=lambda pair: pair[0])]
    said = "; ".join(f"{_named(turns)} {why}" for why, turns in groups)
    yield f"judged in {len(history.turns) - len(left)} of {len(history.turns)} turns: {said}"


def _named(turns: list[Turn]) -> str:
    return f"{turns[0]} was" if len(turns) == 1 else f"{turns[0]} to {turns[-1]} were"
