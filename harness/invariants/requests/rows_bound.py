"""The agent writes each row once."""

from itertools import accumulate

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.record.events.service import StoreAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed


@invariant("rows_bound", asked=True)
def rows_bound(history: History, *, rows: int | None = None) -> Verdict:
    """The run's inserts add at most `rows` rows to our database (no stock number: without one it is reported).

    The work may be done a second time when a message is sent again while the first one runs, by a retry of a library,
    or by a restart (incident endless-loop). No model request shows it.

    Fix: Give each message an id, and make its insert idempotent with a unique key, so that a second try finds the
    row.
    """
    asked = list(history.of(StoreAsked))
    if not asked:
        return nothing("no query of our database")
    added = [query for query in asked if query.verb == "INSERT"]
    sums = list(accumulate(query.rows for query in added))
    total = sums[-1] if sums else 0
    if rows is None or total <= rows:
        return passed(f"{len(asked)} queries added {total} rows to the database")
    over = next(query for query, sum_ in zip(added, sums, strict=True) if sum_ > rows)
    return fail(f"the inserts added {total} rows to the database, {rows} allowed", (over, added[-1]))
