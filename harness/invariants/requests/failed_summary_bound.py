"""A summary that fails each time is not paid for with each message."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import compacts, requests
from wedgehog.harness.invariants.session.history_kept import gave_a_summary
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call


@invariant("failed_summary_bound", level="strict")
def failed_summary_bound(history: History, *, messages: int = 5) -> Iterator[Verdict]:
    """A summary that fails is asked for again with at most `messages` messages in a row.

    A request for a summary carries the whole conversation, so it is the longest of all. If it fails for a lasting
    reason, each message pays for it once more, and its user waits for it. Counted are messages whose turn asked for a
    summary at least once, and got no words. One that asked for none ends the row, and so does a conversation that was
    made shorter in another way. How often one turn tries is for `retry_discipline` and `paid_call_bound`.

    Fix: Count the summaries that failed in a row. After three of them go on without one, or tell your user, and try
    again only after a while, when the provider refuses a request as too long, or when your user asks for it.
    """
    row: list[Call] = []
    longest = 0
    for turn in history.turns:
        asked = [call for call in turn.calls if compacts(call)]
        failed = bool(asked) and not any(map(gave_a_summary, asked))
        row = [*(row if failed and _as_long(row, asked[0]) else ()), *asked[:failed]]
        longest = max(longest, len(row))
        if len(row) == messages + 1:
            says = f"{turn}: a summary was asked for in {len(row)} messages in a row, and failed each time"
            yield fail(f"{says}; {messages} allowed", requests(row))
    if longest:
        yield passed(because=f"a summary that failed was asked for in at most {longest} messages in a row")


def _as_long(row: list[Call], summary: Call) -> bool:
    """Whether a summary is still of the first message that the row began with."""
    begins = min(row[0].arrived.turns_seen, default=None) if row else None
    return begins in summary.arrived.turns_seen
