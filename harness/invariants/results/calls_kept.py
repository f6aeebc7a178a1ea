"""No tool call of a reply gets lost beside the others."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.faults.reply_fault import leave_the_calls, misnumber
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import (
    called_beside,
    main_calls_of,
    over,
    refused_as_too_long,
    requests,
)
from wedgehog.harness.invariants.tool_results import denied
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, Turn


@invariant("calls_kept", level="strict")
def calls_kept(history: History) -> Iterator[Verdict]:
    """If the model reads the result of one tool call of a reply, it reads one for each of its other calls too.

    A call that is removed from the conversation, or merged into another one, leaves no trace: the model cannot know
    that the call did not run, and says that it did. Judged on replies with several calls that arrived whole, in
    answered turns, also where a stream gave its calls in another form. Where a gateway numbered them wrongly, SDKs make
    one call of several, which fails: that is red only if one of them ran. A result that says that the call did not run
    is enough.

    Fix: Keep the calls of a streamed reply apart by their index, and by their ids where two have one index. Run each of
    them, one after the other if need be, or send a result that says that the call did not run.
    """
    for turn in history.turns:
        if over(turn) is None and outcome_of(turn, history).kind == "answered":
            for said, lost, later in lost_calls(history, turn):
                yield _verdict(said, lost, later)


def lost_calls(history: History, turn: Turn) -> Iterator[tuple[Call, set[str], list[Call]]]:
    """Each reply of several calls of which one has a result, the calls without a trace, and the calls after it."""
    for said in main_calls_of(turn):
        tokens = {it.token for it in said.ended.tool_calls} if said.ended else set()
        later = [call for call in main_calls_of(turn) if call.arrived.id > said.arrived.id and call.paid]
        results = [it for call in later for it in call.arrived.results]
        carried = {it.token for it in results} | {it.token for call in later for it in call.arrived.open_calls or ()}
        if len(tokens) < 2 or not _came_whole(said) or not tokens & carried or any(it.in_text for it in results):
            continue
        if misnumber(fault.name for fault in said.faults) and not any(
            it.printed for it in results if it.token in tokens
        ):
            continue
        lost = tokens - carried - denied(history)
        beside = lost and called_beside(history, said.arrived.id, later[-1].arrived.id)
        if not (beside or (lost and _shortened(main_calls_of(turn)))):
            yield said, lost, later


def _verdict(said: Call, lost: set[str], later: Sequence[Call]) -> Verdict:
    count = len(said.ended.tool_calls) if said.ended else 0
    if not lost:
        return passed(because=f"all {count} tool calls of call {said.number} have a result")
    says = f"call {said.number} has {count} tool calls, and no later request of the turn has {', '.join(sorted(lost))}"
    return fail(says, requests([said, *later]))


def _came_whole(said: Call) -> bool:
    """Whether it has all its calls, perhaps in another form."""
    whole = said.ended is not None and all(offered.whole for offered in said.ended.tool_calls)
    known = bool(said.faults) or not said.damaged
    return said.ok and whole and known and leave_the_calls(fault.name for fault in said.faults)


def _shortened(calls: Sequence[Call]) -> bool:
    """Whether the provider refused one for its length: then an agent may drop what it likes."""
    return any(call.refused is not None and refused_as_too_long(call.refused) for call in calls)
