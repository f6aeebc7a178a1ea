"""What the tools of a turn did stays in the conversation: a later request has a trace of it."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import (
    called_beside,
    disk_was_full,
    main_calls_of,
    over,
    refused_as_too_long_before,
    requests,
    tool_uses_of,
)
from wedgehog.harness.invariants.session.history_kept import is_owed
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, ToolUse, Turn


@invariant("rounds_kept", level="strict")
def rounds_kept(history: History) -> Iterator[Verdict]:
    """The next turn's request still has a result of the tools that ran in an answered turn, however short.

    A model that sees only its last words does not know what it did: it runs the tools again, or denies that they ran.
    So does one that sees only the message of a turn that ended in an error behind its tools, as on an overloaded
    provider; after a refusal of what the turn said (400, 413, 422) an agent may leave that out. Judged on the first
    accepted request of the next turn, where it carries the message of the turn. One result is enough, also without its
    text, because an agent may drop old results. A background call in between may have made a
    summary, after a refusal for its length an agent may drop what it likes, and on a full disk it cannot store them.

    Fix: Store the tool calls of a turn and their results with its words, and send them with later requests. Make old
    results shorter instead of leaving their calls out.
    """
    for turn, after in zip(history.turns, history.turns[1:], strict=False):
        later = next((call for call in main_calls_of(after) if call.paid), None)
        done = _sent(turn)
        if done and later is not None and _is_judged(history, turn, later):
            yield _judge(turn, done, later)


def _sent(turn: Turn) -> list[ToolUse]:
    """The tool calls whose results the model has read in their turn."""
    return [use for use in tool_uses_of(turn) if any(sent.turn == turn.number for sent in use.results)]


def _is_judged(history: History, turn: Turn, later: Call) -> bool:
    ended = turn.end.id if turn.end is not None else 0
    in_order = over(turn) is None and later.arrived.id > ended and not history.beside(turn)
    in_order = in_order and not disk_was_full(history, turn)
    if not in_order or turn.number not in later.arrived.turns_seen:
        return False
    too_long = refused_as_too_long_before(history, later)
    beside = called_beside(history, turn.calls[0].arrived.id, later.arrived.id)
    return not too_long and not beside and (outcome_of(turn, history).kind == "answered" or _fails(history, turn))


def _fails(history: History, turn: Turn) -> bool:
    """Whether it ended in an error by itself that gave no reason to leave its rounds out."""
    return outcome_of(turn, history).kind == "surfaced" and is_owed(history, turn)


def _judge(turn: Turn, done: list[ToolUse], later: Call) -> Verdict:
    if any(not it.token or it.token.startswith(f"{turn.number}.") for it in later.arrived.results):
        return passed(because=f"request {later.number} carries the tool results of {turn}")
    tools = ", ".join(use.token for use in done)
    says = f"request {later.number} carries the message of {turn}, and no result of its tool calls ({tools})"
    return fail(says, (*requests([later]), done[0].reply))
