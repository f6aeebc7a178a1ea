"""What a summary stands for is not summed up again for each request."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import compacts, requests
from wedgehog.harness.invariants.session.history_kept import gave_a_summary
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call

MOST = 3
"""A summary may be made again: because its message came in between, or because it was too long."""


@invariant("summed_up_once", level="strict")
def summed_up_once(history: History) -> Iterator[Verdict]:
    """A message is summed up at most three times, if the earlier summaries are not summed up with it.

    A summary that is used for one request, and not stored, is made again for the next one, from the same messages: each
    request then costs two, and the longer one is the summary. Judged on summaries with words that a request of the
    conversation had. One that is made of the summary before it and of what came since is no repetition, and so is one
    of later messages only.

    Fix: Store a summary in the place of the messages that it stands for. Make the next one of it and of what came
    since, when the conversation has become too long again.
    """
    made = [call for call in history.calls if compacts(call) and gave_a_summary(call) and _is_used(history, call)]
    turns = sorted({turn for call in made for turn in call.arrived.turns_seen})
    rows = {turn: _longest([call for call in made if turn in call.arrived.turns_seen]) for turn in turns}
    turn = max(rows, key=lambda it: len(rows[it]), default=0)
    if not turn:
        return
    if len(rows[turn]) > MOST:
        numbers = ", ".join(str(call.number) for call in rows[turn])
        says = f"the message of turn {turn} is summed up {len(rows[turn])} times, {MOST} allowed"
        yield fail(f"{says}: none of requests {numbers} has the summary before it", requests(rows[turn]))
    else:
        yield passed(because=f"a message is summed up at most {len(rows[turn])} times from the start")


def _is_used(history: History, summary: Call) -> bool:
    """Whether a later request of the conversation has its words."""
    later = (call.arrived for call in history.calls if call.main and call.arrived.id > summary.arrived.id)
    return any(summary.number in (request.replies_seen or ()) for request in later)


def _longest(summaries: Sequence[Call]) -> list[Call]:
    """The longest row of them in which none has the words of an earlier one."""
    longest: list[Call] = []
    row: list[Call] = []
    earlier: set[int] = set()
    for call in summaries:
        row = [call] if earlier & set(call.arrived.replies_seen or ()) else [*row, call]
        earlier.add(call.number)
        longest = max(longest, row, key=len)
    return longest
