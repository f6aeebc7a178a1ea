"""A message is answered in spite of the fault."""

import re
from collections.abc import Iterable, Iterator, Sequence

from wedgehog.harness.invariants.overload import unless_timed_out
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends, name_of_call, refused_by_us, requests, short_time
from wedgehog.harness.invariants.user.cause_told import words_read
from wedgehog.harness.record.call_failures import went_wrong
from wedgehog.harness.record.events.call import CALLS_AT_ONCE
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.turn import AGENT_ITSELF, AgentKilled
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.turn_words import filter_word
from wedgehog.harness.record.verdict import Verdict, inconclusive, passed
from wedgehog.harness.record.views import Call, Turn

_OF_A_LIMIT = re.compile(r"token|limit|length|\bcut\b|truncat|incomplete|too long", re.IGNORECASE)
_OF_TIME = re.compile(r"tim(?:ed?|ing)?[ -]?out|deadline|time limit|too (?:long|slow)", re.IGNORECASE)
AUXILIARY = ("title", "summary", "compact", "memory")
"""Purposes of background calls without which every agent can answer."""


@invariant("turn_answered", asked=True)
def turn_answered(history: History, *, plan_errors: bool = False, slow_errors: bool = False) -> Iterator[Verdict]:
    """Every message of the scenario is answered (asked where the next try would have worked).

    `turn_deadline` judges silence until the deadline. A turn that was stopped or killed, or a wake-up, needs no answer;
    nor does one that ends in an error after the agent got a signal, or one whose last reply a filter of the provider
    stopped, if its user is told so; nor one whose last reply was cut at the token limit inside a tool call of which the
    wire shows nothing (Gemini, Ollama), if its user is told so. With `plan_errors` an error is enough where a plan, a
    route or a check failed before the turn's first request of the conversation, or beside it: an agent may refuse what
    it could not check. With `slow_errors` an error that names a time-out is enough where a fault slowed the model's
    link: how long an agent waits for a slow reply is for its team to say.

    Fix: Try again after a fault that passes: a broken stream, a lost connection, an empty reply, a 429 or a 5xx. Limit
    the attempts. Where the token limit cut a tool call, tell the model so, and let it make a smaller one. Give each
    tool call a time limit that also ends what its command has started, and send what it printed as the result: a shell
    that ends alone leaves its output open.
    """
    yield from answered(history, history.turns, plan_errors=plan_errors, slow_errors=slow_errors)


def _failed_in_its_plan(turn: Turn) -> bool:
    """Whether the turn came no further than a plan, a route or a check, which failed, or its check beside it failed."""
    purposes = {call.arrived.background for call in turn.calls}
    wrong = [call for call in turn.calls if went_wrong(call)]
    if not wrong or not purposes.isdisjoint(AUXILIARY):
        return False
    return not turn.main_calls or (len(turn.main_calls) == 1 and _beside(turn.main_calls[0], wrong))


def _filtered(turn: Turn) -> bool:
    """Whether a filter stopped the turn's last reply, and its user read so: the same request may be stopped again."""
    last, end = turn.main_calls[-1].ended if turn.main_calls else None, turn.end
    if last is None or last.stop != "filter" or end is None:
        return False
    return bool(filter_word(words_read(end), turn))


def _cut_unseen(turn: Turn) -> bool:
    """Whether the token limit cut the last reply inside a call that the wire does not show, and its user read so."""
    last, end = turn.main_calls[-1] if turn.main_calls else None, turn.end
    if last is None or last.ended is None or end is None or last.arrived.wire not in CALLS_AT_ONCE:
        return False
    cut = last.ended.stop == "max_tokens" and any(not call.whole for call in last.ended.tool_calls)
    return cut and _OF_A_LIMIT.search(words_read(end)) is not None


def _beside(first: Call, wrong: Sequence[Call]) -> bool:
    """Whether only calls beside the turn's first request went wrong: a check that runs at the same time."""
    ended = first.ended.id if first.ended is not None else 0
    return first not in wrong and wrong[0].arrived.id < ended and first.arrived.id < wrong[-1].arrived.id


def _was_slow(history: History, turn: Turn) -> bool:
    """Whether a fault slowed the model's link before the turn ended, and the error that its user read is a time-out."""
    end = turn.end
    if end is None or _OF_TIME.search(words_read(end)) is None:
        return False
    return any(it.slows and it.link == "llm" and it.id < end.id for it in history.of(FaultFired))


def answered(
    history: History, turns: Iterable[Turn], *, plan_errors: bool = False, slow_errors: bool = False
) -> Iterator[Verdict]:
    """A verdict for each of these turns that needs an answer and ended by itself."""
    signalled = {kill.turn for kill in history.of(AgentKilled) if kill.whom in AGENT_ITSELF}
    for turn in turns:
        outcome = outcome_of(turn, history)
        owes_answer = turn.stimulus is not None and turn.stimulus.stimulus in ("user", "resume")
        if not owes_answer or outcome.kind in ("silent", "stopped by its user", "killed", "unfinished"):
            continue
        if outcome.kind == "surfaced" and turn.number in signalled:
            continue
        if outcome.kind == "surfaced" and plan_errors and _failed_in_its_plan(turn):
            yield passed(because=f"{turn} could not be planned or checked, and the agent told its user")
        elif outcome.kind == "surfaced" and _filtered(turn):
            yield passed(because=f"a filter of the provider stopped the last reply of {turn}, and its user was told")
        elif outcome.kind == "surfaced" and _cut_unseen(turn):
            yield passed(because=f"the token limit cut a call of {turn} that its wire hides, and its user was told")
        elif outcome.kind == "surfaced" and slow_errors and _was_slow(history, turn):
            yield passed(because=f"the reply was slow in {turn}, and its user was told of a time-out")
        elif outcome.kind == "answered":
            yield passed(because=f"{turn} was answered")
        elif ours := refused_by_us(turn.calls):
            yield inconclusive(f"{turn}: our validator refused a request, and not for tool call pairing", ours.evidence)
        elif not history.run.carries_nonces:
            yield inconclusive(f"{turn}: in its control run not each answer carried the model's words", ends(turn))
        else:
            lost = requests(call for call in turn.main_calls if not call.intact)
            says = f"{turn} was not answered: {outcome.how}{_still_open(turn)}"
            yield unless_timed_out(history, turn, says, (*lost, *ends(turn)))


def _still_open(turn: Turn) -> str:
    """The tool call for which the turn waited until its end, in words; empty if it had every result."""
    last = turn.tool_uses[-1] if turn.tool_uses else None
    if last is None or last.results or not last.started or turn.end is None:
        return ""
    return f"; {name_of_call(last)} was still open after {short_time(turn.end.at_s - last.reply.at_s)}"
