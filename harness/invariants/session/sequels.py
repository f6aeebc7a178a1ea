"""What follows a turn: does the next message begin a new conversation without a word?"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from wedgehog.harness.invariants.scope import main_calls_of, refused_as_too_long_before
from wedgehog.harness.invariants.session.history_kept import summarized
from wedgehog.harness.record.error_words import masked, plain
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, passed
from wedgehog.harness.record.views import Call, Turn

BEGINS_ANEW = re.compile(
    r"\b(re-?set|new|fresh|clear(ed|ing)?|(re)?start(ed|ing)?|lost|damaged|corrupt(ed)?|forg[eo]t\w*|no longer"
    r"|histor\w*|conversa\w*|from scratch|anew|discard\w*|dropped|trimmed|memor\w*)\b"
    r"|[^\x00-\x7f\u2010-\u2027\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]",
    re.IGNORECASE,
)
"""Words by which a user may read that the conversation begins anew; those of another language may say it too."""
_OUR_COMMAND: Final = re.compile(r"\b\d+\.\d+\.\d+ started\b")
"""In the text of each scripted command, which many agents print: it says nothing of their conversation."""
WINDOW_MESSAGES: Final = 5
"""Some agents send only the last six messages: the new one, and five before it."""
WINDOW_CHARS: Final = 2000
"""Of replies and results. Agents of small models send about a thousand tokens, and the system text takes some."""


class Sequel(NamedTuple):
    """Three turns of one session: an answered one, a later one that ended badly, and the next one after that.

    Where nothing ended badly, the first two are the same turn.
    """

    answered: Turn
    bad: Turn
    after: Turn


def sequels(history: History) -> Iterator[Sequel]:
    """Each turn with an answered one before it and a further one behind it; how it ended is for the caller to judge."""
    for bad in history.turns:
        after = next((it for it in history.turns if it.number > bad.number and it.session == bad.session), None)
        answered = _answered_before(history, bad)
        if after is not None and answered is not None:
            yield Sequel(answered, bad, after)


def judge(history: History, it: Sequel, forgotten: Callable[[Call], Verdict]) -> Iterator[Verdict]:
    """Judge the first request after the bad turn; `forgotten` gets it if it carries nothing, without an excuse."""
    first = next((call for call in main_calls_of(it.after) if call.paid), None)
    if first is None or it.after.number not in first.arrived.turns_seen:
        return
    if len(first.arrived.turns_seen) > 1 or first.arrived.replies_seen:
        yield passed(because=f"{it.after}: its first request carries something from before it")
    elif not _is_excused(history, it, first):
        yield forgotten(first)


def started_again(history: History, failed: Turn) -> bool:
    """Whether an agent that stays between its messages was started after this turn had begun."""
    began_s = failed.stimulus.at_s if failed.stimulus is not None else 0.0
    started = (it.began_s if it.began_s is not None else it.at_s for it in history.of(AgentStarted) if it.ready_s)
    return any(at_s > began_s for at_s in started)


def _answered_before(history: History, bad: Turn) -> Turn | None:
    """The latest turn of its session that was answered before this one."""
    before = [it for it in history.turns if it.number < bad.number and it.session == bad.session]
    return next((it for it in reversed(before) if outcome_of(it, history).kind == "answered"), None)


def _is_excused(history: History, it: Sequel, first: Call) -> bool:
    """Whether a request may carry nothing: a long turn, a full window, a summary, or words that say so."""
    if _is_long(it.answered) or _is_long(it.bad) or _begins_in_sight(it):
        return True
    if refused_as_too_long_before(history, first) or summarized(history, it.answered, first):
        return True
    usual = set(map(masked, _shown(it.answered))) & set(map(masked, _shown(it.bad)))
    usual = usual if it.answered is not it.bad else set()
    new = [line for turn in (it.bad, it.after) for line in _shown(turn) if masked(line) not in usual]
    return any(BEGINS_ANEW.search(line) for line in new if not _OUR_COMMAND.search(line))


def _shown(turn: Turn) -> list[str]:
    """The lines that the user of a turn could read."""
    end = turn.end
    return [] if end is None else f"{end.answer}\n{end.error}\n{end.stdout}\n{end.stderr}".splitlines()


def _begins_in_sight(it: Sequel) -> bool:
    """Whether a page, opened again, shows nothing of the answered turn: its user sees that all begins anew."""
    opened = it.after.end.opened if it.after.end is not None else None
    said = it.answered.stimulus
    return opened is not None and said is not None and plain(said.nonce) not in plain(opened)


def _is_long(turn: Turn) -> bool:
    """Whether an agent that sends only the last messages, or so many tokens, may have to leave the whole turn out.

    It cannot begin with a tool's result, so that nothing of the turn is left without its message.
    """
    calls = [call for call in main_calls_of(turn) if call.ok]
    said = [call.ended.text_delivered for call in calls if call.ended is not None]
    results = {it.token: it.chars for call in calls for it in call.arrived.results if _is_of(turn, it)}
    messages = 1 + len(said) + len(results)
    return messages > WINDOW_MESSAGES or sum(map(len, said)) + sum(results.values()) > WINDOW_CHARS


def _is_of(turn: Turn, result: ToolResult) -> bool:
    return result.token.startswith(f"{turn.number}.")
