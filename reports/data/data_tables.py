"""The tables of a campaign for notebooks and databases: runs, calls and latency, with the type of each column."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, get_type_hints

from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.call_attributes import OF_HISTORY, OF_RUN, ColumnType, run_values
from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.facts import RunFacts
from wedgehog.reports.latency import LatencyRow, latency, times
from wedgehog.reports.rows import COLUMNS, RunRow

_KINDS: Mapping[type, ColumnType] = {int: "int64", float: "double", bool: "bool"}


def _types(row: type) -> dict[str, ColumnType]:
    hints = get_type_hints(row).items()
    return {
        name: next((kind for of, kind in _KINDS.items() if hint in (of, of | None)), "string") for name, hint in hints
    }


OF_RUNS: Mapping[str, ColumnType] = {name: kind for name, kind in _types(RunRow).items() if name in COLUMNS}
OF_CALLS: Mapping[str, ColumnType] = {**OF_RUN, **OF_HISTORY}
OF_LATENCY: Mapping[str, ColumnType] = _types(LatencyRow)


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table: its name, the types of its columns, and its rows, each in the order of the columns."""

    name: str
    types: Mapping[str, ColumnType]
    rows: Sequence[tuple[Any, ...]]


class DataTables:
    """Takes the calls of each run while the campaign is read, and makes the tables."""

    def __init__(self) -> None:
        self._calls: dict[Path, tuple[tuple[Any, ...], ...]] = {}

    def add(self, run: StoredRun, facts: RunFacts) -> None:
        """Take the calls of a run."""
        if facts.calls:
            self._calls[run.folder] = facts.calls

    def of(self, campaign: StoredCampaign, rows: Iterable[RunRow]) -> Iterator[DataTable]:
        """The tables of a campaign whose runs were all added; `rows` are those of its `table`."""
        yield DataTable("runs", OF_RUNS, _values(OF_RUNS, rows))
        yield DataTable("calls", OF_CALLS, self._all_calls(campaign))
        yield DataTable("latency", OF_LATENCY, _values(OF_LATENCY, latency(times(campaign))))

    def _all_calls(self, campaign: StoredCampaign) -> list[tuple[Any, ...]]:
        return [run_values(run.judgement) + call for run in campaign.runs for call in self._calls.get(run.folder, ())]


def _values(names: Iterable[str], rows: Iterable[RunRow | LatencyRow]) -> list[tuple[Any, ...]]:
    return list(map(attrgetter(*names), rows))
