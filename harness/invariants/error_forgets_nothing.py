"""An error of the provider ends a turn, and not the conversation."""

import re
from collections.abc import Iterator, Sequence

from wedgehog.harness.invariants.history_kept import carries, summarized
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import (
    REFUSES_THE_REQUEST,
    ends,
    main_calls_of,
    over,
    refused_as_too_long_before,
    requests,
)
from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, Turn

BEGINS_ANEW = re.compile(
    r"\b(re-?set|new|fresh|clear(ed|ing)?|(re)?start(ed|ing)?|lost|damaged|corrupt(ed)?|forg[eo]t\w*|no longer"
    r"|histor\w*|conversa\w*|from scratch|anew|discard\w*|dropped|trimmed|memor\w*)\b"
    r"|[^\x00-\x7f\u2010-\u2027\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]",
    re.IGNORECASE,
)
"""Words by which a user may read that the conversation begins anew; those of another language may say it too."""


@invariant("error_forgets_nothing")
def error_forgets_nothing(history: History) -> Iterator[Verdict]:
    """After a turn that ended in an error, the next one does not begin a new conversation without a word.

    An agent that answers, but has silently forgotten all that was said before the error, has not recovered: its user
    goes on as if it knew. Judged where an answered turn, a turn with an error, and a further message follow each other
    in one session, and the agent carried earlier turns before: in this run, or in its control run. A request that
    carries anything from before its own message is enough. Not judged where the provider did not accept what the turn
    said (400, 413, 422), or something was too long, after a kill, a stop or a restart, where a summary may have been
    made, and where the agent says that it begins anew.

    Fix: Write the conversation to its file before a request, and leave that file alone when the request fails. Do not
    store an empty list of messages on the path of an error.
    """
    for failed in history.turns:
        turn = next((it for it in history.turns if it.number > failed.number and it.session == failed.session), None)
        answered = answered_before(history, failed)
        if turn is not None and answered is not None and _may_be_judged(history, failed, turn):
            yield from _judge(history, failed, turn, answered)


def answered_before(history: History, failed: Turn) -> Turn | None:
    """The latest turn of its session that was answered before this one."""
    before = [it for it in history.turns if it.number < failed.number and it.session == failed.session]
    return next((it for it in reversed(before) if outcome_of(it, history).kind == "answered"), None)


def _may_be_judged(history: History, failed: Turn, turn: Turn) -> bool:
    """Whether the turn ended in an error, in an agent that lives on and carries earlier turns."""
    if over(failed) is not None or outcome_of(failed, history).kind != "surfaced" or history.beside(failed):
        return False
    refused = any(it.refused is not None and it.refused.status in REFUSES_THE_REQUEST for it in failed.calls)
    return not refused and carries(history, until=turn) and not started_again(history, failed)


def started_again(history: History, failed: Turn) -> bool:
    """Whether an agent that stays between its messages was started after this turn had begun."""
    began_s = failed.stimulus.at_s if failed.stimulus is not None else 0.0
    started = (it.began_s if it.began_s is not None else it.at_s for it in history.of(AgentStarted) if it.ready_s)
    return any(at_s > began_s for at_s in started)


def _judge(history: History, failed: Turn, turn: Turn, answered: Turn) -> Iterator[Verdict]:
    first = next((call for call in main_calls_of(turn) if call.paid), None)
    if first is None or turn.number not in first.arrived.turns_seen:
        return
    if len(first.arrived.turns_seen) > 1 or first.arrived.replies_seen:
        yield passed(because=f"{turn}: its first request carries something from before it")
    elif not is_excused(history, (failed, turn), answered, first):
        says = f"{failed} ended in an error, and request {first.number} carries nothing of what was said before"
        yield fail(says, (*ends(failed), *requests([first])))


def is_excused(history: History, told: Sequence[Turn], answered: Turn, first: Call) -> bool:
    """Whether a request may carry nothing: a full window, a summary, or words of these turns that say so."""
    if refused_as_too_long_before(history, first) or summarized(history, answered, first):
        return True
    shown = (f"{it.end.answer}\n{it.end.error}\n{it.end.stdout}\n{it.end.stderr}" for it in told if it.end is not None)
    return any(map(BEGINS_ANEW.search, shown))
