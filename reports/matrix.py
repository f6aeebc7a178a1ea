"""Scenario by agent, and fix by scenario: the verdicts as tables."""

import pandas as pd

from wedgehog.reports.campaign_folder import FIX_ROWS, SINGLE_FIX, agent_order

NOT_PLAYED = ""


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """One row per scenario, one column per agent; a cell holds the words of `standing.reads`.

    Repeats share a cell: `fail (expected)` where all agree, else `pass 2, fail 1`. Empty: not played.
    """
    return _pivot(table, "scenario", "agent")


def fixes(table: pd.DataFrame) -> pd.DataFrame:
    """One row per specimen variant (`buggy*`, `only-*`, `fixed*`, `without-*`), one column per scenario.

    Empty unless a fix was tried alone or left out: buggy beside fixed is what `verdicts` shows.
    """
    tried = table[table["agent"].str.startswith(FIX_ROWS)] if len(table) else table
    if not len(tried) or not tried["agent"].str.startswith(SINGLE_FIX).any():
        return pd.DataFrame()
    return _pivot(tried, "agent", "scenario")


def _pivot(table: pd.DataFrame, down: str, across: str) -> pd.DataFrame:
    if not len(table):
        return pd.DataFrame()
    cells = table.groupby([down, across], sort=False)["reads"].agg(_together).unstack(fill_value=NOT_PLAYED)
    return cells.reindex(index=_ordered(table, down), columns=_ordered(table, across))


def _together(words: pd.Series) -> str:
    found = words.value_counts(sort=False)
    if len(found) == 1:
        return str(found.index[0])
    return ", ".join(f"{word} {number}" for word, number in found.items())


def _ordered(table: pd.DataFrame, column: str) -> list[str]:
    """Agents from broken to repaired, scenarios in the campaign's order."""
    names = [str(name) for name in table[column].drop_duplicates()]
    return sorted(names, key=agent_order) if column == "agent" else names
