"""The words of a subagent reach its parent."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.requests.side_call_bound import SideCalls, side_calls
from wedgehog.harness.invariants.scope import over
from wedgehog.harness.invariants.subagents.background_subagents import in_the_background
from wedgehog.harness.invariants.tool_results import LARGEST_OWN_CODE, disturbed
from wedgehog.harness.record.events.call import RequestArrived
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed
from wedgehog.harness.record.views import Call, Turn


@invariant("subagent_kept", asked=True)
def subagent_kept(history: History) -> Iterator[Verdict]:
    """The last words of a subagent that ended well are in a later main request of its turn.

    The work of a subagent is paid and done once: a failed sibling must not discard its result. Judged by a word in the
    model's reply, if the agent passes the words of some subagent of the run on as they are, and where the parent
    waited for it. A command that fails by itself must not end its subagent either: the subagent's model can go on
    from there.

    Fix: Collect the results of parallel subagents one by one, so that the failure of one does not discard the
    others, and send each as the result of its tool call. Send a failed tool's result to the subagent's own model.
    """
    quoted = {call for arrived in _main(history.calls) for call in arrived.quotes}
    beside = {found.name for found in in_the_background(history)}
    for turn in history.turns:
        for side in side_calls(history):
            ended = ended_well(side, turn)
            if ended is not None:
                yield _judge(turn, side, ended, quoted, waited=side.name not in beside)
            elif side.calls[-1].arrived.turn == turn.number and not disturbed(history, turn):
                yield from _ended_by_its_tool(history, turn, side)


def _main(calls: Sequence[Call]) -> list[RequestArrived]:
    return [call.arrived for call in calls if call.main]


def ended_well(side: SideCalls, turn: Turn) -> Call | None:
    """The last call of a subagent in this turn, if its reply arrived whole and asks for no tool."""
    last = side.calls[-1]
    mine = last.arrived.turn == turn.number and last.arrived.background != "side"
    return last if mine and last.final else None


def _ended_by_its_tool(history: History, turn: Turn, side: SideCalls) -> Iterator[Verdict]:
    """A command of its last reply failed, and the main conversation went on without the subagent's next request."""
    last = side.calls[-1]
    tokens = {offered.token for offered in last.ended.tool_calls} if last.ok and last.ended is not None else set()
    done = [it for it in history.of(BeaconSeen) if it.token in tokens and it.phase == "done"]
    failed = next((it for it in done if it.exit_code is not None and 1 <= it.exit_code <= LARGEST_OWN_CODE), None)
    if failed is None or last.damaged or any(call.faults for call in side.calls):
        return
    stop = over(turn)
    later = [it for it in _main(turn.calls) if it.id > done[-1].id and (stop is None or it.id < stop.id)]
    waited = not any(side.calls[0].arrived.id < it.id < failed.id for it in _main(turn.calls))
    if later and waited:
        says = f"the command of call {last.number} failed, and {side.name} was not asked on: {turn} goes on without it"
        yield fail(says, (last.arrived, failed, later[0]))


def _judge(turn: Turn, side: SideCalls, ended: Call, quoted: set[int], *, waited: bool) -> Verdict:
    done = ended.ended.id if ended.ended is not None else 0
    stop = over(turn)
    later = [it for it in _main(turn.calls) if it.id > done and (stop is None or it.id < stop.id)]
    if not later:
        return nothing(f"not judged: no main request followed the end of {side.name}")
    if any(ended.number in arrived.quotes for arrived in later):
        return passed(because=f"a later request carries what {side.name} returned")
    if not waited or any(ended.arrived.id < it.id < done for it in _main(turn.calls)):
        return nothing(f"not judged: the agent went on before {side.name} ended")
    says = f"{side.name} ended well in call {ended.number}, and no later main request of {turn} carries its words"
    if not quoted:
        return nothing(f"not judged: {says}; but the agent passes no subagent's words on as they are")
    return fail(says, (ended.arrived, later[-1]))
