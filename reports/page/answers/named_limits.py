"""The limits that an agent names in its words where it stops, and how other variants of it end the same turn."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wedgehog.harness.record.error_words import uncoloured
from wedgehog.harness.record.events.turn import TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.views import Turn
from wedgehog.reports.page.answers.sentences import Sentence, linked
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
ENDED_BY_TIMER: Final = re.compile(r"its timer .+? fired: (?:it ended the turn|it hung up|the front end) ?")
"""What the judge remarks of a timer of the spec that ended a call, a turn, or the wait of the front end."""


@dataclass(frozen=True, slots=True)
class ErrorEnd:
    """How a turn ended that surfaced an error."""

    turn: int
    sign: str
    """What a program sees of it: `exit code 1`, `HTTP 500`, `exception ValueError`; empty if there is none."""
    words: str
    """The line that names a limit, else the last line of the error; empty if it said nothing."""
    names_limit: bool

    @property
    def said(self) -> str:
        """`exit code 1, “error: breaker open”`"""
        words = f"“{self.words}”" if self.words else "no words"
        return f"{self.sign}, {words}" if self.sign else words


def error_end(history: History) -> ErrorEnd | None:
    """The first turn of the scenario that ended by itself without an answer; None without one."""
    for turn in history.turns:
        if turn.recovery or turn.end is None or turn.end.ended != "by itself":
            continue
        if outcome_of(turn, history).kind != "answered":
            found = LIMIT_NAMED.search(_said(turn))
            words = _line_around(found) if found else _last_line(turn.end.error or turn.end.stderr or turn.end.answer)
            return ErrorEnd(turn.number, _sign(turn.end), one_line(words, WORDS_SHOWN), found is not None)
    return None


def _sign(end: TurnEnded) -> str:
    if end.raised:
        return f"exception {re.split(r'[:(]', end.raised, maxsplit=1)[0]}"
    if end.status is not None:
        return f"HTTP {end.status}"
    return "" if end.exit_code is None else f"exit code {end.exit_code}"


def limits(history: History, remarks: Sequence[str], others: Sequence[tuple[str, str, ErrorEnd]]) -> Iterator[Sentence]:
    """The limits that the agent's words name, the calls after them, and its timers that ended something.

    `remarks`: the judge's; `others`: agent, address and end of the turn.
    """
    yield from _its_words(history)
    yield from _its_timers(remarks)
    mine = error_end(history)
    if mine is None:
        return
    ends = [it for it in others if it[2].turn == mine.turn and _masked(it[2].words) != _masked(mine.words)]
    if not (mine.names_limit or any(it[2].names_limit for it in ends)):
        return
    for agent, address, it in sorted(ends, key=lambda end: not end[2].names_limit)[:OTHERS_SHOWN]:
        here, there = f"Turn {mine.turn} ended here with {mine.said}, and in ", f" (a variant of it) with {it.said}: "
        yield [here, linked(agent, address), f"{there}{_apart(mine.sign, it.sign)}"]


def _apart(here: str, there: str) -> str:
    """What tells two ends with different words apart."""
    if not (here and there):
        return "only the words tell the two ends apart."
    if here == there:
        return f"both are {here}, so only the words tell the two ends apart."
    return f"{here} against {there} tells the two ends apart, and so do the words."


def _its_timers(remarks: Sequence[str]) -> Iterator[str]:
    fired = [it for it in remarks if ENDED_BY_TIMER.search(it)]
    yield from (f"A timer of its spec: {it}." for it in fired)
    if not fired:
        yield "No timer of its spec is known to have ended a call or a turn."


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
    yield "Its words name no breaker and no limit of attempts, rounds or cost."


def _said(turn: Turn) -> str:
    return "" if turn.end is None else uncoloured(f"{turn.end.error}\n{turn.end.stderr}\n{turn.end.answer}")


def _last_line(said: str) -> str:
    return next((it for it in reversed(uncoloured(said).splitlines()) if it.strip()), "")


def _masked(words: str) -> str:
    return re.sub(r"\d+", "0", words)


def _line_around(found: re.Match[str]) -> str:
    """The line of some words, of which at most 120 characters stand before them."""
    start = max(found.string.rfind("\n", 0, found.start()) + 1, found.start() - 120)
    return found.string[start : found.end() + 160].partition("\n")[0]
