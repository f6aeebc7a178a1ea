"""The session works again after healing."""

import re
from collections.abc import Sequence
from dataclasses import replace

from wedgehog.harness.invariants.overload import stopped_too_late, unless_timed_out
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import (
    ends,
    main_calls_of,
    reached_out,
    refused_by_us,
    requests,
    still_refused,
)
from wedgehog.harness.record.events.call import RequestRefused
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.turn import AgentKilled
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import TurnOutcome, answers, outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, inconclusive, nothing, passed
from wedgehog.harness.record.views import Turn

REFUSED = 400


@invariant("session_recovers")
def session_recovers(history: History) -> Verdict:
    """When every fault is healed, the next message is answered.

    If the recovery message ends in an error that its user sees, other than a refusal for pairing, a second message
    follows and counts: circuit breakers cool down, pools hold dead connections. A session is bricked if it is refused
    with 400 for ever, for something that the agent itself made wrong and keeps sending. A fault that nothing heals also
    refuses correct requests: there an error that the user sees is enough, and `session_goes_on` judges the rest.

    The verdict also says whether the request carried the earlier turns. It names the scenario's own messages after the
    fault whose turn had neither an answer nor an error, and whether they were answered late, never answered, or lost.
    Other invariants judge those.

    Fix: Bring the session into a state that the provider accepts after each error: a result for every tool call, no
    half reply, no dead connection, no lock that is still held. Test that the next message is answered.
    """
    recoveries = [turn for turn in history.turns if turn.recovery]
    if not recoveries:
        return nothing("no message was sent after healing")
    messages = [*_after_the_harm(history), *recoveries]
    unanswered = [says for turn in messages if (says := _unanswered(turn, history))]
    found = _judge(history, recoveries, late=bool(unanswered))
    says = found.says + _context(history, messages)
    if unanswered:
        none = len(unanswered) == len(messages) > 1
        of = f"none of {len(messages)} messages was" if none else f"{len(unanswered)} of {len(messages)} messages not"
        says = f"{says}; {of} answered in time: {', '.join(unanswered)}"
    return replace(found, says=says)


def _judge(history: History, recoveries: list[Turn], *, late: bool) -> Verdict:
    first = recoveries[0]
    outcome = outcome_of(first, history)
    refused_for_pairing = any(call.refused is not None and call.refused.pairing for call in first.main_calls)
    if outcome.kind == "surfaced" and not refused_for_pairing:
        if len(recoveries) == 1:
            return inconclusive(f"it ended in an error ({outcome.how}), and no second message was sent", ends(first))
        return _one(history, recoveries[-1], "the second message after healing", late=True)
    return _one(history, first, "the message after healing", late=late)


def _one(history: History, turn: Turn, which: str, *, late: bool) -> Verdict:
    outcome = outcome_of(turn, history)
    if outcome.kind == "answered":
        return passed(f"recovered{' late' if late else ''}")
    if outcome.kind == "surfaced" and still_refused(turn):
        return passed("the provider still refuses what it sends, and its user reads that")
    return _unrecovered(history, turn, which, outcome)


def _unrecovered(history: History, turn: Turn, which: str, outcome: TurnOutcome) -> Verdict:
    if outcome.kind == "unfinished":
        return inconclusive(outcome.how)
    says = f"{which} was not answered: {outcome.how}"
    evidence = (*requests(turn.main_calls), *ends(turn))
    if bricked := _bricked(history, turn):
        return fail(f"{says}; {bricked}", evidence)
    if doubt := _doubt(history, turn, outcome):
        return doubt
    if outcome.kind == "silent":
        return stopped_too_late(history, says, evidence, turn.deadline or turn.start_missed)
    return unless_timed_out(history, turn, says, evidence)


def _doubt(history: History, turn: Turn, outcome: TurnOutcome) -> Verdict | None:
    ours = refused_by_us(main_calls_of(turn))
    if ours is not None:
        return inconclusive("our validator refused the recovery message, and not for tool call pairing", ours.evidence)
    if _cannot_tell(history, turn, outcome):
        return inconclusive(f"it is unknown whether it was answered: {outcome.how}", ends(turn))
    return None


def _bricked(history: History, turn: Turn) -> str:
    """Says that it is refused with 400, in the same words as in an earlier turn; empty if it is not."""
    last = turn.main_calls[-1].refused if turn.main_calls else None
    if last is None or last.status != REFUSED or last.pairing or last.message in history.run.usual_refusals:
        return ""
    before = [call.refused for it in history.turns if it.number < turn.number for call in it.main_calls if call.refused]
    if all(_masked(refused) != _masked(last) for refused in before):
        return ""
    return f"the session is bricked: what it keeps sending is refused for ever ({last.message})"


def _masked(refused: RequestRefused) -> tuple[int, str]:
    """A refusal without its numbers, which are places in the request."""
    return refused.status, re.sub(r"\d+", "#", refused.message)


def _cannot_tell(history: History, turn: Turn, outcome: TurnOutcome) -> bool:
    never_asked = turn.start_missed is not None and not reached_out(history, turn.start_missed)
    return never_asked or (outcome.kind == "stopped at its limit" and not history.run.carries_nonces)


def _context(history: History, messages: Sequence[Turn]) -> str:
    """How many earlier turns the first answered request after the fault carried."""
    turn = next((it for it in messages if _owes_answer(it) and outcome_of(it, history).kind == "answered"), None)
    if turn is None:
        return ""
    earlier = {it.number for it in history.turns if it.number < turn.number and not it.recovery and it.main_calls}
    seen = {number for call in turn.main_calls for number in call.arrived.turns_seen} & earlier
    its = "its request" if turn.recovery else f"the request of {turn}"
    if not earlier or seen == earlier:
        return ""
    if not seen:
        return f", context lost: {its} carried no earlier turn"
    return f", {its} carried {len(seen)} of {len(earlier)} earlier turns"


def _after_the_harm(history: History) -> list[Turn]:
    """The scenario's turns that began after the last fault or kill."""
    harm = [event.id for kind in (FaultFired, AgentKilled) for event in history.of(kind)]
    last = max(harm, default=float("inf"))
    return [it for it in history.turns if not it.recovery and it.stimulus is not None and it.stimulus.id > last]


def _owes_answer(turn: Turn) -> bool:
    return turn.stimulus is not None and turn.stimulus.stimulus != "wake_up"


def _unanswered(turn: Turn, history: History) -> str:
    """`turn 2 answered late (in turn 4)`, if its user got neither an answer nor an error in the turn; else empty."""
    if not _owes_answer(turn) or turn.end is None or outcome_of(turn, history).kind not in ("silent", "hidden"):
        return ""
    elsewhere = next((other for other in history.turns if other is not turn and answers(turn, other)), None)
    if elsewhere is not None:
        return f"{turn} answered late (in {elsewhere})"
    if any(call.final and call.ended and call.ended.id > turn.end.id for call in turn.main_calls):
        return f"{turn} answered late (after its turn)"
    later = [call for call in history.calls if call.main and call.arrived.id > turn.end.id]
    carried = any(turn.number in call.arrived.turns_seen for call in later)
    return f"{turn} never answered, though still in the conversation" if carried else f"{turn} lost"
