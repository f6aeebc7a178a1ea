"""No tool call of a reply gets lost beside the others."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.faults.reply_fault import leave_the_calls, misnumber
from wedgehog.harness.invariants.no_denied_calls import denied
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import (
    called_beside,
    main_calls_of,
    over,
    refused_as_too_long,
    requests,
)
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
            for said in main_calls_of(turn):
                yield from _judge(history, turn, said)


def _judge(history: History, turn: Turn, said: Call) -> Iterator[Verdict]:
    tokens = {it.token for it in said.ended.tool_calls} if said.ended else set()
    later = [call for call in main_calls_of(turn) if call.arrived.id > said.arrived.id and call.paid]
    results = [it for call in later for it in call.arrived.results]
    carried = {it.token for it in results} | {it.token for call in later for it in call.arrived.open_calls or ()}
    if len(tokens) < 2 or not _came_whole(said) or not tokens & carried or any(it.in_text for it in results):
        return
    if misnumber(fault.name for fault in said.faults) and not any(it.printed for it in results if it.token in tokens):
        return
    lost = tokens - carried - denied(history)
    if not lost:
        yield passed(because=f"all {len(tokens)} tool calls of call {said.number} have a result")
    elif not called_beside(history, said.arrived.id, later[-1].arrived.id) and not _shortened(main_calls_of(turn)):
        named = ", ".join(sorted(lost))
        says = f"call {said.number} has {len(tokens)} tool calls, and no later request of the turn has {named}"
        yield fail(says, requests([said, *later]))


def _came_whole(said: Call) -> bool:
    """Whether it has all its calls, perhaps in another form."""
    whole = said.ended is not None and all(offered.whole for offered in said.ended.tool_calls)
    known = bool(said.faults) or not said.damaged
    return said.ok and whole and known and leave_the_calls(fault.name for fault in said.faults)


def _shortened(calls: Sequence[Call]) -> bool:
    """Whether the provider refused one for its length: then an agent may drop what it likes."""
    return any(call.refused is not None and refused_as_too_long(call.refused) for call in calls)
