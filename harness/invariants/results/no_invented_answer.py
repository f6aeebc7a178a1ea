"""No answer of a user is made up where no user is."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call, tool_uses_of
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("no_invented_answer", level="strict")
def no_invented_answer(history: History) -> Iterator[Verdict]:
    """Where no user is, the result of the model's question does not say that the user has answered.

    The model takes an empty answer, or one that the agent chose, for its user's word, and acts on it. Judged where the
    result comes in the turn of the question and has words such as "the user has answered", and none such as "no user",
    "not", "declined" or "default".

    Fix: Return an error that says that no user is there to answer, or do not offer the tool where no user is.
    """
    for turn in history.turns:
        for use in tool_uses_of(turn):
            carried = [request for request in use.results if request.turn == turn.number]
            if not use.offered.asks_user or not carried:
                continue
            said = [it.signs or () for it in carried[0].results if it.token == use.token]
            if any("answered" in signs for signs in said):
                says = f"the result of {name_of_call(use)} says that the user has answered, and no user is there"
                yield fail(says, (use.reply, carried[0]))
            else:
                yield passed(because=f"the result of {name_of_call(use)} makes up no answer")
