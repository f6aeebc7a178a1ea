"""The outcome of a turn as its user saw it. The first that applies:

1. `answered`: the answer contains the whole nonce (also if the turn then exceeds its deadline), or the output shows it
   in a question that the model asks by a tool
2. `silent`: the turn exceeded its deadline
3. `surfaced`: an error that a user or a script can see
4. `stopped at its limit`: other words. They are the whole last reply; or no call of the turn failed or was damaged,
   and no answer came: a tool round has been sent and one more was asked for, or the model refused, said nothing, or
   said these words
5. `truncated`: part of a cut reply, shown as the answer (at least 12 characters of it, or all that came), or the
   beginning of a long one that came whole
6. `hidden`: no words, or other words in the place of an answer (a canned apology, or "Task completed" at a limit)

A turn that its user stopped, also by denying a tool (`stopped by its user`), or that a kill ended (`killed`) needs
neither answer nor error. A wake-up needs no answer.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from wedgehog.harness.record.call_failures import failed, worst_of
from wedgehog.harness.record.claims import claims_success
from wedgehog.harness.record.error_words import TRACE, cause_in, masked, matching, plain, short, short_end, uncoloured
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.turn import AgentKilled, PermissionAsked, TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.shown_words import (
    cut_part,
    is_last_reply,
    is_what_came,
    may_be_last_words,
    shows_cut,
    shows_only_its_beginning,
)
from wedgehog.harness.record.turn_words import cut_word, leaving_word, status_in
from wedgehog.harness.record.views import Turn

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

OF_A_STOP = re.compile(r"interrupt|cancel|abort|signal|exit|killed", re.IGNORECASE)
"""Words of an agent that the harness stops."""

LATE_ERROR = "its error came after the deadline"
_WORDS_SAY = "the words say"
TO_ITS_USER = "channel"
"""The link between a page and its service."""
_SAID_INSTEAD = "in the place of an answer it said only"
IF_ITS_ERROR = (
    "(no stock pattern knows these words as an error: if they name one, add a pattern to `errors:` in the spec)"
)


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """The outcome of a turn; `how` is the evidence in words, `remark` an additional remark."""

    kind: OutcomeKind
    how: str = ""
    remark: str = ""

    @property
    def seen(self) -> bool:
        """Whether the user got an answer or an error."""
        return self.kind in ("answered", "surfaced", "stopped at its limit", "stopped by its user")


def answers(asked: Turn, answered: Turn) -> bool:
    """Whether the answer of one turn contains the nonce of another (or the same) turn."""
    return answered.end is not None and says_answer(asked, answered.end.answer)


def says_answer(asked: Turn, text: str) -> bool:
    """Whether a text contains the nonce of a turn."""
    nonce = plain(asked.stimulus.nonce) if asked.stimulus else ""
    return bool(nonce) and nonce in plain(text)


def outcome_of(turn: Turn, history: History) -> TurnOutcome:
    """The outcome of `turn`."""
    if any(turn is mine for mine in history.turns):
        return history.once(("outcome", turn.number), lambda: _outcome(turn, history))
    return _outcome(turn, history)


def _outcome(turn: Turn, history: History) -> TurnOutcome:
    end = turn.end
    if end is None or turn.stimulus is None:
        return TurnOutcome("unfinished", "the run ended before the turn did")
    if answers(turn, turn):
        late = "it answered but did not end by itself" if turn.deadline else ""
        late = "it answered before it was killed" if turn.killed else late
        return TurnOutcome("answered", "the answer is complete", late)
    return (
        _answered_beside(turn, history)
        or _stopped(turn)
        or _asks_its_user(turn, end)
        or _too_late(turn, history)
        or _surfaced(turn, end, history)
        or _ended_by_denial(turn, history)
        or _without_tools(turn, history, _wordy(turn, end, history))
    )


def _stopped(turn: Turn) -> TurnOutcome | None:
    """The outcome of a turn that the agent did not end itself."""
    if turn.killed is not None:
        return TurnOutcome("killed", f"{turn.killed.signal} ended it")
    if turn.stopped is not None:
        return TurnOutcome("stopped by its user", "aborted" if turn.aborted else "the front end gave up")
    if turn.deadline is not None:
        too_many = turn.deadline.too_many
        when = f"before it was stopped after {too_many}" if too_many else "by the deadline"
        return TurnOutcome("silent", f"no answer and no error {when}")
    if turn.start_missed is not None:
        return TurnOutcome("silent", "it sent no request to the model")
    return None


def _asks_its_user(turn: Turn, end: TurnEnded) -> TurnOutcome | None:
    """The outcome of a turn whose output shows the question that the model asks by a tool."""
    called = [it for call in turn.main_calls if call.ended is not None for it in call.ended.tool_calls]
    shown = turn.stimulus is not None and plain(turn.stimulus.nonce) in plain(end.stdout)
    if shown and any(it.asks_user for it in called):
        return TurnOutcome("answered", "its output shows the question of the model")
    return None


def _too_late(turn: Turn, history: History) -> TurnOutcome | None:
    """The outcome of a turn that ended after its deadline, in the time that a busy machine got on top of it.

    The end of a recovery message counts whenever it comes: its question is whether the agent still works.
    """
    run, took_s = history.run, turn.duration_s
    if run.turn_s is None or took_s is None or turn.end is None or turn.recovery:
        return None
    took_s -= history.frozen_s(turn.start_s, turn.end.at_s)
    if took_s <= history.stretched(run.turn_s):
        return None
    late = LATE_ERROR if _surfaced(turn, turn.end, history) else ""
    return TurnOutcome("silent", "no answer and no error by the deadline", late)


def told_of(turn: Turn) -> int | None:
    """The status of a refusal that the output names, as an agent does that logs its retries; else None."""
    end = turn.end
    return None if end is None else status_in(f"{end.stdout}\n{end.stderr}\n{end.answer}\n{end.error}", turn)


def told_words(turn: Turn, history: History) -> str:
    """The last line of output that names a cause, without words about the harness's own stop; else empty."""
    end = turn.end
    said = "" if end is None else unusual(f"{end.stderr}\n{end.error}", history)
    lines = [line.strip() for line in said.partition(TRACE)[0].splitlines()]
    lines = [line for line in lines if matching(line, history.run.error_patterns)]
    return next((short(line) for line in reversed(lines) if not OF_A_STOP.search(line)), "")


def _answered_beside(turn: Turn, history: History) -> TurnOutcome | None:
    """A message that is answered in a turn open at the same time, or together with its message."""
    for other in history.beside(turn):
        if answers(turn, other):
            return TurnOutcome("answered", f"its answer is part of the answer of {other}")
        # One request carried both messages, and this turn has no final reply of its own.
        both = any(turn.number in call.arrived.turns_seen for call in other.main_calls)
        own_words = any(call.final for call in turn.main_calls)
        if both and not own_words and answers(other, turn):
            return TurnOutcome("answered", f"the model answered it together with {other}")
        if not turn.calls and answers(other, turn) and not _words_beside(turn, other):
            return TurnOutcome(
                "hidden", f"it sent no request to the model, and its user read only the answer of {other}"
            )
    return None


def _words_beside(turn: Turn, other: Turn) -> set[str]:
    """What an agent in a chat sent after one message, without the answer to another one."""
    mine, others = (set(it.end.answer.split("\n")) if it.end is not None else set() for it in (turn, other))
    return mine - others


def _surfaced(turn: Turn, end: TurnEnded, history: History) -> TurnOutcome | None:
    words = (end.stdout + end.stderr + end.answer + end.error).strip()
    if end.raised:
        return TurnOutcome("surfaced", f"raised {short(end.raised)}")
    if end.exit_code not in (None, 0) and words:
        cause = cause_in(end.error or end.stderr or words, history.run.error_patterns)
        return TurnOutcome("surfaced", f"exit code {end.exit_code}: {short(cause)}")
    if end.status is not None and end.status >= 400:
        return TurnOutcome("surfaced", f"HTTP {end.status}: {short(end.error.strip() or end.answer.strip() or words)}")
    if history.run.error_at_path and end.error.strip():
        return TurnOutcome("surfaced", f"error: {short(end.error)}")
    said = _error_place(turn, history)
    pattern = matching(said, history.run.error_patterns) or status_in(said, turn)
    pattern = pattern or cut_word(said, turn) or leaving_word(said, turn)
    if pattern:
        script_blind = end.exit_code == 0 or end.status == 200
        remark = "a script cannot see this error: the exit code is 0" if end.exit_code == 0 else ""
        return TurnOutcome("surfaced", f"{_WORDS_SAY} {pattern!r}", remark if script_blind else "")
    return None


def tells_error(turn: Turn, history: History) -> bool:
    """Whether its user reads an error, also beside an answer."""
    return turn.end is not None and _surfaced(turn, turn.end, history) is not None


def surfaced_by_number(turn: Turn, history: History) -> bool:
    """Whether nothing but the status of a refusal, in its words, shows that the turn ended in an error."""
    shown = outcome_of(turn, history)
    return shown.kind == "surfaced" and shown.how == f"{_WORDS_SAY} {status_in(_error_place(turn, history), turn)}"


def _error_place(turn: Turn, history: History) -> str:
    end = turn.end
    return "" if end is None else unusual(f"{end.answer}\n{end.error}", history)


def _wordy(turn: Turn, end: TurnEnded, history: History) -> TurnOutcome:
    words = end.answer.strip()
    if words and (part := _part_of_a_reply(turn, end.answer)):
        return TurnOutcome("truncated", part)
    lost = "the end of its worker" if _lost_its_worker(turn, history) else _lost_its_user(turn, history)
    gone_wrong = bool(lost) or failed(turn, made_good_by="tool")
    if words and is_last_reply(turn, end.answer):
        return TurnOutcome("stopped at its limit", f"it ended with the model's words: {short(words)}")
    if words and not gone_wrong and claims_success(turn, unusual(end.answer, history), history):
        return TurnOutcome("hidden", f'the model asked for one more tool, and {_SAID_INSTEAD} "{short_end(words)}"')
    if words and not gone_wrong and (not history.run.carries_nonces or may_be_last_words(turn, end.answer)):
        return TurnOutcome("stopped at its limit", f"it ended with words of its own: {short(words)}")
    if turn.stimulus is not None and turn.stimulus.stimulus == "wake_up" and not failed(turn, made_good_by="any"):
        return TurnOutcome("stopped by its user", "a wake-up needs no answer")
    what = lost or (worst_of(turn) if gone_wrong else "")
    return TurnOutcome("hidden", _said_only(words, what))


def _part_of_a_reply(turn: Turn, answer: str) -> str:
    """Of which reply the answer is only a part, in words; else empty."""
    failed = [call for call in turn.main_calls if not call.ok]
    if is_what_came(failed, answer) or any(shows_cut(call, turn, answer) for call in failed):
        return f"the answer is part of a cut reply: {short(cut_part(turn, failed, answer.strip()))}"
    begins = shows_only_its_beginning(turn, answer)
    return f"the model's reply goes on behind what is shown: {short_end(answer.strip())}" if begins else ""


def _without_tools(turn: Turn, history: History, found: TurnOutcome) -> TurnOutcome:
    """The outcome; it says so if the words are the reply to a request without tools, and main requests before had some.

    An agent that offers no tools any more, for example since one failed, gets the reply to a call beside its turns.
    """
    last = turn.calls[-1] if turn.calls else None
    if last is None or last.main or last.arrived.side or last.arrived.tools or turn.end is None:
        return found
    said = plain(last.ended.text_delivered) if last.ended is not None else ""
    offered = any(call.main and call.arrived.tools for call in history.calls if call.number < last.number)
    if not (said and said in plain(turn.end.answer) and offered):
        return found
    why = f"its request {last.number} offers no tools any more, so that it is none of the conversation's"
    return replace(found, how=f"{found.how}: {why}")


def _said_only(words: str, gone_wrong: str) -> str:
    if not words:
        return "no answer and no word of an error"
    if not gone_wrong:
        return f'no call failed, and {_SAID_INSTEAD} "{short_end(words)}" {IF_ITS_ERROR}'
    return f'after {gone_wrong} it said only "{short_end(words)}" {IF_ITS_ERROR}'


def _lost_its_worker(turn: Turn, history: History) -> bool:
    """Whether the process that asked the model was killed in the turn, and none asked again with success."""
    kills = [it.id for it in history.of(AgentKilled) if it.turn == turn.number and it.whom == "worker"]
    return bool(kills) and not any(call.ok and call.arrived.id > kills[-1] for call in turn.main_calls)


def _lost_its_user(turn: Turn, history: History) -> str:
    """What broke between the agent and its user in the turn, in words; empty if nothing did."""
    broke = any(it.turn == turn.number and it.link == TO_ITS_USER for it in history.of(FaultFired))
    return "the loss of its page's connection" if broke else ""


def _ended_by_denial(turn: Turn, history: History) -> TurnOutcome | None:
    """The outcome of a turn whose user denied a tool of its last reply: many agents then wait for the next message."""
    denied = [it.id for it in history.of(PermissionAsked) if it.turn == turn.number and it.chosen.startswith("reject")]
    last = turn.main_calls[-1] if turn.main_calls else None
    if last is None or not last.ok or not any(last.arrived.id < number for number in denied):
        return None
    return TurnOutcome("stopped by its user", "its user denied the tool, and it ended its turn")


def unusual(text: str, history: History) -> str:
    """The lines that the control run does not contain."""
    usual = history.run.usual
    return "\n".join(line for line in uncoloured(text).splitlines() if masked(line) not in usual)
