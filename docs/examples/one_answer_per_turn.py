"""An example of an invariant: a turn pays for one finished answer, not for two."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import main_calls_of, requests
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call


@invariant("one_answer_per_turn")
def one_answer_per_turn(history: History, *, answers: int = 1) -> Iterator[Verdict]:
    """A turn gets at most `answers` replies that are whole and ask for no tool.

    An agent that asks again although it was answered pays twice, and its user may read two answers.
    """
    for turn in history.turns:
        final = [call for call in main_calls_of(turn) if _is_final(call)]
        if len(final) > answers:
            yield fail(f"{turn} was answered {len(final)} times, {answers} allowed", requests(final))
        elif final:
            yield passed()


def _is_final(call: Call) -> bool:
    return call.ok and call.ended is not None and not call.ended.tool_calls
