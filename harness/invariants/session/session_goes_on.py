"""A refusal that lasts as long as the agent sends the same does not end the session."""

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends, last_request, refused_for_content, requests, still_refused
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed


@invariant("session_goes_on", level="strict")
def session_goes_on(history: History) -> Verdict:
    """A session goes on after a refusal that lasts as long as the agent sends the same.

    The model's window is full, or the provider cannot read one item of the conversation. An agent that sends the same
    again with each message is refused for ever, and its user can only throw the session away. Judged on the messages
    after healing, where a fault that nothing heals still refuses them. An agent that shortens its conversation, or
    leaves out or replaces the item, is answered.

    Fix: When the provider refuses a request for its size or its content, do not send it again as it is. Shorten the
    conversation (drop old tool results, or replace old turns with a summary), or leave out the item that is refused.
    """
    recoveries = [turn for turn in history.turns if turn.recovery]
    stuck = next(filter(still_refused, recoveries), None)
    if stuck is not None:
        last = last_request(stuck)
        words = last.refused.message if last is not None and last.refused is not None else ""
        says = f"{stuck} was refused like the messages before it ({words})"
        return fail(says, (*requests(stuck.main_calls or stuck.calls), *ends(stuck)))
    answered = any(outcome_of(turn, history).kind == "answered" for turn in recoveries)
    refused = any(refused_for_content(call) for turn in history.turns for call in turn.main_calls)
    if not (answered and refused):
        return nothing("nothing was refused")
    return passed(because="a later message was answered after a refusal")
