"""Reasons why the faults of a scenario prove nothing: one never fired, or a turn failed before any did."""

from collections.abc import Iterator, Sequence, Set
from typing import Final

from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.record.events.call import CUT_STOPS
from wedgehog.harness.record.events.fault import FaultFired, FaultUnproven
from wedgehog.harness.record.events.run import SessionKept, SessionPlanted
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, inconclusive
from wedgehog.harness.record.views import Call
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.scenario.fault_plan import FaultPlan, PlannedFault
from wedgehog.harness.scenario.trigger import COMPACTION, AtCall, AtReply, SessionWritten

_NO_FILE: Final = "; no session file was written in that turn (the spec's `session_files` says where they are)"
_UNCHANGED: Final = "; no session file was seen to change before that turn was over"


def fault_doubts(
    history: History, plan: FaultPlan, control: ControlFacts, unmet: Sequence[str] = ()
) -> Iterator[Verdict]:
    """An inconclusive verdict for each of these reasons; `unmet`: for each fault why an agent may never meet it."""
    for unproven in history.of(FaultUnproven):
        said = f"the {unproven.name} armed for call {unproven.call} left no proof that it fired"
        yield inconclusive(said, [unproven]).for_reason("faults")
    yield from _unfired(history, plan, unmet)
    yield from _failed_before_faults(history, plan)
    if control.background:
        yield from _beside(history, plan, control)


def _unfired(history: History, plan: FaultPlan, unmet: Sequence[str]) -> Iterator[Verdict]:
    fired = {event.fault for event in history.of(FaultFired)}
    over = {t.number for t in history.turns if outcome_of(t, history).kind in ("surfaced", "stopped at its limit")}
    for index, planned in enumerate(plan.faults):
        waits = isinstance(planned.fault, ReplyFault) and planned.fault.may_not_fire
        waits = waits or _asks_no_more(plan, planned, fired)
        if index not in fired and not waits and planned.trigger.turn not in over:
            why = next((f"; {it}" for it in unmet[index : index + 1] if it), "") or _why_not(history, planned)
            yield inconclusive(f"the fault never fired: {planned}{why}").for_reason("faults")


def _asks_no_more(plan: FaultPlan, planned: PlannedFault, fired: Set[int]) -> bool:
    """Whether a summary failed in an earlier turn: an agent may ask for none in this one."""
    struck = [it for index, it in enumerate(plan.faults) if index in fired and _is_of_a_summary(it)]
    return _is_of_a_summary(planned) and any(it.trigger.turn < planned.trigger.turn for it in struck)


def _is_of_a_summary(planned: PlannedFault) -> bool:
    return isinstance(planned.trigger, AtCall) and planned.trigger.on == COMPACTION


def _failed_before_faults(history: History, plan: FaultPlan) -> Iterator[Verdict]:
    """Turns that ended in an error before any fault fired: the scenario's fault is not their cause."""
    if not plan.faults or history.first(SessionPlanted) is not None:
        return
    struck = min((event.turn for event in history.of(FaultFired)), default=None)
    for turn in history.turns:
        outcome = outcome_of(turn, history)
        early = (struck is None or turn.number < struck) and not any(map(_fails_by_script, turn.calls))
        if early and not turn.recovery and outcome.kind in ("surfaced", "stopped at its limit"):
            evidence = [event for event in (turn.end,) if event is not None]
            said = f"{turn} was not answered before any fault fired: {outcome.how}"
            yield inconclusive(said, evidence).for_reason("harm")


def _fails_by_script(call: Call) -> bool:
    refused = call.refused is not None and call.refused.scripted
    return refused or (call.ended is not None and call.ended.stop in (*CUT_STOPS, "error"))


def _beside(history: History, plan: FaultPlan, control: ControlFacts) -> Iterator[Verdict]:
    """A fault on a request may meet a background call: what a request says is only known once it has arrived.

    The control run shows when that cannot be. Its first background call came after so many main calls: before that
    many, no call of this run is one. If its later turns had none, a later turn of this run has none either, once an
    earlier turn has had one.
    """
    for fired in history.of(FaultFired):
        if not plan.faults[fired.fault].trigger.in_request:
            continue
        calls = next((turn.calls for turn in history.turns if turn.number == fired.turn), ())
        earlier = [call.main for call in history.calls if call.arrived.id < fired.id]
        made = not control.background_later and fired.turn > 1 and not all(earlier)
        if sum(earlier) >= control.background_after and not made and calls and all(call.main for call in calls):
            said = f"the {fired.name} may have fired on a background call: the agent makes some, and none came"
            yield inconclusive(said, [fired]).for_reason("faults")


def _why_not(history: History, planned: PlannedFault) -> str:
    """Why a fault never fired, if the record shows it."""
    at = planned.trigger
    if isinstance(at, AtCall) and at.on != "main":
        names = {call.arrived.side.rpartition(" ")[0] for call in history.calls}
        background = at.on == "background" or at.on in names
        return "" if background else f"; no request of the conversation {at.on} arrived"
    if planned.link != "llm":
        unseen = _NO_FILE if history.first(SessionKept) is None else _UNCHANGED
        return unseen if isinstance(at, SessionWritten) else ""
    calls = [call for turn in history.turns if turn.number == at.turn for call in turn.main_calls]
    step = [call for call in calls if call.arrived.step == at.step]
    if not step:
        return f"; no request of step {at.step} of turn {at.turn} arrived" if calls else ""
    tried = [call for call in step if call.arrived.attempt >= at.attempt]
    if not tried:
        times = "once" if len(step) == 1 else f"{len(step)} times"
        return f"; that step was asked {times}, and the fault waits for attempt {at.attempt}"
    sizes = [call.ended.body_bytes for call in tried if call.ended is not None]
    if isinstance(at, AtReply) and at.byte is not None and sizes and max(sizes) <= at.byte:
        return f"; it waits for byte {at.byte:,}, and the reply's body had {max(sizes):,}"
    return f"; {planned.fault.unmet}" if planned.fault.unmet else ""
