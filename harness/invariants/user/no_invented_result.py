"""No answer rests on a tool's result that the model made up."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends, requests
from wedgehog.harness.record.error_words import plain
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import answers
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("no_invented_result")
def no_invented_result(history: History) -> Iterator[Verdict]:
    """What the model makes up behind a tool call in its text, a result and an answer, is not given as the answer.

    The tool has not run, and its user reads what a tool seems to have found. Judged where the model writes its tool
    calls in its text, and a fault of the scenario makes it go on behind a call. An agent that runs the call, asks
    again, or ends its turn in an error is right.

    Fix: Send a stop sequence that ends the reply where a result begins, such as "Observation:". Drop all that stands
    behind the first call of a reply, and run that call, because some models ignore stop sequences.
    """
    invented = {fired.turn: fired.invents for fired in history.of(FaultFired) if fired.invents}
    for turn in history.turns:
        words = invented.get(turn.number)
        if words is None or turn.end is None:
            continue
        if plain(words) in plain(turn.end.answer) and not answers(turn, turn):
            says = f"{turn}: its answer is what the model made up behind a tool call that did not run"
            yield fail(says, (*requests(turn.main_calls), *ends(turn)))
        else:
            yield passed(because=f"{turn}: its answer is not what the model made up")
