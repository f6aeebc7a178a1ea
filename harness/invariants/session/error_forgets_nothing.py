"""An error of the provider ends a turn, and not the conversation."""

from collections.abc import Iterator
from functools import partial

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import REFUSES_THE_REQUEST, ends, over, requests
from wedgehog.harness.invariants.session.history_kept import carries
from wedgehog.harness.invariants.session.sequels import judge, sequels, started_again
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail
from wedgehog.harness.record.views import Call, Turn


@invariant("error_forgets_nothing")
def error_forgets_nothing(history: History) -> Iterator[Verdict]:
    """After a turn that ended in an error, the next one does not begin a new conversation without a word.

    An agent that answers, but has silently forgotten all that was said before the error, has not recovered: its user
    goes on as if it knew. Judged where an answered turn, a turn with an error, and a further message follow each other
    in one session, and the agent carried earlier turns before: in this run, or in its control run. A request that
    carries anything from before its own message is enough. Not judged where the provider did not accept what the turn
    said (400, 413, 422), or something was too long, after a kill, a stop or a restart, where a summary may have been
    made, after a long turn (`session_remembers`), and where the agent says that it begins anew.

    Fix: Write the conversation to its file before a request, and leave that file alone when the request fails. Do not
    store an empty list of messages on the path of an error.
    """
    for it in sequels(history):
        if _may_be_judged(history, it.bad, it.after):
            yield from judge(history, it, partial(_forgotten, it.bad))


def _may_be_judged(history: History, failed: Turn, turn: Turn) -> bool:
    """Whether the turn ended in an error, in an agent that lives on and carries earlier turns."""
    if over(failed) is not None or outcome_of(failed, history).kind != "surfaced" or history.beside(failed):
        return False
    refused = any(it.refused is not None and it.refused.status in REFUSES_THE_REQUEST for it in failed.calls)
    return not refused and carries(history, until=turn) and not started_again(history, failed)


def _forgotten(failed: Turn, first: Call) -> Verdict:
    says = f"{failed} ended in an error, and request {first.number} carries nothing of what was said before"
    return fail(says, (*ends(failed), *requests([first])))
