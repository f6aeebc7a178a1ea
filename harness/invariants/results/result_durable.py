"""A tool result survives a kill of the agent."""

from collections.abc import Iterator, Mapping

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import next_message
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import RequestArrived, ToolResult
from wedgehog.harness.record.events.turn import AgentKilled, SessionSaved
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, inconclusive, nothing, passed


@invariant("result_durable", asked=True)
def result_durable(history: History) -> Iterator[Verdict]:
    """After a kill, the next request carries the tool results that the agent had sent, or written to its session file.

    Judged: results in its last request before the kill, and results that no request had carried yet; an agent may have
    trimmed away others. A repaired history that only says "lost" has lost a result that was saved.

    Fix: Write each tool result to the session when the tool ends, before the next request, and load it after a
    restart.
    """
    for turn in history.turns:
        if turn.killed is not None:
            yield _judge(history, turn.killed)


def _judge(history: History, kill: AgentKilled) -> Verdict:
    known = _known(history, kill)
    if not known:
        return nothing("the agent had sent or saved no tool result before its kill")
    after = _first_call_after(history, kill)
    tokens = f"tool call{'s' if len(known) > 1 else ''} {', '.join(known)}"
    if after is None:
        return inconclusive(f"no request after the kill could carry the result of {tokens}", (kill,))
    carried = {result.token: result for result in after.results}
    lost = [token for token, (_, failed) in known.items() if not _holds(carried, token, failed)]
    if not lost:
        return passed(f"the result of {tokens} was still there after the kill")
    where = {token: "sent" if isinstance(known[token][0], RequestArrived) else "saved" for token in lost}
    said = ", ".join(f"{token} ({how} before the kill)" for token, how in where.items())
    says = f"request {after.call}, the first one after the kill, does not carry the result of tool call {said}"
    evidence = sorted({known[token][0].id: known[token][0] for token in lost}.values(), key=lambda event: event.id)
    if "" in carried:
        # The missing result may be one that could not be matched to its call.
        return inconclusive(says, (*evidence, kill, after))
    return fail(says, (*evidence, kill, after))


def _known(history: History, kill: AgentKilled) -> Mapping[str, tuple[Event, bool]]:
    """Results that the agent had, by token: the event that shows it, and whether it already was an error."""
    before = [call.arrived for call in history.calls if call.main and call.arrived.id < kill.id]
    once_sent = {result.token for request in before for result in request.results}
    last = before[-1] if before else None
    sent = {result.token: (last, result.is_error) for result in last.results if result.token} if last else {}
    until = next_message(history, kill)
    saved: dict[str, tuple[Event, bool]] = {
        token: (file, False)
        for file in history.of(SessionSaved)
        if kill.id < file.id < until
        for token in file.results
        if token not in once_sent
    }
    return {**sent, **saved}


def _first_call_after(history: History, kill: AgentKilled) -> RequestArrived | None:
    """Of the message after the kill: a request that was sent before the kill does not count."""
    until = next_message(history, kill)
    return next((call.arrived for call in history.calls if call.main and call.arrived.id > until), None)


def _holds(carried: Mapping[str, ToolResult], token: str, failed: bool) -> bool:
    result = carried.get(token)
    return result is not None and (failed or result.printed or not result.is_error)
