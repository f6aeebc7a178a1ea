"""The limits that an agent names in its words where it stops, and how other variants of it end the same turn."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wedgehog.harness.record.error_words import uncoloured
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.views import Turn
from wedgehog.reports.sentences import Sentence, linked
from wedgehog.reports.words import many, one_line

OTHERS_SHOWN = 3
WORDS_SHOWN = 160

LIMIT_NAMED: Final = re.compile(
    r"\b(?:breaker|circuit|g[ai]v(?:e|ing) up|backstop|too many (?:attempts|retries|rounds|calls)"
    r"|(?:attempts?|retry|retries|rounds?|iterations?|budget|tool) (?:limit|exhausted|exceeded|used up)"
    r"|(?:attempts?|retry|retries|rounds?|iterations?|calls?|time|token|cost|spend(?:ing)?)[ -]budget"
    r"|max(?:imum)?[ _](?:attempts|retries|rounds|iterations|turns)"
    r"|not (?:trying|retrying) again|limit of (?:my|its) own|after \d+ (?:tool )?rounds)\b",
    re.IGNORECASE,
)
"""Words by which an agent says that it stops because of a limit of its own."""


@dataclass(frozen=True, slots=True)
class ErrorEnd:
    """How a turn ended that surfaced an error."""

    turn: int
    exit_code: int | None
    words: str
    """The line that names a limit, else the last line of the error."""
    names_limit: bool

    @property
    def said(self) -> str:
        """`exit code 1, “error: breaker open”`"""
        code = "" if self.exit_code is None else f"exit code {self.exit_code}, "
        return f"{code}“{self.words}”"


def error_end(history: History) -> ErrorEnd | None:
    """The first turn of the scenario that ended by itself without an answer; None without one."""
    for turn in history.turns:
        if turn.recovery or turn.end is None or turn.end.ended != "by itself":
            continue
        if outcome_of(turn, history).kind != "answered":
            found = LIMIT_NAMED.search(_said(turn))
            words = _line_around(found) if found else _last_line(turn.end.error or turn.end.stderr or turn.end.answer)
            return ErrorEnd(turn.number, turn.end.exit_code, one_line(words, WORDS_SHOWN), found is not None)
    return None


def limits(history: History, others: Sequence[tuple[str, str, ErrorEnd]]) -> Iterator[Sentence]:
    """Whether the agent's words name a limit, and the calls after them; `others`: agent, address, end of the turn."""
    yield from _its_words(history)
    mine = error_end(history)
    if mine is None:
        return
    ends = [it for it in others if it[2].turn == mine.turn and _masked(it[2].words) != _masked(mine.words)]
    if not (mine.names_limit or any(it[2].names_limit for it in ends)):
        return
    for agent, address, it in sorted(ends, key=lambda end: not end[2].names_limit)[:OTHERS_SHOWN]:
        same = it.exit_code == mine.exit_code
        tells = "the exit code is the same, so only the words tell" if same else "the exit codes and the words tell"
        here, there = f"Turn {mine.turn} ended here with {mine.said}, and in ", f" (a variant of it) with {it.said}: "
        yield [here, linked(agent, address), f"{there}{tells} the two errors apart."]


def _its_words(history: History) -> Iterator[str]:
    for turn in history.turns:
        if turn.recovery or turn.end is None or (found := LIMIT_NAMED.search(_said(turn))) is None:
            continue
        after = [call for call in history.calls if call.arrived.id > turn.end.id]
        recovery = sum(call not in history.played_calls for call in after)
        code = "" if turn.end.exit_code is None else f" (exit code {turn.end.exit_code})"
        words = one_line(_line_around(found), WORDS_SHOWN)
        yield f"Its words at the end of {turn}{code} name a limit: “{words}”."
        yield f"After them came {many(len(after) - recovery, 'call')}, and {recovery} of the recovery message."
        return
    yield "Its words name no breaker and no limit of attempts, rounds or cost; its timers stand in “What happened”."


def _said(turn: Turn) -> str:
    return "" if turn.end is None else uncoloured(f"{turn.end.error}\n{turn.end.stderr}\n{turn.end.answer}")


def _last_line(said: str) -> str:
    return next((it for it in reversed(uncoloured(said).splitlines()) if it.strip()), "nothing")


def _masked(words: str) -> str:
    return re.sub(r"\d+", "0", words)


def _line_around(found: re.Match[str]) -> str:
    """The line of some words, of which at most 120 characters stand before them."""
    start = max(found.string.rfind("\n", 0, found.start()) + 1, found.start() - 120)
    return found.string[start : found.end() + 160].partition("\n")[0]
