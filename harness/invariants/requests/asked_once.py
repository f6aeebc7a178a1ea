"""A request whose reply came whole is not sent again."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.invariants.overload import unless_slowed
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import main_calls_of, over, requests
from wedgehog.harness.record.events.turn import AGENT_ITSELF, Frozen
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, passed
from wedgehog.harness.record.views import Call


@invariant("asked_once", level="strict")
def asked_once(history: History) -> Iterator[Verdict]:
    """A request of the conversation is not sent again, word for word, after its reply has come whole.

    Each copy is paid, and the second reply may differ: the user gets two answers, or a tool runs twice. Judged on
    replies with words or a tool call that no fault struck, in turns that nothing stopped. A reply that comes while the
    agent is frozen counts as struck, and on a busy machine a timer of the agent may be the cause. An agent that asks
    for several replies on purpose, to choose one, is red here.

    Fix: Look for two subscribers of one event, two results that each start the model, or a call that is made once to
    look at it and once to stream it. Keep the reply that has come, and use it.
    """
    for turn in history.turns:
        if turn.end is None or over(turn) is not None or history.beside(turn):
            continue
        usable = [call for call in main_calls_of(turn) if _usable(call)]
        freezes = [it for it in history.of(Frozen) if it.turn == turn.number and it.whom in AGENT_ITSELF]
        again = next((pair for pair in _repeated(usable) if not _froze_between(pair, freezes)), None)
        if again is not None:
            first, second = again
            says = f"request {second.number} is the same as request {first.number}, whose reply had come whole"
            since_s = turn.stimulus.at_s if turn.stimulus is not None else first.at_s
            yield unless_slowed(history, f"{turn}: {says}", requests(again), since_s, second.at_s)
        elif usable:
            yield passed(because=f"{turn}: each usable reply was asked for once")


def _repeated(calls: Sequence[Call]) -> Iterator[tuple[Call, Call]]:
    """Each call that is sent again with the next equal one, in order."""
    found: list[tuple[Call, Call]] = []
    following: dict[tuple[str, str], Call] = {}
    for call in reversed(calls):
        body = call.arrived.path, call.arrived.body_hash
        if body in following:
            found.append((call, following[body]))
        following[body] = call
    return reversed(found)


def _froze_between(pair: tuple[Call, Call], freezes: Sequence[Frozen]) -> bool:
    first, second = pair
    return any(first.arrived.id < freeze.id < second.arrived.id for freeze in freezes)


def _usable(call: Call) -> bool:
    """Whether its reply came whole, says something, and no fault struck it."""
    said = call.ended is not None and bool(call.ended.tool_calls or call.ended.text_delivered.strip())
    return call.ok and said and not call.damaged and not call.faults and call.arrived.body_hash != ""
