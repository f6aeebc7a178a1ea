"""What a turn came to, as its user saw it: one name per fact, in a fixed order of precedence.

1. the whole nonce stands in the answer: `answered` (an agent that answers and then does not end is slow, not silent)
2. over its deadline: `silent`
3. an error that a user or a script can see: `surfaced`
4. words, though no call of the turn went wrong (a stop at the agent's own limit): `stopped at its limit`
5. part of a reply that was cut, as if it were the answer: `truncated`
6. nothing at all, or other words after a failed call (a canned apology): `hidden`

A turn that its user stopped owes neither (`stopped by its user`), nor does one whose agent we killed (`killed`); a
wake-up owes no answer.
"""

import re
from dataclasses import dataclass
from typing import Literal

from wedgehog.harness.record.history import Call, History, Turn

OutcomeKind = Literal[
    "silent",
    "answered",
    "surfaced",
    "stopped at its limit",
    "truncated",
    "hidden",
    "stopped by its user",
    "killed",
    "unfinished",
]

STOCK_PATTERNS = (
    r"error\s*[:(]",
    r"\[error\]",
    r"timed? ?out",
    r"rate.?limit|too many requests|quota",
    r"unauthori[sz]ed|authentication|api.?key",
    r"overloaded",
    r"unavailable",
    r"connection( was)? (refused|reset|lost|aborted|broken)",
    r"(stream|reply|response|connection)( was)? (ended|closed|cut|broke|disconnected|terminated)( off)? "
    r"(before|without|early|prematurely|unexpectedly)",
    r"premature (close|end)",
    r"socket hang up",
    r"interrupted",
    r"incomplete",
    r"truncated",
    r"(HTTP|status)( code)? [45]\d\d",
)
"""They name a cause, never an apology."""

COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""What a terminal takes for a colour or a move of its cursor (CSI)."""

TRACE = "Traceback (most recent call last):"
"""How Python begins to say where an exception came from."""

OF_A_STOP = re.compile(r"interrupt|cancel|abort|signal|exit|killed", re.IGNORECASE)
"""What an agent may say because we stop it."""

CUT_TEXT_CHARS = 12
CUT_NONCE_CHARS = 6


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """What the turn came to; `how` says by which sign, `remark` what a reader should know besides."""

    kind: OutcomeKind
    how: str = ""
    remark: str = ""

    @property
    def seen(self) -> bool:
        """Whether its user got an answer or a word about what went wrong."""
        return self.kind in ("answered", "surfaced", "stopped at its limit", "stopped by its user")


def uncoloured(text: str) -> str:
    """The text as a terminal shows it, without its colours."""
    return COLOURS.sub("", text)


def plain(text: str) -> str:
    """Letters and digits only, in lower case: case, white space, markup and colours do not count."""
    return re.sub(r"[\W_]+", "", uncoloured(text)).lower()


def outcome_of(turn: Turn, history: History) -> TurnOutcome:
    """What `turn` came to."""
    end = turn.end
    if end is None or turn.stimulus is None:
        return TurnOutcome("unfinished", "the run ended before the turn did")
    if turn.stimulus.nonce and plain(turn.stimulus.nonce) in plain(end.answer):
        late = "it had answered, but did not end by itself" if turn.deadline else ""
        late = "it had answered when it was killed" if turn.killed else late
        return TurnOutcome("answered", "the model's answer came through whole", late)
    return _answered_beside(turn, history) or _stopped(turn) or _surfaced(turn, history) or _wordy(turn)


def _stopped(turn: Turn) -> TurnOutcome | None:
    """What ended it that was not the agent itself."""
    if turn.killed is not None:
        return TurnOutcome("killed", f"{turn.killed.signal} ended it")
    if turn.stopped is not None:
        return TurnOutcome("stopped by its user", "aborted" if turn.aborted else "the front end gave up")
    if turn.deadline is not None:
        return TurnOutcome("silent", "no answer and no error by the deadline")
    if turn.start_missed is not None:
        return TurnOutcome("silent", "it never asked the model")
    return None


def told_of(turn: Turn) -> int | None:
    """The status of a refusal that its output names: an agent that tries again aloud is not silent."""
    end = turn.end
    return None if end is None else _status_in(f"{end.stdout}\n{end.stderr}\n{end.answer}\n{end.error}", turn)


def told_words(turn: Turn, history: History) -> str:
    """The last line that names a cause, but for what our own stop may have made it say; empty where there is none."""
    end = turn.end
    said = "" if end is None else _unusual(f"{end.stderr}\n{end.error}", history)
    lines = [line.strip() for line in said.partition(TRACE)[0].splitlines()]
    lines = [line for line in lines if _matching(line, history.run.error_patterns)]
    return next((_short(line) for line in reversed(lines) if not OF_A_STOP.search(line)), "")


def causes(text: str, more: tuple[str, ...] = ()) -> frozenset[str]:
    """The lines that name a cause, with their numbers masked; `more`: an agent's own patterns."""
    return frozenset(_masked(line) for line in uncoloured(text).splitlines() if _matching(line, more))


def _answered_beside(turn: Turn, history: History) -> TurnOutcome | None:
    """Of two messages at once each may be answered with the other: in its place, or by the model for both."""
    for other in history.beside(turn):
        if turn.stimulus is None or other.stimulus is None:
            continue
        mine, others = plain(turn.stimulus.nonce), plain(other.stimulus.nonce)
        if mine and other.end is not None and mine in plain(other.end.answer):
            return TurnOutcome("answered", f"its answer stands in that of {other}")
        # The model saw both messages at once, and never ended this one's turn with words of its own.
        both = any(turn.number in call.arrived.turns_seen for call in other.main_calls)
        own_words = any(call.ok and call.ended is not None and call.ended.stop == "end" for call in turn.main_calls)
        if others and both and not own_words and turn.end is not None and others in plain(turn.end.answer):
            return TurnOutcome("answered", f"the model answered it together with {other}")
    return None


def _surfaced(turn: Turn, history: History) -> TurnOutcome | None:
    end = turn.end
    assert end is not None  # noqa: S101  outcome_of has asked
    words = (end.stdout + end.stderr + end.answer + end.error).strip()
    if end.raised:
        return TurnOutcome("surfaced", f"raised {_short(end.raised)}")
    if end.exit_code not in (None, 0) and words:
        return TurnOutcome("surfaced", f"exit code {end.exit_code}: {_short(end.error or end.stderr or words)}")
    if end.status is not None and end.status >= 400:
        return TurnOutcome("surfaced", f"HTTP {end.status}: {_short(words)}")
    if history.run.error_at_path and end.error.strip():
        return TurnOutcome("surfaced", f"error: {_short(end.error)}")
    said = _unusual(f"{end.answer}\n{end.error}", history)
    pattern = _matching(said, history.run.error_patterns) or _status_in(said, turn)
    if pattern:
        script_blind = end.exit_code == 0 or end.status == 200
        remark = "a script cannot see this error: the exit code is 0" if end.exit_code == 0 else ""
        return TurnOutcome("surfaced", f"the words say {pattern!r}", remark if script_blind else "")
    return None


def _wordy(turn: Turn) -> TurnOutcome:
    end = turn.end
    assert end is not None  # noqa: S101  outcome_of has asked
    failed = [call for call in turn.main_calls if not call.ok]
    words = end.answer.strip()
    if words and any(_shows_cut(call, turn, end.answer) for call in failed):
        return TurnOutcome("truncated", f"part of a cut reply stands as the answer: {_short(words)}")
    if words and not _failed(turn, made_good_by="tool"):
        return TurnOutcome("stopped at its limit", f"it ended with words of its own: {_short(words)}")
    if turn.stimulus is not None and turn.stimulus.stimulus == "wake_up" and not _failed(turn, made_good_by="any"):
        return TurnOutcome("stopped by its user", "a wake-up owes no answer")
    if not words:
        return TurnOutcome("hidden", "no answer and no word of an error")
    return TurnOutcome("hidden", f"after a failed call it said only {_short(words)}")


def _failed(turn: Turn, made_good_by: Literal["tool", "any"]) -> bool:
    """Whether a call of the turn failed, and its last call did not make that good.

    A last call that went well excuses a wake-up's silence. It excuses words of the agent's own only if the model still
    asked for tools in it: then the agent stopped at a limit. After a final text they would be an apology.
    """
    calls = turn.main_calls
    last = calls[-1] if calls else None
    unseen = any(last is None or last.arrived.id < fault.id for fault in turn.kept_away)
    if unseen or last is None:
        return unseen
    ended_well = last.ok and last.ended is not None and (made_good_by == "any" or last.ended.stop == "tool")
    return not ended_well and any(not call.ok for call in calls)


def _shows_cut(call: Call, turn: Turn, answer: str) -> bool:
    delivered, shown = plain(call.ended.text_delivered if call.ended else ""), plain(answer)
    nonce = plain(turn.stimulus.nonce) if turn.stimulus else ""
    if len(delivered) >= CUT_TEXT_CHARS and any(
        delivered[i : i + CUT_TEXT_CHARS] in shown for i in range(len(delivered) - CUT_TEXT_CHARS + 1)
    ):
        return True
    part = nonce[:CUT_NONCE_CHARS]
    return len(part) == CUT_NONCE_CHARS and part in delivered and part in shown


def _unusual(text: str, history: History) -> str:
    """What it does not say too when all is well."""
    usual = history.run.usual
    return "\n".join(line for line in uncoloured(text).splitlines() if _masked(line) not in usual)


def _masked(line: str) -> str:
    return re.sub(r"\d+", "#", line.strip())


def _status_in(text: str, turn: Turn) -> int | None:
    said = uncoloured(text)
    statuses = dict.fromkeys(call.refused.status for call in turn.main_calls if call.refused)
    return next((status for status in statuses if re.search(rf"\b{status}\b", said)), None)


def _matching(text: str, more: tuple[str, ...]) -> str | None:
    text = uncoloured(text)
    for pattern in (*more, *STOCK_PATTERNS):
        found = re.search(pattern, text, re.IGNORECASE)
        if found:
            return found.group(0)
    return None


def _short(text: str, limit: int = 120) -> str:
    line = " ".join(exception_in(uncoloured(text)).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def exception_in(text: str) -> str:
    """Of a text with a Python trace in it what stands behind the last one: the exception. Else the whole text."""
    _, found, trace = text.rpartition(TRACE)
    lines = trace.splitlines()
    behind = [number for number, line in enumerate(lines) if line and not line[0].isspace()]
    return "\n".join(lines[behind[0] :]) if found and behind else text
