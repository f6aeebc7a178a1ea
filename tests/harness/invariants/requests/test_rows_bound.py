"""Rows that a run adds to our database: counted over all its inserts, judged where a scenario asks."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.service import StoreAsked
from wedgehog.harness.testing import HistoryBuilder


def _told(*queries: tuple[int, str]) -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    for number, (rows, verb) in enumerate(queries, start=1):
        tell.add(StoreAsked(number=number, verb=verb, rows=rows, latency_s=0.05))
    tell.answer_step(1)
    return tell.end()


@pytest.mark.parametrize(
    ("queries", "status"),
    [
        ([(40, "INSERT"), (80, "INSERT")], "pass"),
        ([(40, "INSERT"), (81, "INSERT")], "fail"),
        ([(120, "INSERT"), (500, "SELECT"), (500, "UPDATE"), (500, "DELETE")], "pass"),
        ([(500, "SELECT")], "pass"),
        ([], "nothing"),
    ],
)
def test_only_rows_that_inserts_add_count(queries: list[tuple[int, str]], status: str):
    """What is read, changed or taken away adds nothing; a run without a query has nothing to judge."""
    assert check("rows_bound", _told(*queries).seal(), rows=120).status == status


def test_without_a_number_they_are_told():
    """And the sentence of a red one names both numbers, with the insert that went over as its proof."""
    tell = _told((3, "INSERT"), (1, "SELECT"), (3, "INSERT"), (3, "INSERT"))
    history = tell.seal()
    assert check("rows_bound", history).says == "4 queries added 9 rows to the database"
    red = check("rows_bound", history, rows=3)
    assert red.says == "the inserts added 9 rows to the database, 3 allowed"
    assert [history.events[number].rows for number in red.evidence] == [3, 3]
